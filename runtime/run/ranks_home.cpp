#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/attention.hpp"
#include "memsim/ranks/checksum.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "memsim/share.hpp"
#include "runtime/observe/run_counts.hpp"
#include "runtime/ranks/home_messages.hpp"
#include "runtime/ranks/rank_home.hpp"
#include "runtime/ranks/rank_run.hpp"
#include "runtime/ranks/ranks.hpp"
#include "runtime/ranks/transfers.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/operand_home.hpp"
#include "runtime/run/rank_resumption.hpp"
#include "runtime/run/store_rows.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/system/open_files.hpp"

namespace redblue {
namespace {

constexpr std::chrono::hours kAsLongAsItTakes{10000};

// Throws: UsageError if ranks differ in version, build, plan, seed or use of a store.
void check_facts(Transport& transport, const Part& part, const Request& request) {
  const std::vector<std::string> all = transport.gather(
      fmt::format("{}, seed {}{}", text_of_part(request, part), request.seed.value_or(kDefaultSeed),
                  !request.store          ? ""
                  : request.store->resume ? ", with checkpoints"
                                          : ", with homes on disk"));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw UsageError(
          fmt::format("rank {} runs {}, but rank 0 runs {}: start all ranks with one "
                      "build and one command line",
                      rank, all[rank], all[0]));
    }
  }
}

// Returns the facts of all ranks, in the order of ranks. Requires: check_facts() was called,
// because facts travel as bytes that only the same build can read.
template <class Fact>
std::vector<Fact> gather(Transport& transport, const Fact& own) {
  std::vector<Fact> all;
  for (const std::string& bytes :
       transport.gather(std::string(reinterpret_cast<const char*>(&own), sizeof own))) {
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof own);
  }
  return all;
}

// Selects the best vector instructions that all ranks support and none has disabled.
void use_common_simd(Transport& transport) {
  const std::vector<std::string> targets = simd_targets();  // the best first
  const auto chosen = std::ranges::find(targets, simd_target());
  std::string own = "\n";
  std::for_each(chosen, targets.end(), [&](const std::string& target) { own += target + "\n"; });
  const std::vector<std::string> all = transport.gather(own);
  const auto common = std::find_if(chosen, targets.end(), [&](const std::string& target) {
    return std::ranges::all_of(all, [&](const std::string& of_rank) {
      return of_rank.find("\n" + target + "\n") != std::string::npos;
    });
  });
  if (common != targets.end() && common != chosen) {
    use_simd_target(*common);
  }
}

// The store of one rank's homes on disk. It is a folder of the run's directory, and is removed
// together with it.
struct RankStore {
  RankStore(const Request& request, Index rank)
      : folder(folder_of_rank(request, rank)), store(folder, request.store->options) {
    store.remove_temporaries();
  }
  // Removes the folder while the store still holds it, so that no other run can use it.
  ~RankStore() {
    std::error_code not_empty;
    std::filesystem::remove(folder, not_empty);
    std::filesystem::remove(folder.parent_path(), not_empty);
  }

  std::filesystem::path folder;
  Store store;
  Index buffered = 0;  // most words of messages in memory at once
};

class RanksHome final : public OperandHome {
 public:
  explicit RanksHome(const Request& request) : OperandHome(request), on_(*request.on_ranks) {}

  std::vector<FoundOperand> find(const Readers& readers) override;
  [[nodiscard]] MemoryNeed memory_needed(const Report& report) const override;
  void bring(Report& report, const Readers& readers) override {
    report_ = &report;
    readers_ = &readers;
  }
  void run(Part& part, const RunHook& hook) override;
  void check(const Part& part) override;
  void take(const Part& forward) override;
  [[nodiscard]] Verdict verify(const Report& report,
                               const std::function<void(double)>& step) const override;
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
  RankStore* store_of(Index rank);
  void allow_files(const Part& part) const;
  void run_rank_of(const Part& part, Transport& transport);
  // Returns the most words of messages in memory at once, as deal_out() does.
  Index run_head(const Part& part, const GridPlan& of, OfHead which, RankHome& home,
                 Transport& transport, RankCounts& counts);
  // Return the set of a rank, and the heads of a set.
  [[nodiscard]] Index set_of_rank(Index rank) const { return rank / of_.front().grid().ranks(); }
  [[nodiscard]] Range heads_of_set(Index set) const {
    return share_of(heads_, set, std::ssize(of_));
  }
  [[nodiscard]] Index set_of_head(Index head) const { return head * std::ssize(of_) / heads_; }
  [[nodiscard]] bool on_disk() const { return request_.store && !request_.store->resume; }
  void fill(const GridPlan& of, OfHead which, RankHome& home) const;
  Index deal_out(const GridPlan& of, OfHead which, RankHome& home, Transport& transport);
  RankResumption& resume(const Part& part, RankHome& home, Transport& transport);
  void tell_of_stores(StoreReport& stored);
  // Rows of a result that a rank has. In the matrix of its home they begin at row `first`.
  struct Rows {
    Range rows;
    Index rank;
    std::string matrix;
    Index first;
  };
  static std::vector<Rows> rows_of(const GridPlan& of, const Signature& result);
  using TakeRows = std::function<void(const Signature& result, std::span<const float> words)>;
  void collect(const TakeRows& take);

  const OnRanks& on_;
  const Report* report_ = nullptr;
  const Readers* readers_ = nullptr;
  std::mutex mutex_;  // guards members that ranks of this process share
  Index heads_ = 1;
  std::vector<GridPlan> of_, forward_of_;  // one for each set of ranks
  // For ranks in this process: the stores of homes on disk, and the homes. Homes of the forward
  // part hold only O and L.
  std::map<Index, std::unique_ptr<RankStore>> stores_;
  std::map<OfHead, RankHome> homes_, forward_homes_;
  std::optional<Part> forward_;
  std::vector<RankCounts> counts_;
  Buffers results_, forward_results_;  // at the first rank, for verification
  std::vector<std::unique_ptr<RankResumption>> resumptions_;
  StoreReport stored_;  // facts about the checkpoints of all ranks
};

std::vector<FoundOperand> RanksHome::find(const Readers&) {
  if (on_disk() && std::filesystem::exists(request_.store->directory)) {
    for (const auto& entry : std::filesystem::directory_iterator(request_.store->directory)) {
      const std::string file = entry.path().filename().string();
      if (file.ends_with(Store::kSuffix) && !file.ends_with(Store::kTemporarySuffix)) {
        throw UsageError(fmt::format(
            "{}: {} has matrices, and ranks take operands from {} or make them: take another "
            "directory",
            request_.said("store"), request_.store->directory.string(), request_.said("in")));
      }
    }
  }
  return {};
}

// If ranks are threads, all their homes are in this process. The first rank also holds the data of
// a verification.
OperandHome::MemoryNeed RanksHome::memory_needed(const Report& report) const {
  const Plan& plan = report.kernel.plan;
  Words words;
  for (const Part* part : {&report.kernel, report.forward ? &*report.forward : nullptr}) {
    if (part != nullptr) {
      for (Index rank = 0; rank < part->ranks->size(); ++rank) {
        if (on_.transport == nullptr || on_.transport->rank() == rank) {
          const Words home = part->ranks->home(rank);
          words += on_disk() ? std::min(home, Words(HomeMessages::most_buffered())) : home;
          words += plan.M;
        }
      }
    }
  }
  // The first rank verifies with all operands and results in memory.
  const bool verifies = request_.verify && is_first();
  Words bytes = 4 * words;
  if (verifies) {
    bytes += matrix_bytes(report) + verification_bytes(find_kernel(plan.kernel), plan.problem);
  }
  return {bytes, !on_disk()
                     ? "take smaller n, m or d, fewer heads, or more machines, homes on disk "
                       "(--store file:DIR), or use count"
                 : verifies ? "run without --verify, which holds all matrices"
                            : "take a smaller M"};
}

// Visits the rows of a matrix that a rank holds at the start or at the end, in ranges. Calls
// visit(rows, at, words): rows of the problem, the position of their first word at the home, and
// room for their words.
template <class Visit>
void for_own_rows(const GridPlan& of, const Signature& matrix, Index rank, const RankHome& home,
                  const Visit& visit) {
  const Index cols = matrix.cols_of(of.asked().problem.shape);
  Index first = home.own(matrix.name).begin;
  for (const Range rows : of.own_rows(matrix, rank)) {
    for_rows(rows.size(), cols, [&](Range some, std::span<float> words) {
      visit(part_of(rows, some), (first + some.begin) * cols, words);
    });
    first += rows.size();
  }
}

void RanksHome::fill(const GridPlan& of, OfHead which, RankHome& home) const {
  const Plan& plan = of.asked();
  for (const Signature& operand : given_of(plan)) {
    if (!readers_->contains(operand.name) && made_by_forward(operand.name)) {
      continue;
    }
    for_own_rows(of, operand, which.rank, home, [&](Range rows, Index at, std::span<float> words) {
      fill_rows(*readers_, operand, plan.problem, which.head, rows, words);
      home.put(operand.name, at, words);
    });
  }
}

// Sends O and L from the ranks that computed them to the ranks that need their rows at the start.
// Returns the most words of messages in memory at once.
Index RanksHome::deal_out(const GridPlan& of, OfHead which, RankHome& home, Transport& transport) {
  const Index rank = which.rank;
  const GridPlan& makes = forward_of_[static_cast<std::size_t>(set_of_rank(rank))];
  const Plan& forward = makes.asked();
  RankHome& from = forward_homes_.at(which);
  std::vector<HomeMessage> messages;
  Index order = 0;
  home.begin(Purpose::links);
  for (const Signature& result : find_kernel(forward.kernel).returned(forward.problem)) {
    const std::string name(result.name);
    const Ranges own = of.own_rows(result, rank), made = makes.own_rows(result, rank);
    const auto among = [&](const RankHome& its, const Ranges& all, Range rows) {
      const Index first = its.own(name).begin + NumbersWithin(all).below(rows.begin);
      return Range{first, first + rows.size()};
    };
    for (const auto& [rows, other] : makes.owners(own)) {
      if (other == rank) {
        home.copy(name, among(home, own, rows).begin, from, name, among(from, made, rows));
      } else {
        messages.push_back({name, other, rank, &home, name, among(home, own, rows), order});
      }
    }
    for (const auto& [rows, other] : of.owners(made)) {
      if (other != rank) {
        messages.push_back({name, rank, other, &from, name, among(from, made, rows), order});
      }
    }
    ++order;
  }
  HomeMessages dealt(transport, std::move(messages));
  dealt.finish();
  return dealt.buffered();
}

// Returns true if the rank holds a part of the result at the end. A sum ends at the rank of the
// last segment.
bool ends_with(const GridPlan& of, const Signature& result, Index rank) {
  return of_queries(result) || of_keys(result) || rank == of.segments().back().rank;
}

std::vector<RanksHome::Rows> RanksHome::rows_of(const GridPlan& of, const Signature& result) {
  std::vector<Rows> all;
  const auto add = [&](Index rank, const Ranges& ranges, const std::string& matrix) {
    Index first = 0;
    for (const Range rows : ranges) {
      all.push_back({rows, rank, matrix, first});
      first += rows.size();
    }
  };
  for (Index rank = of.ranks().begin; rank < of.ranks().end; ++rank) {
    if (ends_with(of, result, rank)) {
      add(rank, of.own_rows(result, rank), std::string(result.name));
    }
    add(rank, of.dead_rows(result, rank), dead_name(result.name));
  }
  std::ranges::sort(all, {}, [](const Rows& its) { return its.rows.begin; });
  return all;
}

// Calls take() at the first rank for the results of all heads in order, in ranges of rows. The
// other ranks send their rows in messages that are not counted, because a host program would send
// them. Every rank calls this.
void RanksHome::collect(const TakeRows& take) {
  const Plan& plan = of_.front().asked();
  for (const auto& [_, home] : homes_) {
    home.begin(Purpose::results);
  }
  for (const Signature& result : find_kernel(plan.kernel).returned(plan.problem)) {
    const Index cols = result.cols_of(plan.problem.shape);
    for (Index head = 0; head < heads_; ++head) {
      for (const Rows& its : rows_of(of_[static_cast<std::size_t>(set_of_head(head))], result)) {
        const auto home = homes_.find({its.rank, head});
        if (home == homes_.end() && !is_first()) {
          continue;
        }
        for_rows(its.rows.size(), cols, [&](Range some, std::span<float> words) {
          if (home != homes_.end()) {
            const Index first = home->second.own(its.matrix).begin + its.first + some.begin;
            home->second.get(its.matrix, first * cols, words);
          } else {
            on_.transport->receive("", its.rank, words);
          }
          if (is_first()) {
            take(result, words);
          } else {
            on_.transport->send("", 0, words);
          }
        });
      }
    }
  }
  if (on_.transport != nullptr) {  // a rank that fails before this point leaves no results
    static_cast<void>(on_.transport->gather("all results are at the first rank"));
  }
}

Index RanksHome::run_head(const Part& part, const GridPlan& of, OfHead which, RankHome& home,
                          Transport& transport, RankCounts& counts) {
  fill(of, which, home);
  const Links before = transport.links();
  RankResumption* const resumption =
      request_.store && !on_disk() ? &resume(part, home, transport) : nullptr;
  Index buffered = 0;
  if (forward_ && (resumption == nullptr || resumption->deals())) {
    buffered = deal_out(of, which, home, transport);
    if (resumption != nullptr) {
      for (const Signature& result :
           find_kernel(forward_->plan.kernel).returned(part.plan.problem)) {
        home.note(result.name, home.about(result.name).own);
      }
      resumption->have_dealt();
    }
  }
  const RankSteps steps = resumption == nullptr ? RankSteps() : resumption->steps();
  RankRun ran = run_rank(RankPart(of, which.rank), home, transport,
                         resumption == nullptr ? nullptr : &steps, request_.stop);
  add_links(links_since(before, transport.links()), counts.links);
  counts.home += home.words().value();
  if (const auto made = forward_homes_.find(which); made != forward_homes_.end()) {
    counts.home += made->second.words().value();
  }
  counts.seconds_in_links += ran.seconds_in_links;
  if (resumption != nullptr) {
    add_links(resumption->links_before(), counts.links);
    for (const RankResumption::Summary& its : gather(transport, resumption->summary())) {
      if (transport.rank() == 0) {  // the first rank reports for all ranks
        stored_.checkpoints += its.checkpoints;
        stored_.checkpoint_bytes += its.bytes;
        if (its.resumed > 0) {
          stored_.resumed_at = stored_.resumed_at.value_or(0) + its.units;
        }
      }
    }
  }
  if (!counts.arena.phases.empty()) {
    add_counts(counts.arena, ran.arena);
  }
  counts.arena = std::move(ran.arena);
  return std::max(buffered, ran.buffered);
}

// Returns the store of a rank. Null if homes are in memory.
RankStore* RanksHome::store_of(Index rank) {
  if (!on_disk()) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  std::unique_ptr<RankStore>& store = stores_[rank];
  if (store == nullptr) {
    for (const bool makes_forward : {false, true}) {  // refuses checkpoints of an earlier run
      const Resumption none(request_, checkpoint_of_rank(request_, rank, makes_forward));
    }
    std::filesystem::create_directories(request_.store->directory);
    store = std::make_unique<RankStore>(request_, rank);
    if (on_.stored) {
      on_.stored();
    }
  }
  return store.get();
}

// Allows as many open files as the ranks in this process need. Each rank has a file for each matrix
// of one head, and a file for each result of the other heads. Its store has a folder, reserved room
// and request queues.
void RanksHome::allow_files(const Part& part) const {
  constexpr Index kOfStore = 8;
  Words files;
  for (const GridPlan& of : of_) {
    for (Index rank = of.ranks().begin; rank < of.ranks().end; ++rank) {
      if (on_.transport == nullptr || on_.transport->rank() == rank) {
        const RankHome::Files its = RankHome::files(RankPart(of, rank));
        const Index others = std::max<Index>(heads_of_set(set_of_rank(rank)).size() - 1, 0);
        files += its.home + Words(its.handed_over) * others + kOfStore;
      }
    }
  }
  allow_open_files(files, fmt::format("homes on disk of {}", to_string(part.plan)),
                   "take fewer heads, or ranks as processes (mpirun)");
}

void RanksHome::run_rank_of(const Part& part, Transport& transport) {
  check_facts(transport, part, request_);
  const Index set = set_of_rank(transport.rank());
  const GridPlan& of = of_[static_cast<std::size_t>(set)];
  const Range heads = heads_of_set(set);
  RankStore* const store = store_of(transport.rank());
  const RankPart its(of, transport.rank());
  const std::vector<std::string> handed_over = RankHome::handed_over(its);
  // Reserves room for the remaining heads before each head, because the next head can reuse room
  // that the last one freed.
  const auto reserve_for = [&](Index left) {
    if (store != nullptr && left > 0) {
      store->store.reserve(RankHome::file_bytes(its, store->store, left));
    }
  };
  reserve_for(heads.size());
  std::vector<RankHome> homes;
  RankCounts counts;
  for (Index head = heads.begin; head < heads.end; ++head) {
    homes.emplace_back(its, store == nullptr ? nullptr : &store->store);
    const Index buffered =
        run_head(part, of, {transport.rank(), head}, homes.back(), transport, counts);
    if (store != nullptr) {
      store->buffered = std::max(store->buffered, buffered);
      homes.back().keep(handed_over);
    }
    reserve_for(heads.end - head - 1);
  }
  const std::vector<std::string> all = transport.gather(to_text(counts));
  const std::lock_guard lock(mutex_);
  for (Index head = heads.begin; head < heads.end; ++head) {
    homes_.emplace(OfHead{transport.rank(), head},
                   std::move(homes[static_cast<std::size_t>(head - heads.begin)]));
  }
  if (counts_.empty()) {  // only once if ranks are threads
    for (const std::string& of_rank : all) {
      counts_.push_back(parse_rank_counts(of_rank));
    }
  }
}

RankResumption& RanksHome::resume(const Part& part, RankHome& home, Transport& transport) {
  std::vector<std::string> facts = {text_of_part(request_, part)};
  if (forward_) {
    facts.push_back("O and L of " + to_string(forward_->plan));
  }
  for (const Signature& operand : given_of(part.plan)) {
    if (readers_->contains(operand.name) || !made_by_forward(operand.name)) {
      const Range own = home.own(operand.name);
      const Index cols = operand.cols_of(part.plan.problem.shape);
      const std::span<const float> words =
          home.in_memory(operand.name, {own.begin * cols, own.end * cols});
      facts.push_back(fmt::format("{} of checksum {:016x}", operand.name, checksum_of(words)));
    }
  }
  auto resumption = std::make_unique<RankResumption>(request_, report_->forward && !forward_, facts,
                                                     home, transport, forward_.has_value());
  const std::lock_guard lock(mutex_);
  return *resumptions_.emplace_back(std::move(resumption));
}

// Adds up the traffic of all stores. Every rank gets the sum.
void RanksHome::tell_of_stores(StoreReport& stored) {
  std::vector<StoreReport::OfRank> all;
  for (const auto& [_, its] : stores_) {
    stored = report_of(its->store);
    all.push_back({stored.traffic, its->buffered, stored.resident});
  }
  stored.ranks = on_.transport == nullptr ? all : gather(*on_.transport, all.front());
  for (StoreReport::OfPurpose& sum : stored.traffic) {
    sum.traffic = {};
  }
  for (const StoreReport::OfRank& its : stored.ranks) {
    stored.resident = std::max(stored.resident, its.resident);
    for (std::size_t k = 0; k < its.traffic.size(); ++k) {
      stored.traffic[k].traffic.read += its.traffic[k].traffic.read;
      stored.traffic[k].traffic.written += its.traffic[k].traffic.written;
    }
  }
}

void RanksHome::finish(Report& report) {
  if (!request_.store) {
    return;
  }
  StoreReport& stored = report.store.emplace(stored_);
  stored.directory = request_.store->directory.string();
  stored.resident = resident_bytes();
  if (on_.transport != nullptr) {  // meanwhile the first rank verifies and writes results
    on_.transport->wait_at_most(kAsLongAsItTakes);
  }
  if (on_disk()) {
    tell_of_stores(stored);
    homes_.clear();
    forward_homes_.clear();
    stores_.clear();
    return;
  }
  if (on_.transport != nullptr) {
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
    throw UsageError(fmt::format("{}: a run is measured on one machine", request_.said("grid")));
  }
  const Kernel& kernel = find_kernel(part.plan.kernel);
  homes_.clear();
  heads_ = part.team.heads;
  of_.clear();
  for (Index set = 0; set < part.ranks->sets; ++set) {
    of_.emplace_back(kernel, part.plan, part.ranks->grid, set * part.ranks->grid.ranks());
  }
  if (on_disk()) {
    allow_files(part);
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
  if (request_.verify) {
    collect([&](const Signature& result, std::span<const float> words) {
      std::vector<float>& all = results_[std::string(result.name)];
      all.insert(all.end(), words.begin(), words.end());
    });
  }
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
  for (const auto& its : homes_) {
    const OfHead which = its.first;
    const RankHome& home = its.second;
    const GridPlan& of = of_[static_cast<std::size_t>(set_of_rank(which.rank))];
    const std::string head = heads_ > 1 ? fmt::format("head {}, ", which.head) : "";
    home.begin(Purpose::results);
    for (const Signature& result : kernel.returned(part.plan.problem)) {
      if (ends_with(of, result, which.rank)) {
        for_own_rows(of, result, which.rank, home,
                     [&](Range rows, Index at, std::span<float> words) {
                       home.get(result.name, at, words);
                       check_finite(kernel, result, part.plan.problem, rows.begin, words, head);
                     });
      }
    }
  }
  // No result is written if a rank has found a fault in it.
  if (on_.transport != nullptr) {
    static_cast<void>(on_.transport->gather("results are checked"));
  }
}

void RanksHome::take(const Part& forward) {
  forward_ = forward;
  for (const GridPlan& of : of_) {
    forward_of_.emplace_back(find_kernel(forward_->plan.kernel), forward_->plan, of.grid(),
                             of.ranks().begin);
  }
  std::vector<std::string> made;
  for (const Signature& result : find_kernel(forward.plan.kernel).returned(forward.plan.problem)) {
    made.emplace_back(result.name);
  }
  for (auto& [_, home] : homes_) {
    home.keep(made);
  }
  forward_homes_ = std::exchange(homes_, {});
  forward_results_ = std::exchange(results_, {});
}

// Verifies with all operands made or read again, and with O and L as the forward part computed
// them.
Verdict RanksHome::verify(const Report& report, const std::function<void(double)>& step) const {
  if (!is_first()) {
    return {};
  }
  const Plan& plan = report.kernel.plan;
  Buffers operands;
  for (const Signature& operand : given_of(plan)) {
    const auto made = forward_results_.find(operand.name);
    operands[std::string(operand.name)] = made != forward_results_.end()
                                              ? made->second
                                              : filled(*readers_, operand, plan.problem, heads_);
  }
  return redblue::verify(report, views_of(operands), views_of(results_), step);
}

void RanksHome::hand_over(Writers& writers) {
  if (request_.verify) {
    for (auto& [name, writer] : writers) {
      writer.append(results_.find(name)->second);
    }
  } else if (on_.collect) {
    if (!is_first()) {
      on_.transport->wait_at_most(kAsLongAsItTakes);
    }
    collect([&](const Signature& result, std::span<const float> words) {
      const auto [first, end] = writers.equal_range(std::string(result.name));
      std::for_each(first, end, [&](auto& writer) { writer.second.append(words); });
    });
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
