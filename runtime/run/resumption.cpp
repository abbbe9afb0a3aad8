#include "runtime/run/resumption.hpp"

#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/system/tensor_path.hpp"

namespace redblue {

Resumption::Resumption(const Request& request, const Store& store)
    : request_(request), path_(store.path("redblue.checkpoint")) {}

void Resumption::read() {
  if (asked()) {
    if (auto found = read_checkpoint(path_)) {
      checkpoint_ = std::move(*found);
      resumes_ = true;
    }
  } else if (std::filesystem::exists(path_)) {
    throw RequestError(fmt::format(
        "{}: a run that was ended left {}: go on from it with --resume, or remove that file",
        request_.said("store"), path_.string()));
  }
}

std::string Resumption::source_of(const std::string& operand, const Readers& readers) const {
  const auto reader = readers.find(operand);
  if (const auto made = request_.make.find(operand); made != request_.make.end()) {
    return made->second.kind == Rule::Kind::identity
               ? to_string(made->second)
               : fmt::format("{}, seed {}, scale {}", to_string(made->second),
                             request_.seed.value_or(kDefaultSeed), request_.scale);
  }
  if (reader == readers.end()) {
    const std::string source =
        fmt::format("seed {}, scale {}", request_.seed.value_or(kDefaultSeed), request_.scale);
    return request_.softmax_scale
               ? fmt::format("{}, softmax scale {}", source, *request_.softmax_scale)
               : source;
  }
  if (const auto words = reader->second.lent()) {
    const std::string_view bytes(reinterpret_cast<const char*>(words->data()), words->size_bytes());
    return fmt::format("an array of hash {:016x}", std::hash<std::string_view>{}(bytes));
  }
  const std::filesystem::path& path = reader->second.path();
  const auto tensor = tensor_path(path);
  const std::filesystem::path& file = tensor ? tensor->file : path;
  return fmt::format("{}, {} bytes, written at {}",
                     std::filesystem::weakly_canonical(path).string(),
                     std::filesystem::file_size(file),
                     std::filesystem::last_write_time(file).time_since_epoch().count());
}

void Resumption::note_source(const std::string& operand, const Readers& readers) {
  const std::string source = source_of(operand, readers);
  if (resumes_) {
    const auto known = checkpoint_.origins.find(operand);
    if (known == checkpoint_.origins.end() || known->second != source) {
      throw RequestError(
          fmt::format("{}: {} came from {}, not from {}: ask for the same, or remove {}",
                      request_.said("resume"), operand,
                      known == checkpoint_.origins.end() ? "the store" : known->second, source,
                      path_.string()));
    }
  }
  sources_[operand] = source;
}

bool Resumption::brought(const std::string& operand, std::uint64_t fingerprint) const {
  const auto known = checkpoint_.operands.find(operand);
  return known != checkpoint_.operands.end() && known->second == fingerprint;
}

void Resumption::check_same(const Report& report,
                            const std::map<std::string, std::uint64_t>& operands) {
  const Problem& problem = report.kernel.plan.problem;
  const std::string plan = fmt::format(
      "{}{} in {}", to_string(report.kernel.plan),
      problem.mask.full()
          ? ""
          : fmt::format(" (mask of fingerprint {})", fingerprint_of(problem.mask, problem.shape)),
      simd_target());
  const std::string forward_plan = report.forward ? to_string(report.forward->plan) : "";
  if (!resumes_) {
    checkpoint_.plan = plan;
    checkpoint_.forward_plan = forward_plan;
    checkpoint_.operands = operands;
    checkpoint_.origins = sources_;
    checkpoint_.forward_done = !report.forward;
    return;
  }
  if (checkpoint_.plan != plan || checkpoint_.forward_plan != forward_plan) {
    throw RequestError(
        fmt::format("{}: {} is of {}, and not of {}: ask for the same, or remove that file",
                    request_.said("resume"), path_.string(), checkpoint_.plan, plan));
  }
  for (const auto& [name, fingerprint] : operands) {
    if (!brought(name, fingerprint)) {
      throw RequestError(
          fmt::format("{}: {} is not the one of {}: bring the same, or remove that file",
                      request_.said("resume"), name, path_.string()));
    }
  }
}

std::optional<RunCounts> Resumption::forward_counts() const {
  return resumes_ && checkpoint_.forward_done ? checkpoint_.forward : std::nullopt;
}

void Resumption::finish_forward(const RunCounts& counts) {
  checkpoint_.forward = counts;
  checkpoint_.forward_done = true;
  checkpoint_.units = 0;
  if (asked()) {
    write();
  }
}

Steps Resumption::steps() {
  if (!resumes_ || checkpoint_.units == 0) {
    return {};
  }
  resumed_at_ = checkpoint_.units;
  return {.first = checkpoint_.units, .before = checkpoint_.counted, .left = checkpoint_.sum};
}

void Resumption::keep(Index units, const RunCounts& counts, std::vector<float> sum) {
  checkpoint_.units = units;
  checkpoint_.counted = counts;
  checkpoint_.sum = std::move(sum);
  write();
}

void Resumption::write() {
  bytes_ += redblue::write(checkpoint_, path_);
  ++written_;
}

void Resumption::tell(StoreReport& report) const {
  report.checkpoints = written_;
  report.checkpoint_bytes = bytes_;
  report.resumed_at = resumed_at_;
}

}  // namespace redblue
