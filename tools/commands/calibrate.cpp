// redblue calibrate: finds the share of L1 and of L2 that makes the fastest M on this machine. Also
// finds the shares at which the cache moves exactly the counted words, and times all kernels.
// --objective time reads the resulting file.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "memsim/sanitized.hpp"
#include "memsim/words.hpp"
#include "runtime/observe/counters.hpp"
#include "runtime/observe/exp_speed.hpp"
#include "runtime/observe/fma_peak.hpp"
#include "runtime/observe/machine_file.hpp"
#include "runtime/observe/word_time.hpp"
#include "runtime/ranks/ping.hpp"
#include "runtime/report/calibration.hpp"
#include "runtime/report/context.hpp"
#include "runtime/run/timed_problem.hpp"
#include "runtime/system/journal.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"
#include "tools/cli/program.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/measuring.hpp"

namespace redblue {
namespace {

constexpr std::array kShares = {0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0};
constexpr std::array kLevels = {CacheLevel::L1, CacheLevel::L2};
constexpr Index kTimedQueries = 2048;  // about 50 ms for each run
constexpr Index kWidth = 64;
// Few rounds in a sanitizer build: its times are useless.
constexpr Index kRounds = kSanitized ? 3 : 15;
// Limits for the rates, which cover all kernels, some of them slow: queries, rounds, and seconds
// for each plan.
constexpr Index kRateQueries = 1024;
constexpr Index kRateRounds = kSanitized ? 1 : 9;
constexpr double kRateSeconds = 0.3;
constexpr std::array kRateWidths = {Index{64}, Index{128}};
constexpr double kRateShare = 0.75;
constexpr double kFarApart = 20;  // ratio of the words per flop of two plans

constexpr const char* kJournalRemedy = "remove that file, and the pieces are measured again";

// A measurement, and its name for messages about a damaged journal.
struct Measured {
  Json json;
  std::string place;

  [[nodiscard]] JsonField field() const { return {json, place, kJournalRemedy}; }
};

// Keeps finished measurements in a journal next to the target file. After an interruption, the next
// call of the same program on the same machine continues from it.
class Kept {
 public:
  Kept(const std::filesystem::path& target, const Json& head) {
    if (is_stream(target)) {  // a stream has no directory for a journal
      return;
    }
    journal_.emplace(target.string() + ".part");
    const std::vector<std::string>& lines = journal_->lines();
    if (lines.empty() || lines.front() != head.dump()) {
      journal_->clear();
      journal_->append(head.dump() + "\n");
      return;
    }
    for (std::size_t k = 1; k < lines.size(); ++k) {
      const std::string place = fmt::format("{}, line {}", journal_->path().string(), k + 1);
      const Json line = parse_json(lines[k], place);
      constexpr std::size_t kPair = 2;
      const std::vector<JsonField> pair = JsonField(line, place, kJournalRemedy).items(kPair);
      pieces_[pair[0].text()] = {pair[1].json(), place};
    }
    say(fmt::format("{} measured before: continuing", counted(std::ssize(pieces_), "piece")));
  }

  // Returns the measurement of this piece: from an earlier call, or by calling `measure`. Throws:
  // Interrupted.
  template <class Measure>
  Measured operator()(const std::string& piece, const Measure& measure) {
    if (const auto known = pieces_.find(piece); known != pieces_.end()) {
      return known->second;
    }
    stop();
    Measured measured{measure(), piece};
    stop();  // drops a measurement that a signal disturbed
    if (journal_) {
      journal_->append(Json::array({piece, measured.json}).dump() + "\n");
    }
    return measured;
  }
  // Throws: Interrupted if a signal came. The message names the journal.
  void stop() const {
    try {
      stop_();
    } catch (const Interrupted& asked) {
      throw Interrupted(journal_ ? fmt::format("{}: what was measured is kept in {}; the same "
                                               "command continues",
                                               asked.what(), journal_->path().string())
                                 : asked.what());
    }
  }
  // Removes the journal. Requires: the target file has all results.
  void remove() {
    if (journal_) {
      journal_->remove();
    }
  }

 private:
  const std::function<void()> stop_ = stop_if_asked();
  std::optional<Journal> journal_;
  std::map<std::string, Measured> pieces_;
};

// Reports progress if no terminal shows a status line.
void begin(const StatusLine& status, const std::string& part) {
  if (!status.visible()) {
    say(part);
  }
}

std::vector<CalibratedCache> caches_of(const Topology& topology) {
  std::vector<CalibratedCache> caches;
  for (const CacheLevel level : kLevels) {
    if (topology.cache(level) == nullptr) {
      continue;
    }
    CalibratedCache& cache = caches.emplace_back();
    cache.level = level;
    for (const double share : kShares) {
      const FastMemoryPart part = *fast_memory(topology, {level, share});
      cache.bytes = part.bytes;
      if (part.words > 0) {
        cache.shares.push_back({.share = share, .words = part.words});
      }
    }
  }
  if (caches.empty()) {
    throw std::runtime_error(
        fmt::format("neither L1 nor L2 is known here ({}): there is nothing "
                    "to calibrate",
                    topology.source));
  }
  return caches;
}

MemoryClaim memory_for(const Shape& shape) {
  constexpr Index kMatrices = 8;  // operands, O, and the forward pass
  return {nullptr, Words(shape.n) * shape.d * (kMatrices * Index{sizeof(float)}),
          fmt::format("calibrate with n = {}", shape.n), "take a smaller n"};
}

// Times all shares in each round, so that other work on the machine affects all shares alike.
void time(std::vector<CalibratedCache>& caches, const Shape& shape, StatusLine& status,
          Kept& kept) {
  const Kernel& kernel = find_kernel(kTimedKernel);
  const Index least = kernel.least_M(Problem(shape));
  TimedProblem timed({&kernel}, shape);
  std::vector<MeasuredShare*> shares;
  for (CalibratedCache& cache : caches) {
    for (MeasuredShare& share : cache.shares) {
      if (share.words >= least) {
        shares.push_back(&share);
      }
    }
  }
  begin(status, fmt::format("timing {} with {}, {} rounds", kTimedKernel,
                            counted(std::ssize(shares), "size") + " of M", kRounds));
  std::vector<std::vector<double>> samples(shares.size());
  for (Index round = 0; round < kRounds; ++round) {
    status.show(fmt::format("{}: round {} of {}", kTimedKernel, round + 1, kRounds));
    const Measured row = kept(fmt::format("{} {}", kTimedKernel, round), [&] {
      Json measured = Json::array();
      for (const MeasuredShare* share : shares) {
        kept.stop();
        measured.push_back(timed.of_peak(share->words));
      }
      return measured;
    });
    const std::vector<JsonField> numbers = row.field().items(shares.size());
    for (std::size_t k = 0; k < shares.size(); ++k) {
      samples[k].push_back(numbers[k].measure());
    }
  }
  for (std::size_t k = 0; k < shares.size(); ++k) {
    shares[k]->of_peak = median(std::move(samples[k]));
  }
}

// A plan that is timed for a kernel's rates.
struct TimedPlan {
  TimedProblem* problem;
  Plan plan;
  std::vector<double> seconds = {};
  double spent = 0;
};

// Returns the plans of one width, one for three quarters of each cache. If no cache is large
// enough, M is twice the least M, because some kernels repeat work at the least M. If two plans
// differ much in words per flop, a plan between them is added: two points would miss the bend of
// the curve.
std::vector<TimedPlan> plans_for_rates(TimedProblem& timed, const KernelName& name,
                                       const Shape& shape,
                                       const std::vector<CalibratedCache>& caches, Index granule) {
  const Kernel& kernel = *name.kernel;
  const Problem problem(shape, name.sharing);
  const Index least = kernel.least_M(problem);
  std::vector<TimedPlan> plans;
  const auto add = [&](Index M) {
    plans.push_back({&timed, kernel.plan(problem, M, Objective::time)});
  };
  const auto words_of = [&](std::size_t which) {
    return words_per_flop(plans[which].plan, granule);
  };
  std::optional<std::size_t> before;  // index of the plan of the previous cache
  for (const CalibratedCache& cache : caches) {
    const auto M = static_cast<Index>(kRateShare * static_cast<double>(cache.bytes) / 4);
    if (M < least) {
      continue;
    }
    const std::size_t last = plans.size();
    add(M);
    if (before && words_of(*before) > kFarApart * words_of(last)) {
      add(static_cast<Index>(
          std::sqrt(static_cast<double>(plans[*before].plan.M) * static_cast<double>(M))));
    }
    before = last;
  }
  if (plans.empty()) {
    add(2 * least);
  }
  return plans;
}

// Times all plans in each round, as above. The fastest round counts: the rounds are too few for a
// median, and disturbances only add time.
Rates rates(const std::vector<CalibratedCache>& caches, const Topology& topology, Index n,
            StatusLine& status, Kept& kept) {
  Rates all;
  if (const Cache* nearest = topology.cache(caches.front().level); nearest->line) {
    all.granule = std::max(Index{1}, *nearest->line / Index{sizeof(float)});
  }
  for (const KernelName& name : kernel_names()) {
    all.kernels.push_back({name.text(), {}});
  }
  for (const Index d : kRateWidths) {
    const Shape shape{n, n, d};
    std::vector<std::unique_ptr<TimedProblem>> timed_problems;
    std::vector<TimedPlan> plans;
    for (const KernelName& name : kernel_names()) {
      timed_problems.push_back(std::make_unique<TimedProblem>(name, shape));
      std::ranges::move(plans_for_rates(*timed_problems.back(), name, shape, caches, all.granule),
                        std::back_inserter(plans));
    }
    begin(status, fmt::format("timing all {} with d = {}, {} rounds",
                              counted(std::ssize(timed_problems), "kernel"), d, kRateRounds));
    for (Index round = 0; round < kRateRounds; ++round) {
      status.show(fmt::format("rates, d={}: round {} of {}", d, round + 1, kRateRounds));
      const Measured row = kept(fmt::format("rates {} {}", d, round), [&] {
        Json measured = Json::array();
        for (const TimedPlan& timed : plans) {
          kept.stop();
          measured.push_back(timed.spent < kRateSeconds ? Json(timed.problem->seconds(timed.plan))
                                                        : Json());
        }
        return measured;
      });
      const std::vector<JsonField> numbers = row.field().items(plans.size());
      for (std::size_t k = 0; k < plans.size(); ++k) {
        if (!numbers[k].json().is_null()) {
          plans[k].seconds.push_back(numbers[k].measure());
          plans[k].spent += plans[k].seconds.back();
        } else if (round == 0) {
          numbers[k].refuse("is no number of seconds");
        }
      }
    }
    for (TimedPlan& timed : plans) {
      const auto flops = static_cast<double>(total(timed.plan.phases).flops.value());
      add_sample(*std::ranges::find(all.kernels, spelled(timed.plan), &KernelRates::kernel),
                 {words_per_flop(timed.plan, all.granule),
                  *std::ranges::min_element(timed.seconds) / flops});
    }
  }
  return all;
}

// Returns the time of a copied word, for copies that fit in half of each cache and for copies in
// memory. The memory copy is at least twice the largest cache.
std::vector<WordCost> word_costs(const Topology& topology, StatusLine& status, Kept& kept) {
  constexpr std::uint64_t kMemory = 64U << 20;
  constexpr std::uint64_t kLeast = 256;
  begin(status, "timing words of each cache and of memory");
  std::vector<WordCost> costs;
  const auto add = [&](const std::string& from, std::uint64_t bytes, std::uint64_t copied) {
    status.show("words of " + from);
    const Measured measured = kept("words of " + from, [&] {
      const MemoryClaim memory(nullptr, static_cast<Index>(copied), "calibrate",
                               "free some memory");
      return Json(nanoseconds_a_word(copied));
    });
    costs.push_back({from, bytes, measured.field().measure()});
  };
  std::uint64_t largest = 0;
  for (const CacheLevel level : kCacheLevels) {
    if (const Cache* cache = topology.cache(level)) {
      largest = std::max(largest, cache->bytes);
      add(std::string(to_string(level)), cache->bytes, std::max(kLeast, cache->bytes / 2));
    }
  }
  add("memory", 0, std::max(kMemory, 2 * largest));
  return costs;
}

// Returns the words of the command that measures this request under callgrind.
std::vector<std::string> under_callgrind(const Request& request) {
  return {"measure", request.kernel,
          "--n",     std::to_string(*request.n),
          "--d",     std::to_string(*request.d),
          "--M",     std::to_string(request.M),
          "--via",   "callgrind"};
}

// Returns a product of three square matrices, each as large as the cache. Three blocks fill M.
Request product(const CalibratedCache& cache, const MeasuredShare& share) {
  Request request;
  request.kernel = kTrafficKernel;
  request.n = request.m = request.d = cache.side;
  request.M = share.words;
  return request;
}

// Measures by event counters if they are reliable, else by callgrind if it is available.
void measure_traffic(CalibratedCache& cache, const Topology& topology, const Counters& counters,
                     StatusLine& status, Kept& kept) {
  const double words = static_cast<double>(cache.bytes) / sizeof(float);
  cache.side = std::max(Index{1}, static_cast<Index>(std::sqrt(words)));
  const bool by_counters = std::ranges::any_of(counters.events(), [&](const CounterEvent& event) {
    return event.lines_into == cache.level;
  });
  const Index least = find_kernel(kTrafficKernel).least_M({cache.side, cache.side, cache.side});
  const auto caches = simulation(topology, cache.level);
  if (!by_counters) {
    const std::string& why =
        counters.unavailable().empty() ? counters.incomplete() : counters.unavailable();
    const std::string no_callgrind = !callgrind_unavailable().empty() ? callgrind_unavailable()
                                     : !find_valgrind()               ? kNoValgrind
                                                                      : "";
    if (!no_callgrind.empty()) {
      cache.no_traffic = fmt::format("no counters ({}), no callgrind ({})", why, no_callgrind);
      return;
    }
  }
  begin(status,
        fmt::format("measuring the traffic of {} in {}", kTrafficKernel, to_string(cache.level)));
  for (MeasuredShare& share : cache.shares) {
    if (share.words < least) {
      continue;
    }
    const std::string part = fmt::format("{}*{}", to_string(cache.level), share.share);
    status.show(fmt::format("{}: traffic of {}", kTrafficKernel, part));
    const Request request = product(cache, share);
    Measured measured;
    try {
      measured = kept("traffic " + part, [&] {
        const Measurement measurement =
            by_counters ? measure_by_papi(request, topology, {})
                        : measure_by_callgrind(under_callgrind(request), *caches, topology.source);
        return Json{{"ratio", traffic_ratio(measurement, cache.level)},
                    {"via", measurement.version}};
      });
    } catch (const Interrupted&) {
      throw;
    } catch (const std::runtime_error& error) {
      kept.stop();  // a signal may have caused the failure
      cache.no_traffic = error.what();
      for (MeasuredShare& all : cache.shares) {
        all.ratio.reset();
      }
      return;
    }
    if (const auto ratio = measured.field().unless_null("ratio")) {
      share.ratio = ratio->measure();
    }
    cache.via = measured.field()["via"].text();
  }
  if (!agreeing(cache.shares)) {
    cache.no_traffic = fmt::format("{} needs a larger M", kTrafficKernel);
  }
}

LinkCosts costs_of(const PingTimes& times, std::string_view between) {
  return {.origin = fmt::format("calibrated between {} on {}", between, machine_file_date()),
          .seconds_a_message = times.seconds_a_message,
          .seconds_a_word = times.seconds_a_word};
}

// Returns the costs of messages between two threads.
LinkCosts local_links() {
  PingTimes times;
  run_ranks(2, [&](Transport& transport) {
    const PingTimes found = ping(transport);
    if (transport.rank() == 0) {
      times = found;
    }
  });
  return costs_of(times, "two threads");
}

std::filesystem::path target(const TextOption& out) {
  if (const auto given = out.get()) {
    if (given->text.empty()) {
      throw UsageError(given->from + " '': expected a file");
    }
    return given->text;
  }
  const std::filesystem::path file = calibration_file();
  std::filesystem::create_directories(file.parent_path());
  return file;
}

// Measures only messages between ranks (an MPI job, or threads) and adds the costs to an existing
// file. Returns the exit code.
int calibrate_links(const std::filesystem::path& path, Format format, Transport* transport) {
  if (transport != nullptr && transport->size() < 2) {
    throw UsageError("--links: mpirun started one rank; messages go between two");
  }
  const LinkCosts links =
      transport == nullptr
          ? local_links()
          : costs_of(ping(*transport), fmt::format("two of {} ranks of MPI", transport->size()));
  if (transport != nullptr && transport->rank() > 0) {
    return 0;
  }
  if (!std::filesystem::exists(path)) {
    throw UsageError(
        fmt::format("--links: there is no {}: run `redblue calibrate` before", path.string()));
  }
  const std::string json = with_links(read_machine_file(path, kCalibrate), path.string(), links);
  WholeFile file(path);
  file.append(std::as_bytes(std::span(json)));
  file.finish();
  file.commit();
  print(format == Format::json ? json
                               : printable_lines(to_words(links) + "\nwritten: ") +
                                     printable(file.target().string()) + "\n",
        stdout);
  return 0;
}

}  // namespace

Action add_calibrate(CLI::App& app, Transport* transport) {
  struct Options {
    explicit Options(CLI::App& command)
        : n(command, "--n",
            fmt::format("queries and keys of the timed problem (default: {})", kTimedQueries),
            "SIZE"),
          out(command, "--out",
              "file to write (default: the file that --objective time reads; -: standard output)",
              "FILE"),
          links(command, "--links",
                "measure only messages between ranks: those of mpirun, or threads"),
          format(command, "--format", "output format (default: table)", "table|json|csv") {}
    TextOption n, out;
    Switch links;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, transport] {
    const Format format = parse_format(options->format);
    if (options->links.get()) {
      return calibrate_links(target(options->out), format, transport);
    }
    if (transport != nullptr) {
      throw UsageError("mpirun: a job calibrates --links alone");
    }
    const auto n = options->n.get();
    const Index queries = n ? parse_size(n->text, n->from) : kTimedQueries;
    const Shape shape{queries, queries, kWidth};
    Calibration calibration{.topology = measured_topology(),
                            .simd = simd_target(),
                            .date = machine_file_date(),
                            .n = shape.n,
                            .d = shape.d,
                            .rounds = kRounds,
                            .rates_n = std::min(queries, kRateQueries)};
    calibration.levels = caches_of(calibration.topology);
    const MemoryClaim memory = memory_for(shape);
    // Opens the file before the work, so that an unwritable file fails early.
    const std::filesystem::path path = target(options->out);
    WholeFile file(path);
    Kept kept(path, {{"program", program_fingerprint()},
                     {"model", calibration.topology.model},
                     {"source", calibration.topology.source},
                     {"caches", caches_json(calibration.topology)},
                     {"simd", calibration.simd},
                     {"n", calibration.n}});
    {
      StatusLine status;
      time(calibration.levels, shape, status, kept);
      calibration.rates =
          rates(calibration.levels, calibration.topology, calibration.rates_n, status, kept);
      calibration.rates.words = word_costs(calibration.topology, status, kept);
      const Measured speeds = kept("core", [] {
        return Json::array({1e9 * fma_peak(1, Topology()), exps_per_second()});
      });
      const std::vector<JsonField> speed = speeds.field().items(std::size_t{2});
      calibration.rates.core = {speed[0].measure(), speed[1].measure()};
      const Measured pinged = kept("links", [] {
        const LinkCosts links = local_links();
        return Json::array({links.origin, links.seconds_a_message, links.seconds_a_word});
      });
      constexpr std::size_t kNumbers = 3;
      const std::vector<JsonField> link = pinged.field().items(kNumbers);
      calibration.rates.links = {link[0].text(), link[1].measure(), link[2].measure()};
      const Counters counters = machine_counters(calibration.topology, {});
      for (CalibratedCache& cache : calibration.levels) {
        measure_traffic(cache, calibration.topology, counters, status, kept);
      }
    }
    const std::string json = to_json(calibration);
    file.append(std::as_bytes(std::span(json)));
    file.finish();
    file.commit();
    kept.remove();
    print(format == Format::json  ? json
          : format == Format::csv ? to_csv(calibration)
                                  : printable_lines(to_table(calibration) + "\nwritten: ") +
                                        printable(file.target().string()) + "\n",
          beside(is_standard_output(path)));
    return 0;
  };
}

}  // namespace redblue
