#include "runtime/run/ranks_home.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/attention.hpp"
#include "memsim/ranks/checksum.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "memsim/share.hpp"
#include "runtime/observe/run_counts.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/ranks/transfers.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/rank_resumption.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {
namespace {

// What all ranks of a run must have in common.
std::string facts(const Part& part, const Request& request) {
  return fmt::format("redblue {} ({}, {}), {} on {}, seed {}{}", build_info::kVersion,
                     build_info::kCompiler, build_info::kBuildType, to_string(part.plan),
                     to_string(part.ranks->grid), request.seed.value_or(kDefaultSeed),
                     request.store ? ", with checkpoints" : "");
}

// Throws: RequestError where ranks are of other versions, builds or plans.
void check_facts(Transport& transport, const std::string& own) {
  const std::vector<std::string> all = transport.gather(own);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw RequestError(
          fmt::format("rank {} runs {}, but rank 0 runs {}: start all ranks with one "
                      "build and one command line",
                      rank, all[rank], all[0]));
    }
  }
}

// Vector instructions that all ranks have: the first of rank 0's that no rank lacks.
void use_common_simd(Transport& transport) {
  std::string own;
  for (const std::string& target : simd_targets()) {
    own += target + "\n";
  }
  const std::vector<std::string> all = transport.gather(simd_target() + "\n" + own);
  std::vector<std::string> chosen;
  for (const std::string& of_rank : all) {
    chosen.push_back(of_rank.substr(0, of_rank.find('\n')));
  }
  if (std::ranges::all_of(chosen, [&](const std::string& its) { return its == chosen[0]; })) {
    return;
  }
  for (const std::string& target : simd_targets()) {
    const bool common = std::ranges::all_of(all, [&](const std::string& of_rank) {
      return of_rank.find("\n" + target + "\n") != std::string::npos;
    });
    const bool no_better =
        std::ranges::any_of(chosen, [&](const std::string& its) { return its == target; });
    if (common && no_better) {
      use_simd_target(target);
      return;
    }
  }
}

class RanksHome final : public OperandHome {
 public:
  explicit RanksHome(const Request& request) : request_(request), on_(*request.on_ranks) {}

  std::vector<FoundOperand> find(const Readers&) override { return {}; }
  void accept(const RequestedProblem&) const override {}
  [[nodiscard]] MemoryNeed memory_needed(const Report& report) const override;
  void clear() override {}
  void bring(Report& report, const Readers& readers) override {
    report_ = &report;
    readers_ = &readers;
  }
  void run(Part& part, const RunHook& hook) override;
  void check(const Part& part) override;
  void take(const Part& forward) override;
  [[nodiscard]] Verdict verify(const Report& report) const override;
  void hand_over(Writers& writers) override;
  void finish(Report& report) override;

 private:
  struct OfHead {
    Index rank, head;
    friend auto operator<=>(const OfHead&, const OfHead&) = default;
  };

  [[nodiscard]] bool is_first() const {
    return on_.transport == nullptr || on_.transport->rank() == 0;
  }
  void run_rank_of(const Part& part, Transport& transport);
  void run_head(const Part& part, const GridPlan& of, OfHead which, RankHome& home,
                Transport& transport, RankCounts& counts);
  // The set of a rank, and the heads of a set.
  [[nodiscard]] Index set_of_rank(Index rank) const { return rank / of_.front().grid().ranks(); }
  [[nodiscard]] Range heads_of_set(Index set) const {
    return share_of(heads_, set, std::ssize(of_));
  }
  void fill(const GridPlan& of, OfHead which, RankHome& home) const;
  void fill_rows(const Signature& operand, const Problem& problem, Index head, Range rows,
                 std::span<float> words) const;
  void deal_out(const GridPlan& of, OfHead which, RankHome& home, Transport& transport);
  [[nodiscard]] Index words_of_forward(OfHead which) const;
  [[nodiscard]] RankCheckpoints::Facts facts_of_checkpoint(const Part& part, RankHome& home) const;
  RankResumption& resume(const Part& part, RankHome& home, Transport& transport);
  void tell(const RankResumption& resumption, Transport& transport);
  void collect(std::vector<RankHome>& homes, Transport& transport);

  const Request& request_;
  const Request::OnRanks& on_;
  const Report* report_ = nullptr;
  const Readers* readers_ = nullptr;
  std::mutex mutex_;  // of what ranks of this process share
  Index heads_ = 1;
  std::vector<GridPlan> of_, forward_of_;  // of each set of ranks
  std::map<OfHead, RankHome> homes_;       // of ranks in this process
  // The forward part, and what it made: rows of O and L by ranks, and all of them at the first
  // rank.
  std::optional<Part> forward_;
  std::map<OfHead, Buffers> forward_rows_;
  Buffers forward_results_;
  std::vector<RankCounts> counts_;
  Buffers results_;  // at the first rank
  std::vector<std::unique_ptr<RankResumption>> resumptions_;
  std::vector<RankResumption::Told> told_;  // of all ranks, each of both parts
};

// The homes of ranks that are threads are in this process, all of them; and results, and what is
// verified.
OperandHome::MemoryNeed RanksHome::memory_needed(const Report& report) const {
  const Plan& plan = report.kernel.plan;
  const Kernel& kernel = find_kernel(plan.kernel);
  Words words;
  for (const Part* part : {&report.kernel, report.forward ? &*report.forward : nullptr}) {
    if (part != nullptr) {
      for (Index rank = 0; rank < part->ranks->size(); ++rank) {
        if (on_.transport == nullptr || on_.transport->rank() == rank) {
          words += part->ranks->home(rank) + plan.M;
        }
      }
    }
  }
  for (const Signature& result : kernel.returned(plan.problem)) {
    words += Words(result.rows_of(plan.problem.shape)) * result.cols_of(plan.problem.shape) *
             report.kernel.team.heads;
  }
  Words bytes = 4 * words;
  if (request_.verify) {
    bytes += verification_bytes(kernel, plan.problem);
  }
  return {bytes, "take smaller n, m or d, fewer heads, or more machines, or use count"};
}

void RanksHome::fill_rows(const Signature& operand, const Problem& problem, Index head, Range rows,
                          std::span<float> words) const {
  if (rows.size() == 0) {
    return;
  }
  const auto reader = readers_->find(operand.name);
  if (reader != readers_->end()) {
    const Index before = head * operand.rows_of(problem.shape);
    reader->second.read_rows({before + rows.begin, before + rows.end}, words);
  } else {
    fill_made(request_, operand, problem, head, rows.begin, rows.size(), words);
  }
}

void RanksHome::fill(const GridPlan& of, OfHead which, RankHome& home) const {
  const Plan& plan = of.asked();
  for (const Signature& operand : given_of(plan)) {
    if (!readers_->contains(operand.name) && made_by_forward(operand.name)) {
      continue;
    }
    std::span<float> words = home.own(operand.name);
    for (const Range rows : of.own_rows(operand, which.rank)) {
      const auto size = static_cast<std::size_t>(rows.size() * operand.cols_of(plan.problem.shape));
      fill_rows(operand, plan.problem, which.head, rows, words.first(size));
      words = words.subspan(size);
    }
  }
}

// Some of the rows that follow each other in `words`.
std::span<float> rows_among(std::span<float> words, const Ranges& all, Range rows, Index cols) {
  return words.subspan(static_cast<std::size_t>(NumbersWithin(all).below(rows.begin) * cols),
                       static_cast<std::size_t>(rows.size() * cols));
}

void await_all(const std::vector<std::unique_ptr<Fetch>>& messages) {
  for (const auto& message : messages) {
    message->finish();
  }
}

// O and L go from the ranks that made them to those that begin with their rows.
void RanksHome::deal_out(const GridPlan& of, OfHead which, RankHome& home, Transport& transport) {
  const Index rank = which.rank;
  const GridPlan& makes = forward_of_[static_cast<std::size_t>(set_of_rank(rank))];
  const Plan& forward = makes.asked();
  Buffers& from = forward_rows_.at(which);
  std::vector<std::unique_ptr<Fetch>> messages;
  for (const Signature& result : find_kernel(forward.kernel).returned(forward.problem)) {
    const Index cols = result.cols_of(forward.problem.shape);
    const std::span<float> to = home.own(result.name);
    const std::span<float> these = from.find(result.name)->second;
    const Ranges own = of.own_rows(result, rank), made = makes.own_rows(result, rank);
    for (const auto& [rows, other] : makes.owners(own)) {
      const std::span<float> words = rows_among(to, own, rows, cols);
      if (other == rank) {
        std::ranges::copy(rows_among(these, made, rows, cols), words.begin());
      } else {
        messages.push_back(transport.begin_receive(result.name, other, words));
      }
    }
    for (const auto& [rows, other] : of.owners(made)) {
      if (other != rank) {
        messages.push_back(
            transport.begin_send(result.name, other, rows_among(these, made, rows, cols)));
      }
    }
  }
  await_all(messages);
}

// Sums are at the rank of the last segment.
bool ends_with(const GridPlan& of, const Signature& result, Index rank) {
  return of_queries(result) || of_keys(result) || rank == of.segments().back().rank;
}

// Results of all heads to the first rank, in messages that are not counted, as those of a host
// program.
void RanksHome::collect(std::vector<RankHome>& homes, Transport& transport) {
  const Plan& plan = of_.front().asked();
  const Shape& shape = plan.problem.shape;
  const Index rank = transport.rank();
  std::vector<std::unique_ptr<Fetch>> messages;
  const auto collect_rows = [&](const Signature& result, OfHead from, const Ranges& rows,
                                const std::string& name) {
    const Index cols = result.cols_of(shape);
    for (const Range range : rows) {
      const auto here = [&] {
        const Index first = heads_of_set(set_of_rank(rank)).begin;
        RankHome& home = homes[static_cast<std::size_t>(from.head - first)];
        return rows_among(home.rows(name, home.about(name).own), rows, range, cols);
      };
      const auto there = [&] {
        const Index before = from.head * result.rows_of(shape);
        return std::span(results_.find(result.name)->second)
            .subspan(static_cast<std::size_t>((before + range.begin) * cols),
                     static_cast<std::size_t>(range.size() * cols));
      };
      if (rank == 0 && from.rank == 0) {
        std::ranges::copy(here(), there().begin());
      } else if (rank == 0) {
        messages.push_back(transport.begin_receive("", from.rank, there()));
      } else if (from.rank == rank) {
        messages.push_back(transport.begin_send("", 0, here()));
      }
    }
  };
  for (const GridPlan& of : of_) {
    const Range heads = heads_of_set(set_of_rank(of.ranks().begin));
    for (Index head = heads.begin; head < heads.end; ++head) {
      for (const Signature& result : find_kernel(plan.kernel).returned(plan.problem)) {
        for (Index other = of.ranks().begin; other < of.ranks().end; ++other) {
          const OfHead from{other, head};
          if (ends_with(of, result, other)) {
            collect_rows(result, from, of.own_rows(result, other), std::string(result.name));
          }
          collect_rows(result, from, of.dead_rows(result, other), dead_name(result.name));
        }
      }
    }
  }
  await_all(messages);
}

void RanksHome::run_head(const Part& part, const GridPlan& of, OfHead which, RankHome& home,
                         Transport& transport, RankCounts& counts) {
  fill(of, which, home);
  const Links before = transport.links();
  RankResumption* const resumption = request_.store ? &resume(part, home, transport) : nullptr;
  if (forward_ && (resumption == nullptr || resumption->deals())) {
    deal_out(of, which, home, transport);
    if (resumption != nullptr) {
      for (const Signature& result :
           find_kernel(forward_->plan.kernel).returned(part.plan.problem)) {
        home.note(result.name, home.about(result.name).own);
      }
      resumption->have_dealt();
    }
  }
  std::optional<RankSteps> steps;
  if (resumption != nullptr) {
    steps = resumption->steps();
  }
  RankRun ran = run_rank(RankPart(of, which.rank), home, transport, steps ? &*steps : nullptr);
  add_links(links_since(before, transport.links()), counts.links);
  counts.home += home.words().value() + words_of_forward(which);
  counts.seconds_in_links += ran.seconds_in_links;
  if (resumption != nullptr) {
    add_links(resumption->links_before(), counts.links);
    tell(*resumption, transport);
  }
  if (!counts.arena.phases.empty()) {
    add_counts(counts.arena, ran.arena);
  }
  counts.arena = std::move(ran.arena);
}

void RanksHome::run_rank_of(const Part& part, Transport& transport) {
  check_facts(transport, facts(part, request_));
  const Index set = set_of_rank(transport.rank());
  const GridPlan& of = of_[static_cast<std::size_t>(set)];
  const Range heads = heads_of_set(set);
  std::vector<RankHome> homes;
  RankCounts counts;
  for (Index head = heads.begin; head < heads.end; ++head) {
    homes.emplace_back(RankPart(of, transport.rank()));
    run_head(part, of, {transport.rank(), head}, homes.back(), transport, counts);
  }
  const std::vector<std::string> all = transport.gather(to_text(counts));
  if (on_.collect) {
    collect(homes, transport);
    // A rank that fails until here leaves no results.
    static_cast<void>(transport.gather("all results are at the first rank"));
  }
  const std::lock_guard lock(mutex_);
  for (Index head = heads.begin; head < heads.end; ++head) {
    homes_.emplace(OfHead{transport.rank(), head},
                   std::move(homes[static_cast<std::size_t>(head - heads.begin)]));
  }
  if (counts_.empty()) {  // once, of ranks that are threads
    for (const std::string& of_rank : all) {
      counts_.push_back(parse_rank_counts(of_rank));
    }
  }
}

RankCheckpoints::Facts RanksHome::facts_of_checkpoint(const Part& part, RankHome& home) const {
  const Problem& problem = part.plan.problem;
  RankCheckpoints::Facts its{.run = fmt::format("{} in {}", facts(part, request_), simd_target()),
                             .operands = {}};
  if (request_.softmax_scale) {
    its.run += fmt::format(", softmax scale {}", *request_.softmax_scale);
  }
  if (!problem.mask.full()) {
    its.run += fmt::format(", mask of fingerprint {}", fingerprint_of(problem.mask, problem.shape));
  }
  if (forward_) {
    its.run += fmt::format(", O and L of {}", to_string(forward_->plan));
  }
  for (const Signature& operand : given_of(part.plan)) {
    if (readers_->contains(operand.name) || !made_by_forward(operand.name)) {
      its.operands[std::string(operand.name)] =
          checksum_of(std::span<const float>(home.own(operand.name)));
    }
  }
  return its;
}

RankResumption& RanksHome::resume(const Part& part, RankHome& home, Transport& transport) {
  const bool makes_forward = report_->forward && !forward_;
  auto resumption = std::make_unique<RankResumption>(
      request_, makes_forward ? "forward" : "redblue", facts_of_checkpoint(part, home), home,
      transport, forward_.has_value());
  const std::lock_guard lock(mutex_);
  return *resumptions_.emplace_back(std::move(resumption));
}

// Each rank knows what all did: the first says it.
void RanksHome::tell(const RankResumption& resumption, Transport& transport) {
  const RankResumption::Told& its = resumption.told();
  const std::vector<std::string> all = transport.gather(
      fmt::format("{} {} {} {}", its.checkpoints, its.bytes, its.resumed ? 1 : 0, its.units));
  if (transport.rank() == 0) {
    for (const std::string& of_rank : all) {
      std::istringstream text(of_rank);
      RankResumption::Told& told = told_.emplace_back();
      text >> told.checkpoints >> told.bytes >> told.resumed >> told.units;
    }
  }
}

void RanksHome::finish(Report& report) {
  if (!request_.store) {
    return;
  }
  StoreReport& stored = report.store.emplace();
  stored.directory = request_.store->directory.string();
  for (const RankResumption::Told& told : told_) {
    stored.checkpoints += told.checkpoints;
    stored.checkpoint_bytes += told.bytes;
    if (told.resumed) {
      stored.resumed_at = stored.resumed_at.value_or(0) + told.units;
    }
  }
  stored.resident = resident_bytes();
  if (on_.transport != nullptr) {  // the first rank verifies and writes results meanwhile
    constexpr std::chrono::hours kAsLongAsItTakes{10000};
    on_.transport->wait_at_most(kAsLongAsItTakes);
    static_cast<void>(on_.transport->gather("all that is wanted is written"));
  }
  for (const auto& resumption : resumptions_) {
    resumption->remove();
  }
  std::error_code not_empty;
  std::filesystem::remove(request_.store->directory, not_empty);
}

void RanksHome::run(Part& part, const RunHook& hook) {
  if (hook) {
    throw RequestError(
        fmt::format("{}: a run is measured on one machine", request_.said("--grid")));
  }
  const Kernel& kernel = find_kernel(part.plan.kernel);
  homes_.clear();
  heads_ = part.team.heads;
  of_.clear();
  for (Index set = 0; set < part.ranks->sets; ++set) {
    of_.emplace_back(kernel, part.plan, part.ranks->grid, set * part.ranks->grid.ranks());
  }
  if (is_first() && on_.collect) {
    results_ = result_buffers(kernel, part.plan.problem, heads_);
  }
  const auto start = std::chrono::steady_clock::now();
  if (on_.transport != nullptr) {
    on_.transport->wait_at_most(on_.patience);
    use_common_simd(*on_.transport);
    run_rank_of(part, *on_.transport);
  } else {
    run_ranks(part.ranks->size(), [&](Transport& transport) {
      transport.wait_at_most(on_.patience);
      run_rank_of(part, transport);
    });
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  part.counted = no_counts(part.formula);
  for (const RankCounts& counts : counts_) {
    for (std::size_t k = 0; k < counts.arena.phases.size(); ++k) {
      const PhaseCounts& phase = counts.arena.phases[k];
      const auto at = std::ranges::find(part.counted->phases, phase.path, &PhaseCounts::path);
      *at += phase;
      part.counted->seconds->phases[static_cast<std::size_t>(at - part.counted->phases.begin())] +=
          counts.arena.seconds->phases[k] / static_cast<double>(counts_.size());
    }
    part.counted->total += counts.arena.total;
    part.counted->largest = std::max(*part.counted->largest, *counts.arena.largest);
    part.counted->span = std::max(*part.counted->span, *counts.arena.span);
  }
  part.counted->seconds->total = took.count();
  part.ranks->counted = std::move(counts_);
  counts_.clear();
}

void RanksHome::check(const Part& part) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  for (auto& [which, home] : homes_) {
    const GridPlan& of = of_[static_cast<std::size_t>(set_of_rank(which.rank))];
    for (const Signature& result : kernel.returned(part.plan.problem)) {
      if (!ends_with(of, result, which.rank)) {
        continue;
      }
      std::span<float> words = home.own(result.name);
      for (const Range rows : of.own_rows(result, which.rank)) {
        const auto size =
            static_cast<std::size_t>(rows.size() * result.cols_of(part.plan.problem.shape));
        check_finite(kernel, result, part.plan.problem, rows.begin, words.first(size),
                     heads_ > 1 ? fmt::format("head {}, ", which.head) : "");
        words = words.subspan(size);
      }
    }
  }
}

void RanksHome::take(const Part& forward) {
  forward_ = forward;
  for (const GridPlan& of : of_) {
    forward_of_.emplace_back(find_kernel(forward_->plan.kernel), forward_->plan, of.grid(),
                             of.ranks().begin);
  }
  for (auto& [which, home] : homes_) {
    for (const Signature& result :
         find_kernel(forward.plan.kernel).returned(forward.plan.problem)) {
      const std::span<const float> own = home.own(result.name);
      forward_rows_[which].emplace(result.name, std::vector<float>(own.begin(), own.end()));
    }
  }
  homes_.clear();
  forward_results_ = std::move(results_);
}

Index RanksHome::words_of_forward(OfHead which) const {
  const auto found = forward_rows_.find(which);
  Index words = 0;
  if (found != forward_rows_.end()) {
    for (const auto& [_, rows] : found->second) {
      words += std::ssize(rows);
    }
  }
  return words;
}

// All operands, made or read again, and O and L as the forward part made them.
Verdict RanksHome::verify(const Report& report) const {
  if (!is_first()) {
    return {};
  }
  const Plan& plan = report.kernel.plan;
  Buffers operands;
  for (const Signature& operand : given_of(plan)) {
    std::vector<float>& words = operands[std::string(operand.name)];
    if (const auto made = forward_results_.find(operand.name); made != forward_results_.end()) {
      words = made->second;
      continue;
    }
    const Shape& shape = plan.problem.shape;
    const Index rows = operand.rows_of(shape);
    words = buffer_for(operand, shape, heads_);
    for (Index head = 0; head < heads_; ++head) {
      fill_rows(
          operand, plan.problem, head, {0, rows},
          std::span(words).subspan(static_cast<std::size_t>(head * rows * operand.cols_of(shape)),
                                   static_cast<std::size_t>(rows * operand.cols_of(shape))));
    }
  }
  return redblue::verify(report, views_of(operands), views_of(results_));
}

void RanksHome::hand_over(Writers& writers) {
  if (!is_first()) {
    return;
  }
  for (auto& [name, writer] : writers) {
    writer.append(results_.find(name)->second);
  }
  for (auto& [name, writer] : writers) {
    writer.commit();
  }
}

}  // namespace

std::unique_ptr<OperandHome> ranks_home(const Request& request) {
  return std::make_unique<RanksHome>(request);
}

}  // namespace redblue
