#include "runtime/run/checkpoint.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "memsim/ranks/checksum.hpp"
#include "runtime/ranks/links_json.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/tensor_path.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/counts_json.hpp"
#include "runtime/text/parse_json.hpp"

namespace redblue {
namespace {

constexpr std::string_view kAnyVersion = "redblue checkpoint ";
constexpr int kCheckpointVersion = 2;

std::string first_line(std::string_view body) {
  return fmt::format("{}{} {:016x}\n", kAnyVersion, kCheckpointVersion,
                     checksum_of(std::as_bytes(std::span(body))));
}

// Throws: JsonMismatch.
Checkpoint checkpoint_of(const Json& json) {
  Checkpoint checkpoint;
  for (const Json& fact : json.at("facts")) {
    checkpoint.facts.push_back(fact.get<std::string>());
  }
  if (!json.at("forward").is_null()) {
    checkpoint.forward = parse_run_counts(json.at("forward"));
  }
  checkpoint.units = json.at("units").get<Index>();
  checkpoint.counted = parse_run_counts(json.at("counted"));
  for (const Json& links : json.at("links")) {
    checkpoint.links.push_back(parse_links(links));
  }
  checkpoint.log = {json.at("log").at(0).get<Index>(), json.at("log").at(1).get<std::uint64_t>()};
  return checkpoint;
}

bool is_sound(const Checkpoint& checkpoint) {
  const RunCounts& counted = checkpoint.counted;
  return checkpoint.units >= 0 && checkpoint.log.bytes >= 0 && counted.largest && counted.span &&
         counted.seconds && counted.seconds->phases.size() == counted.phases.size();
}

}  // namespace

void refuse_damaged(const std::filesystem::path& file, const std::filesystem::path& checkpoint) {
  throw InputError(fmt::format("{}: no checkpoint, or a damaged one: remove {}, and begin anew",
                               file.string(), checkpoint.string()));
}

// The file has three parts: a line with the checksum of the rest, a line of JSON, and the words of
// `left`.
Index write(const Checkpoint& checkpoint, const std::filesystem::path& path) {
  Json links = Json::array();
  for (const Links& until : checkpoint.links) {
    links.push_back(counts_json(until));
  }
  const Json json = {
      {"facts", checkpoint.facts},
      {"forward", checkpoint.forward ? counts_json(*checkpoint.forward) : Json()},
      {"units", checkpoint.units},
      {"counted", counts_json(checkpoint.counted)},
      {"links", std::move(links)},
      {"log", Json::array({checkpoint.log.bytes, checkpoint.log.sum})},
      {"left", checkpoint.left.size()},
  };
  std::string body = json.dump() + "\n";
  const auto left = std::as_bytes(std::span(checkpoint.left));
  body.append(reinterpret_cast<const char*>(left.data()), left.size());
  const std::string line = first_line(body);
  WholeFile file(path);
  file.append(line);
  file.append(body);
  file.finish();
  file.commit(WholeFile::Then::go_on);
  force_name(path);
  return static_cast<Index>(line.size() + body.size());
}

std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    return std::nullopt;
  }
  const std::string content = read_text(path.string(), kNoLimit);  // `left` has d x d words
  if (content.starts_with(kAnyVersion) &&
      !content.starts_with(fmt::format("{}{} ", kAnyVersion, kCheckpointVersion))) {
    throw InputError(fmt::format(
        "{}: a checkpoint of another version of redblue: end that run with it, or remove this file",
        path.string()));
  }
  const std::size_t begin = std::min(content.find('\n'), content.size() - 1) + 1;
  const std::string_view body = std::string_view(content).substr(begin);
  const std::size_t line = body.find('\n');
  if (line == std::string_view::npos || content.substr(0, begin) != first_line(body)) {
    refuse_damaged(path, path);
  }
  const auto left = std::as_bytes(std::span(body.substr(line + 1)));
  try {
    const Json json = parse_json(body.substr(0, line), path.string());
    Checkpoint checkpoint = checkpoint_of(json);
    if (json.at("left").get<std::size_t>() == left.size() / sizeof(float) &&
        left.size() % sizeof(float) == 0 && is_sound(checkpoint)) {
      checkpoint.left.resize(left.size() / sizeof(float));
      std::ranges::copy(left, std::as_writable_bytes(std::span(checkpoint.left)).begin());
      return checkpoint;
    }
  } catch (const JsonMismatch&) {  // written by another build
  }
  refuse_damaged(path, path);
}

std::string text_of_part(const Request& request, const Part& part) {
  const Problem& problem = part.plan.problem;
  std::string text =
      fmt::format("redblue {} ({}, {}), {}", build_info::kVersion, build_info::kCompiler,
                  build_info::kBuildType, to_string(part.plan));
  if (part.ranks) {
    text += fmt::format(" on {}", to_string(part.ranks->grid));
  }
  if (!problem.mask.full()) {
    text += fmt::format(" (mask of fingerprint {})", fingerprint_of(problem.mask, problem.shape));
  }
  if (request.softmax_scale) {
    text += fmt::format(", softmax scale {}", *request.softmax_scale);
  }
  return text + fmt::format(" in {}", simd_target());
}

std::string text_of_source(const Request& request, const std::string& operand,
                           const Readers& readers) {
  const auto reader = readers.find(operand);
  if (reader == readers.end()) {
    const auto made = request.make.find(operand);
    return fmt::format("{} from {}seed {}, scale {}", operand,
                       made == request.make.end() ? "" : to_string(made->second) + ", ",
                       request.seed.value_or(kDefaultSeed), request.scale.value_or(1));
  }
  if (const auto words = reader->second.lent()) {
    return fmt::format("{} from an array of checksum {:016x}", operand, checksum_of(*words));
  }
  const std::filesystem::path& path = reader->second.path();
  const auto tensor = tensor_path(path);
  const std::filesystem::path& file = tensor ? tensor->file : path;
  return fmt::format("{} from {}, {} bytes, written at {}", operand,
                     std::filesystem::weakly_canonical(path).string(),
                     std::filesystem::file_size(file),
                     std::filesystem::last_write_time(file).time_since_epoch().count());
}

Resumption::Resumption(const Request& request, std::filesystem::path path)
    : request_(request), path_(std::move(path)) {
  if (asked()) {
    if (auto found = read_checkpoint(path_)) {
      state = std::move(*found);
      found_ = true;
    }
  } else if (std::filesystem::exists(path_)) {
    throw UsageError(fmt::format(
        "{}: a run that was ended left {}: go on from it with --resume, or remove that file",
        request_.said("store"), path_.string()));
  }
}

void Resumption::note(const std::string& fact) {
  const std::size_t at = noted_++;
  if (!found_) {
    state.facts.push_back(fact);
  } else if (at >= state.facts.size() || state.facts[at] != fact) {
    throw UsageError(
        fmt::format("{}: {} is of {}, and not of {}: ask for the same, or remove that file",
                    request_.said("resume"), path_.string(),
                    at < state.facts.size() ? state.facts[at] : "less", fact));
  }
}

void Resumption::write() {
  bytes_ += redblue::write(state, path_);
  ++written_;
}

}  // namespace redblue
