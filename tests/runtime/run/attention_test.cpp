// Tests that one call on a caller's buffers equals the run of the command: the same plan, words and
// bits, within the bounds of the double-precision reference.

#include "runtime/run/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/run.hpp"
#include "runtime/run/tuned.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/system/npy.hpp"
#include "tests/support/called.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

bool same_words(const Buffers& a, const Buffers& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.size() == y.second.size() &&
           std::memcmp(x.second.data(), y.second.data(), x.second.size() * sizeof(float)) == 0;
  });
}

// Returns the names of the attention and gradients kernels, and an empty name for the planner's
// choice.
std::vector<std::string> names_of(Pass pass) {
  std::vector<std::string> names = {""};
  for (const KernelName& name : kernel_names()) {
    if (name.kernel->pass == pass && name.sharing == Sharing::none) {
      names.push_back(name.text());
    }
  }
  return names;
}

// Returns the command's request for the same run, with heads.
Request request_of(const Called& of, Pass pass, const AttentionOptions& options) {
  Request request;
  request.kernel = options.kernel.empty() ? std::string(to_string(pass)) + "/auto" : options.kernel;
  request.sharing = of.problem.sharing;
  request.n = of.problem.shape.n;
  request.m = of.problem.shape.m;
  request.d = of.problem.shape.d;
  request.heads = of.problem.heads;
  request.kv_heads = of.problem.kv_heads == 0 ? of.problem.heads : of.problem.kv_heads;
  request.softmax_scale = of.problem.softmax_scale;
  request.mask = std::get<std::string>(of.problem.mask);
  request.activation = of.problem.activation;
  request.M = options.M.value();
  request.threads = options.threads;
  request.objective = options.objective;
  return request;
}

class AttentionCall : public Cli {
 protected:
  // Writes the operands to files and asks for results in files.
  void write(const Called& of, Request& request) const {
    for (const auto& [name, words] : of.given) {
      if (words.empty()) {
        continue;  // O and L if they are not given
      }
      const bool sums = name == "L";
      const bool of_keys = name == "K" || name == "V";
      const Index heads = of_keys ? *request.kv_heads : *request.heads;
      std::vector<Index> shape = {heads, of_keys ? *request.m : *request.n};
      if (!sums) {
        shape.push_back(*request.d);
      }
      request.in[name] = directory_.write(name + ".npy", npy_bytes(shape, words));
    }
    for (const auto& [name, _] : of.results) {
      request.out[name] = directory_ / (name + ".npy");
    }
  }
  static Buffers read(const Request& request) {
    Buffers all;
    for (const auto& [name, path] : request.out) {
      NpyReader reader(path);
      reader.accept_minus_infinity();
      Called::Buffer& words = all[name];
      words.resize(static_cast<std::size_t>(reader.rows() * reader.cols()));
      reader.read_rows({0, reader.rows()}, words);
    }
    return all;
  }
};

// For every kernel, the counts equal the formula. The results equal the results of the run from
// files, and are verified.
TEST_F(AttentionCall, IsTheRunFromFiles) {
  const Shape shape{23, 31, 5};
  for (const Pass pass : {Pass::attention, Pass::gradients}) {
    for (const std::string& name : names_of(pass)) {
      for (const std::string mask : {"", "causal", "window:3,2|prefix:4", "global:1-2"}) {
        if (!name.empty() && !mask.empty() && !find_kernel(name).takes_masks) {
          continue;
        }
        for (const auto& [heads, kv_heads] : {std::pair<Index, Index>{1, 0}, {6, 2}, {3, 3}}) {
          const AttentionProblem problem{.shape = shape,
                                         .heads = heads,
                                         .kv_heads = kv_heads,
                                         .mask = mask,
                                         .softmax_scale = 0.5F};
          Called own(problem, pass == Pass::gradients);
          const AttentionOptions options{.M = 3000, .kernel = name};
          SCOPED_TRACE(name + " " + mask + " heads " + std::to_string(heads));
          const AttentionRun call = own.call(options);

          Request request = request_of(own, pass, options);
          write(own, request);
          Report report = run(request, {}, {.peak_gflops = false});
          EXPECT_TRUE(same_words(own.results, read(request)));
          EXPECT_EQ(to_string(call.kernel.plan), to_string(report.kernel.plan));
          EXPECT_EQ(call.kernel.counted.phases, report.kernel.counted->phases);
          EXPECT_EQ(call.forward.has_value(), report.forward.has_value());
          EXPECT_EQ(call.lower_bound->words, report.bound->words);
          EXPECT_LE(call.lower_bound->words, call.kernel.words());
          for (const KernelRun* each :
               {&call.kernel, call.forward ? &*call.forward : &call.kernel}) {
            ASSERT_EQ(each->formula.size(), each->counted.phases.size());
            for (std::size_t k = 0; k < each->formula.size(); ++k) {
              EXPECT_EQ(each->formula[k].path, each->counted.phases[k].path);
              EXPECT_EQ(each->formula[k].reads, Words(each->counted.phases[k].io.reads));
              EXPECT_EQ(each->formula[k].writes, Words(each->counted.phases[k].io.writes));
            }
          }
          const Verdict verdict = verify(report, views_of(own.given), views_of(own.results));
          EXPECT_TRUE(verdict.ok) << verdict.output << " " << verdict.error;
        }
      }
    }
  }
}

// Compares with the command itself, not with the library's run.
TEST_F(AttentionCall, HasTheBitsOfTheCommand) {
  Called own({.shape = {37, 37, 8}, .heads = 4, .kv_heads = 2, .mask = "causal"}, true);
  const AttentionOptions options{.M = 2000, .threads = 2};
  own.call(options);
  Request request = request_of(own, Pass::gradients, options);
  write(own, request);
  std::string line = "run gradients/auto --heads 4 --kv-heads 2 --mask causal --M 2000 --threads 2";
  for (const auto& [name, path] : request.in) {
    line += " --in " + name + "=" + path.string();
  }
  for (const auto& [name, path] : request.out) {
    line += " --out " + name + "=" + path.string();
  }
  data(line);
  EXPECT_TRUE(same_words(own.results, read(request)));
}

// O and L from a call of attention() serve the gradients: no forward pass runs, and the error
// bounds are the same.
TEST_F(AttentionCall, TakesOAndL) {
  const AttentionProblem problem{.shape = {29, 17, 6}, .heads = 4, .kv_heads = 2, .mask = "causal"};
  const AttentionOptions options{.M = 900, .kernel = "gradients/rows-keys"};
  Called forward(problem);
  forward.call({.M = 900});
  EXPECT_TRUE(std::isinf(forward.results["L"].front())) << "a query without a key";
  Called own(problem, true);
  own.given["O"] = forward.results["O"];
  own.given["L"] = forward.results["L"];
  const AttentionRun call = own.call(options);
  EXPECT_FALSE(call.forward);
  Request request = request_of(own, Pass::gradients, options);
  write(own, request);
  request.verify = true;
  const Report report = run(request, {}, {.peak_gflops = false});
  EXPECT_TRUE(report.error->ok);
  EXPECT_TRUE(same_words(own.results, read(request)));
  // An L of -inf for a query that meets a key belongs to another mask.
  own.given["L"].back() = -std::numeric_limits<float>::infinity();
  std::ranges::fill(own.results["dQ"], kUntouched);
  EXPECT_THROW(own.call(options), InputError);
  EXPECT_EQ(own.results["dQ"].front(), kUntouched);
}

TEST_F(AttentionCall, MasksAndSharedKeysAreThoseOfTheProblem) {
  const Shape shape{19, 23, 4};
  const auto with = [&](auto mask) {
    Called own({.shape = shape, .heads = 4, .kv_heads = 2, .mask = mask});
    own.call({.M = 700});
    return own.results;
  };
  EXPECT_TRUE(
      same_words(with("causal|prefix:2"), with(Mask::causal(19, 23) | Mask::prefix(19, 23, 2))));
  EXPECT_TRUE(same_words(with(""), with(Mask())));
  EXPECT_TRUE(same_words(with("full"), with(Mask::all(19, 23))));

  Called shared({.shape = shape, .heads = 4, .kv_heads = 2, .sharing = Sharing::kv, .mask = ""});
  const AttentionOptions options{.M = 700, .kernel = "attention/rows"};
  EXPECT_EQ(spelled(shared.call(options).kernel.plan), "attention/rows-shared");
  Request request = request_of(shared, Pass::attention, options);
  write(shared, request);
  run(request, {}, {.peak_gflops = false});
  EXPECT_TRUE(same_words(shared.results, read(request)));
}

TEST_F(AttentionCall, NoBitDependsOnThreads) {
  const struct {
    std::string kernel;
    Index heads, kv_heads;
    const char* mask;
  } kCases[] = {{"attention/rows", 1, 1, ""},
                {"attention/rows", 4, 1, "causal"},
                {"gradients/rows-keys", 1, 1, ""},
                {"gradients/rows-keys", 2, 1, "window:5,0"},
                {"gradients/rows-keys-onepass", 1, 1, "causal"},
                {"attention/tiles", 6, 3, ""},
                {"gradients/flash", 6, 6, "causal"}};
  for (const auto& [kernel, heads, kv_heads, mask] : kCases) {
    const AttentionProblem problem{
        .shape = {53, 41, 6}, .heads = heads, .kv_heads = kv_heads, .mask = mask};
    Called one(problem, kernel.starts_with("gradients"));
    one.call({.M = 800, .kernel = kernel});
    for (const Index threads : {2, 3, 7}) {
      Called own(problem, kernel.starts_with("gradients"));
      const AttentionRun call = own.call({.M = 800, .threads = threads, .kernel = kernel});
      EXPECT_TRUE(same_words(own.results, one.results)) << kernel << " on " << threads;
      const PhaseCost formula = total(call.kernel.formula);
      EXPECT_EQ(formula.reads + formula.writes, Words(call.kernel.words()));
      EXPECT_FALSE(call.lower_bound) << "known for one thread alone";
    }
  }
}

// Equals the command's run with that activation: O and gradients, which need no L.
TEST_F(AttentionCall, TakesAnActivation) {
  for (const Activation activation : {Activation::relu, Activation::sigmoid, Activation::silu}) {
    const AttentionProblem problem{
        .shape = {37, 29, 8}, .heads = 2, .mask = "", .activation = activation};
    for (const bool backward : {false, true}) {
      SCOPED_TRACE(std::string(to_string(activation)) + (backward ? " backward" : " forward"));
      Called own(problem, backward);
      if (!backward) {
        own.results.at("L").clear();
      }
      const AttentionOptions options{.M = 1500};
      const AttentionRun call = own.call(options);
      EXPECT_FALSE(call.forward);
      const Report counted =
          count(request_of(own, backward ? Pass::gradients : Pass::attention, options));
      EXPECT_EQ(call.kernel.plan.kernel, counted.kernel.plan.kernel);
      EXPECT_EQ(Words(call.kernel.words()), Words(counted.kernel.io()));
      Called softmax({.shape = {37, 29, 8}, .heads = 2}, backward);
      softmax.call(options);
      EXPECT_FALSE(same_words(own.results, softmax.results));
    }
  }
}

TEST_F(AttentionCall, SeveralAtOnce) {
  const AttentionProblem problem{.shape = {61, 61, 8}, .heads = 2, .mask = "causal"};
  const AttentionOptions options{.M = 1500, .threads = 2};
  Called one(problem, true);
  const AttentionRun alone = one.call(options);
  std::vector<std::future<void>> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.push_back(std::async(std::launch::async, [&] {
      for (int k = 0; k < 5; ++k) {
        Called own(problem, true);
        const AttentionRun call = own.call(options);
        EXPECT_TRUE(same_words(own.results, one.results));
        EXPECT_EQ(call.kernel.counted.phases, alone.kernel.counted.phases);
      }
    }));
  }
  for (std::future<void>& caller : callers) {
    caller.get();
  }
}

// The plans of the latest calls are kept. Calls that differ in one member each, made twice in
// changing order and more of them than are kept, have the plan and the counts of a first call.
TEST_F(AttentionCall, LaterCallsAreLikeTheFirst) {
  std::vector<std::pair<AttentionProblem, AttentionOptions>> calls;
  const AttentionProblem plain{.shape = {33, 29, 6}, .heads = 4, .kv_heads = 2};
  const auto with = [&](const auto& change, Index M = 1200) {
    auto& [problem, options] = calls.emplace_back(plain, AttentionOptions{.M = M});
    change(problem, options);
  };
  with([](auto&, auto&) {});
  with([](auto& problem, auto&) { problem.shape.m = 30; });
  with([](auto& problem, auto&) { problem.heads = 2; });
  with([](auto& problem, auto&) { problem.kv_heads = 4; });
  with([](auto& problem, auto&) { problem.softmax_scale = 0.25F; });
  with([](auto& problem, auto&) { problem.mask = "causal"; });
  with([](auto& problem, auto&) { problem.mask = Mask::window(33, 29, 3, 0); });
  with([](auto&, auto& options) { options.objective = Objective::words; });
  with([](auto&, auto& options) { options.kernel = "attention/tiles"; });
  with([](auto&, auto& options) { options.threads = 2; });
  for (Index M = 1300; M < 2500; M += 100) {
    with([](auto&, auto&) {}, M);
  }
  std::vector<std::string> plans;
  std::vector<Buffers> results;
  for (const bool again : {false, true}) {
    for (std::size_t k = 0; k < calls.size(); ++k) {
      const std::size_t which = again ? k * 7 % calls.size() : k;
      SCOPED_TRACE(which);
      Called own(calls[which].first);
      const AttentionRun call = own.call(calls[which].second);
      const std::string plan = to_string(call.kernel.plan);
      ASSERT_EQ(call.kernel.formula.size(), call.kernel.counted.phases.size());
      for (std::size_t phase = 0; phase < call.kernel.formula.size(); ++phase) {
        EXPECT_EQ(call.kernel.formula[phase].reads,
                  Words(call.kernel.counted.phases[phase].io.reads));
      }
      if (!again) {
        plans.push_back(plan);
        results.push_back(own.results);
      }
      EXPECT_EQ(plan, plans[which]);
      EXPECT_TRUE(same_words(own.results, results[which]));
    }
  }
  EXPECT_GT(std::set(plans.begin(), plans.end()).size(), 15U) << "the calls differ";
}

// Without an M, the caches of the machine choose it.
TEST_F(AttentionCall, HasAnMOfItsOwn) {
  const Topology topology = read_topology();
  const auto half = fast_memory(topology, {CacheLevel::L2, 0.5}, 2);
  const auto quarter = fast_memory(topology, {CacheLevel::L3, 0.25}, 2);
  const AttentionProblem problem{.shape = {50, 50, 8}, .heads = 2};
  Called forward(problem);
  EXPECT_EQ(forward.call({.threads = 2}).kernel.plan.M, half ? half->words : 64 * 1024);
  Called backward(problem, true);
  const Index M = backward.call({.threads = 2}).kernel.plan.M;
  const auto known = quarter ? quarter : half;
  EXPECT_EQ(M, known ? std::min(known->words, Index{4} << 20) : 64 * 1024);
}

// Without an M, the file of `redblue tune` gives M and the kernel, also for the name of the
// planner's choice. It says nothing of masks of another class, and a mask from pairs has its own.
TEST_F(AttentionCall, TakesTheTunedKernel) {
  const Topology topology = read_topology();
  const CachePart part{CacheLevel::L2, 0.25};
  const auto words = fast_memory(topology, part, 1);
  if (!words) {
    GTEST_SKIP() << "the size of L2 is not known";
  }
  const TunedProblem tuned{.pass = Pass::attention,
                           .mask = "full",
                           .n = 50,
                           .m = 50,
                           .d = 8,
                           .kernels = {{"attention/columns", part, 1, 1}}};
  directory_.write("redblue/tuned.json", tuned_text({tuned}, topology));
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("XDG_CACHE_HOME", directory_.path().c_str(), 1);
  const Environment here = Environment::present();
  before != nullptr ? ::setenv("XDG_CACHE_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
  const WithEnvironment with(here);

  AttentionProblem problem{.shape = {50, 50, 8}};
  for (const std::string kernel : {"", "attention/auto"}) {
    const AttentionRun run = Called(problem).call({.kernel = kernel});
    EXPECT_EQ(run.kernel.plan.M, words->words) << kernel;
    EXPECT_EQ(run.kernel.plan.kernel, "attention/columns") << kernel;
  }
  EXPECT_NE(Called(problem).call({.kernel = "attention/rows"}).kernel.plan.M, words->words)
      << "it was not timed";
  const std::vector<Index> cuts = {0, 20, 50};
  problem.mask = Mask::documents(cuts, cuts);
  EXPECT_NE(Called(problem).call({}).kernel.plan.M, words->words) << "a mask without a text";
}

// What `stop` throws ends the call.
TEST_F(AttentionCall, StopsWhenAsked) {
  int moves = 0;
  Called own({.shape = {300, 300, 8}});
  const auto stop = [&] {
    if (++moves == 5) {
      throw std::runtime_error("enough");
    }
  };
  EXPECT_EQ(thrown<std::runtime_error>(
                [&] { own.call({.M = 500, .kernel = "attention/rows", .stop = stop}); }),
            "enough");
  EXPECT_EQ(moves, 5);
}

// Equal pairs that are stored in another way have other words: the positions of a pattern are read.
TEST_F(AttentionCall, CountsAMaskAsItIsStored) {
  const Index n = 40;
  BlockPattern pairs{.rows = n, .cols = n};
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j <= i; ++j) {
      pairs.columns.push_back(j);
    }
    pairs.offsets.push_back(pairs.stored());
  }
  ASSERT_TRUE(Mask::pattern(pairs) == Mask::causal(n, n));
  const auto words = [&](const Mask& mask) {
    Called own({.shape = {n, n, 4}, .mask = mask});
    return own.call({.M = 200, .kernel = "attention/rows"}).kernel.words();
  };
  const Index formula = words(Mask::causal(n, n));
  EXPECT_GT(words(Mask::pattern(pairs)), formula);
  EXPECT_EQ(words(Mask::causal(n, n)), formula);
}

// A mask's files are read at each call.
TEST_F(AttentionCall, ReadsAChangedMaskFileAgain) {
  const auto words = [&](const std::vector<std::uint8_t>& ends) {
    const std::string shape = "(" + std::to_string(ends.size()) + ",)";
    const auto file = directory_.write(
        "documents.npy",
        npy_file(npy_header("|u1", false, shape), std::string(ends.begin(), ends.end())));
    Called own({.shape = {40, 40, 4}, .mask = "documents:" + file.string()});
    return own.call({.M = 300, .kernel = "attention/rows"}).kernel.words();
  };
  const Index two = words({0, 20, 40});
  const Index four = words({0, 10, 20, 30, 40});
  EXPECT_LT(four, two);
  EXPECT_EQ(words({0, 20, 40}), two);
}

TEST_F(AttentionCall, CacheWordsAreThoseOfTheMachine) {
  const auto known = fast_memory(read_topology(), {CacheLevel::L2, 0.5}, 2);
  if (known) {
    EXPECT_EQ(cache_words(CacheLevel::L2, 0.5, 2), known->words);
  } else {
    EXPECT_TRUE(contains(thrown<UsageError>([] { cache_words(CacheLevel::L2, 0.5, 2); }),
                         "M L2*0.5: the size of L2 is not known"));
  }
  EXPECT_EQ(thrown<UsageError>([] { cache_words(CacheLevel::L1, 1.5); }),
            "M L1*1.5: expected a share above 0 and up to 1");
}

}  // namespace
}  // namespace redblue
