#include "runtime/run/memory_home.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

Words all_words(const std::vector<Signature>& operands, const Shape& shape) {
  Words sum;
  for (const Signature& operand : operands) {
    sum += Words(operand.rows_of(shape)) * operand.cols_of(shape);
  }
  return sum;
}

class MemoryHome final : public OperandHome {
 public:
  MemoryHome(const Request& request, const Topology& topology)
      : request_(request), topology_(topology) {}

  std::vector<FoundOperand> find(const Readers&) override { return {}; }
  void accept(const RequestedProblem&) const override {}
  [[nodiscard]] MemoryNeed memory_needed(const Report& report) const override;
  void clear() override {}
  void bring(Report& report, const Readers& readers) override;
  void run(Part& part, const RunHook& hook) override;
  void check(const Part& part) override { check_finite(part, views_of(returned_)); }
  void take(const Part&) override { operands_.merge(results_); }
  [[nodiscard]] Verdict verify(const Report& report,
                               const std::function<void(double)>& step) const override {
    return redblue::verify(report, given(), views_of(returned_), step);
  }
  void hand_over(Writers& writers) override;
  void finish(Report&) override {}

 private:
  void bring_densified(const Signature& operand, const Problem& problem, Index heads,
                       const InputFile* file);
  void bring_lent(const Signature& operand, const Problem& one, Index heads,
                  const InputFile& array);
  void check_sums(const Signature& operand, const Problem& one, Index heads,
                  const InputFile& file) const;
  [[nodiscard]] Views given() const {
    Views views = views_of(operands_);
    views.insert(lent_.begin(), lent_.end());
    return views;
  }

  const Request& request_;
  const Topology& topology_;
  Buffers operands_, results_;
  Views lent_;              // operands that are the caller's
  ViewedResults returned_;  // in results_, or the caller's
};

// The matrices of all heads, what a run takes beside them, and the reference of a verification.
OperandHome::MemoryNeed MemoryHome::memory_needed(const Report& report) const {
  const Plan& plan = report.kernel.plan;
  const Kernel& kernel = find_kernel(plan.kernel);
  std::vector<Signature> here = given_of(plan);
  std::ranges::copy(kernel.returned(plan.problem), std::back_inserter(here));
  std::erase_if(here, [&](const Signature& operand) {
    return request_.arrays != nullptr && (request_.arrays->in.contains(operand.name) ||
                                          request_.arrays->out.contains(operand.name));
  });
  const Words matrices = all_words(here, plan.problem.shape);
  Words bytes = 4 * matrices * report.kernel.team.heads + working_bytes(report);
  if (!report.densified.dense()) {  // one head of one operand on the way, its values beside it
    const Shape& shape = plan.problem.shape;
    bytes += 8 * Words(std::max(shape.n, std::max(shape.m, shape.d))) * shape.d;
  }
  if (request_.verify) {
    bytes += verification_bytes(kernel, plan.problem);
  }
  return {bytes, "take smaller n, m or d, fewer heads, or use count"};
}

// A sparse operand of the request for a kernel of dense ones: the same values as for a kernel of
// sparse ones, and 0 elsewhere.
void MemoryHome::bring_densified(const Signature& operand, const Problem& problem, Index heads,
                                 const InputFile* file) {
  const BlockPattern& pattern = pattern_of(problem.sparsity, operand);
  const auto stored = static_cast<std::size_t>(pattern.stored());
  std::vector<float> values(words_of(operand, problem.shape));
  std::vector<float>& words = operands_[std::string(operand.name)];
  for (Index head = 0; head < heads; ++head) {
    if (file != nullptr) {
      file->read_rows({0, file->rows()}, std::span(values).first(stored));
    } else {
      fill_made(request_, operand, problem, head, 0, std::ssize(values), values);
    }
    std::ranges::copy(densified(pattern, std::span(values).first(stored)),
                      std::back_inserter(words));
  }
}

// Of L, which a file or an array has.
void MemoryHome::check_sums(const Signature& operand, const Problem& one, Index heads,
                            const InputFile& file) const {
  if (operand.name == kL.name) {
    const Views views = given();
    for (Index head = 0; head < heads; ++head) {
      check_live_sums(one, 0, head_of(views, operand, one.shape, head),
                      "L of " + file.path().string());
    }
  }
}

void MemoryHome::bring_lent(const Signature& operand, const Problem& one, Index heads,
                            const InputFile& array) {
  try {
    array.check_lent();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} of {}", operand.name, error.what()));
  }
  lent_.emplace(operand.name, *array.lent());
  check_sums(operand, one, heads, array);
}

void MemoryHome::bring(Report& report, const Readers& readers) {
  const Problem& problem = report.kernel.plan.problem;
  const Problem one = problem.one_head();
  const Shape& shape = one.shape;
  const Problem sparse =
      report.densified.dense() ? one : one.with_sparsity(report.densified).with_mask({});
  for (const Signature& operand : given_of(report.kernel.plan)) {
    const Index heads = heads_of(operand, problem, report.kernel.team.heads);
    const auto reader = readers.find(operand.name);
    if (reader == readers.end() && made_by_forward(operand.name)) {
      continue;
    }
    if (const Signature* stored = densified_operand(report, operand.name)) {
      const InputFile* file = reader == readers.end() ? nullptr : &reader->second;
      if (file == nullptr || file->pattern() != nullptr) {
        bring_densified(*stored, sparse, heads, file);
        continue;
      }
    }
    if (reader != readers.end() && reader->second.lent()) {
      bring_lent(operand, one, heads, reader->second);
      continue;
    }
    std::vector<float>& buffer = operands_[std::string(operand.name)];
    buffer = buffer_for(operand, shape, heads);
    if (reader != readers.end()) {
      try {
        const InputFile& file = reader->second;
        const bool of_every_head = file.pattern() != nullptr;
        const std::size_t words = static_cast<std::size_t>(file.rows() * file.cols());
        for (Index head = 0; head < (of_every_head ? heads : 1); ++head) {
          file.read_rows({0, file.rows()},
                         std::span(buffer).subspan(
                             static_cast<std::size_t>(head) * words_of(operand, shape), words));
        }
      } catch (const InputError& error) {
        throw InputError(fmt::format("{} of {}", operand.name, error.what()));
      }
      check_sums(operand, one, heads, reader->second);
      continue;
    }
    const std::size_t words = words_of(operand, shape);
    for (Index head = 0; head < heads; ++head) {
      const auto own = std::span(buffer).subspan(static_cast<std::size_t>(head) * words, words);
      fill_made(request_, operand, one, head, 0, operand.rows_of(shape), own);
    }
  }
}

void MemoryHome::run(Part& part, const RunHook& hook) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const ViewedResults callers =
      request_.arrays == nullptr ? ViewedResults() : request_.arrays->targets();
  results_.clear();
  returned_.clear();
  for (const Signature& operand : kernel.returned(part.plan.problem)) {
    const std::string name(operand.name);
    if (const auto target = callers.find(name); target != callers.end()) {
      returned_.insert(*target);
    } else {
      results_[name] = buffer_for(operand, part.plan.problem.shape, part.team.heads);
    }
  }
  returned_.merge(viewed_results(results_));
  run_in_memory(part, given(), returned_, topology_, hook);
}

void MemoryHome::hand_over(Writers& writers) {
  for (auto& [name, writer] : writers) {
    writer.append(returned_.find(name)->second);
  }
  for (auto& [name, writer] : writers) {
    writer.commit();
  }
}

}  // namespace

std::unique_ptr<OperandHome> memory_home(const Request& request, const Topology& topology) {
  return std::make_unique<MemoryHome>(request, topology);
}

void run_in_memory(Part& part, const Views& given, const ViewedResults& returned,
                   const Topology& topology, const RunHook& hook) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const KernelMatrices bound(kernel, part.plan.problem, part.team.heads, given, returned);
  TeamRun ran = run_on_team(kernel, part.plan, part.team, bound.heads(), topology, hook);
  part.counted = std::move(ran.counts);
  part.unpinned = std::move(ran.unpinned);
}

Words working_bytes(const Report& report) {
  const Index workers = report.kernel.team.workers;
  const Index heads = report.kernel.team.heads;
  const Plan& plan = report.kernel.plan;
  const Kernel& kernel = find_kernel(plan.kernel);
  const Index with_a_head = std::min(workers, heads);
  const Index machines = heads == 1 ? workers : with_a_head;
  Words peak = total(plan.phases).peak * machines;
  Words intermediates =
      kernel.intermediates(plan) * with_a_head + partials_of(kernel, plan, report.kernel.team);
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    peak = std::max(peak, total(forward.phases).peak);
    intermediates = std::max(intermediates, find_kernel(forward.kernel).intermediates(forward));
  }
  return 4 * (intermediates + peak) +
         Words(KernelMatrices::bytes(kernel)) * heads;  // matters where heads are small
}

}  // namespace redblue
