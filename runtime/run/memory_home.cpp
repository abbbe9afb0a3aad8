#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/operand_home.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/run/verification.hpp"

namespace redblue {
namespace {

class MemoryHome final : public OperandHome {
 public:
  MemoryHome(const Request& request, const Topology& topology)
      : OperandHome(request), topology_(topology) {}

  [[nodiscard]] MemoryNeed memory_needed(const Report& report) const override;
  void bring(Report& report, const Readers& readers) override;
  void run(Part& part, const RunHook& hook) override;
  void check(const Part& part) override { check_finite(part, views_of(returned_)); }
  void take(const Part&) override { operands_.merge(results_); }
  [[nodiscard]] Verdict verify(const Report& report,
                               const std::function<void(double)>& step) const override {
    return redblue::verify(report, given(), views_of(returned_), step);
  }
  void hand_over(Writers& writers) override;

 private:
  [[nodiscard]] std::vector<float> densified_heads(const Readers& readers, const Signature& operand,
                                                   const Problem& problem, Index heads) const;
  [[nodiscard]] Views given() const {
    Views views = views_of(operands_);
    views.insert(lent_.begin(), lent_.end());
    return views;
  }

  const Topology& topology_;
  Buffers operands_, results_;  // heads one after the other
  Views lent_;                  // operands in the caller's memory
  ViewedResults returned_;      // in results_ or in the caller's memory
};

// Adds the matrices of all heads, the working memory of the run, and the reference values of a
// verification.
OperandHome::MemoryNeed MemoryHome::memory_needed(const Report& report) const {
  const Plan& plan = report.kernel.plan;
  Words bytes = matrix_bytes(report, request_.arrays == nullptr ? Arrays() : *request_.arrays) +
                working_bytes(report);
  // One head of one operand during conversion, with its stored values.
  if (!report.densified.dense()) {
    const Shape& shape = plan.problem.shape;
    bytes += 8 * Words(std::max(shape.n, std::max(shape.m, shape.d))) * shape.d;
  }
  if (request_.verify) {
    bytes += verification_bytes(find_kernel(plan.kernel), plan.problem);
  }
  return {bytes, "take smaller n, m or d, fewer heads, or use count"};
}

// Returns a sparse operand as a dense matrix: the values that a kernel of sparse operands would
// get, and 0 elsewhere.
std::vector<float> MemoryHome::densified_heads(const Readers& readers, const Signature& operand,
                                               const Problem& problem, Index heads) const {
  const BlockPattern& pattern = pattern_of(problem.sparsity, operand);
  std::vector<float> values(words_of(operand, problem.shape));
  std::vector<float> words;
  for (Index head = 0; head < heads; ++head) {
    fill_rows(readers, operand, problem, head, {0, std::ssize(values)}, values);
    std::ranges::copy(
        densified(pattern, std::span(values).first(static_cast<std::size_t>(pattern.stored()))),
        std::back_inserter(words));
  }
  return words;
}

void MemoryHome::bring(Report& report, const Readers& readers) {
  const Problem& problem = report.kernel.plan.problem;
  const Problem one = problem.one_head();
  const Problem sparse =
      report.densified.dense() ? one : one.with_sparsity(report.densified).with_mask({});
  for (const Signature& operand : given_of(report.kernel.plan)) {
    const std::string name(operand.name);
    const auto reader = readers.find(name);
    const InputFile* file = reader == readers.end() ? nullptr : &reader->second;
    if (file == nullptr && made_by_forward(name)) {
      continue;
    }
    const Index heads = heads_of(operand, problem, report.kernel.team.heads);
    const Signature* stored = densified_operand(report, name);
    if (stored != nullptr && (file == nullptr || file->pattern() != nullptr)) {
      operands_[name] = densified_heads(readers, *stored, sparse, heads);
    } else if (file != nullptr && file->lent()) {
      InputFile::reading(name, [&] { file->check_lent(); });
      lent_.emplace(name, *file->lent());
    } else {
      operands_[name] = filled(readers, operand, one, heads);
    }
    for (Index head = 0; file != nullptr && name == kL.name && head < heads; ++head) {
      check_live_sums(one, 0, head_of(given(), operand, one.shape, head),
                      "L of " + file->path().string());
    }
  }
  if (problem.sharing == Sharing::self) {  // the forward kernel reads keys apart
    const Views all = given();
    lent_.emplace(kK.name, all.find(kQ.name)->second);
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

namespace {

// The words of a part, without its operands and results.
struct Working {
  Words arenas, intermediates;
};
Working working_words(const Part& part) {
  const auto& [workers, heads, unwritten] = part.team;
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const Index with_a_head = std::min(workers, heads);
  return {
      total(part.plan.phases).peak * (heads == 1 ? workers : with_a_head),
      kernel.intermediates(part.plan) * with_a_head + partials_of(kernel, part.plan, part.team)};
}

}  // namespace

Words working_bytes(const Report& report) {
  auto [arenas, intermediates] = working_words(report.kernel);
  if (report.forward) {
    const Working forward = working_words(*report.forward);
    arenas = std::max(arenas, forward.arenas);
    intermediates = std::max(intermediates, forward.intermediates);
  }
  return 4 * (intermediates + arenas) +
         Words(KernelMatrices::bytes(find_kernel(report.kernel.plan.kernel))) *
             report.kernel.team.heads;  // matters for small heads
}

}  // namespace redblue
