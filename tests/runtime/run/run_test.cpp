// Tests runs that the command's tests do not reach: the exception of each fault, and the content of
// a report.

#include "runtime/run/run.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "runtime/report/run_report.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/system/npy.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

Request request_for(std::string_view kernel, Index n = 9, Index m = 7, Index d = 4) {
  Request request;
  request.kernel = kernel;
  request.n = n;
  request.m = m;
  request.d = d;
  request.M = 2 * tested_kernel(kernel).least_M({n, m, d});
  return request;
}

template <class Error>
void expect_throw(const Request& request, const std::string& part, bool counts_too) {
  const auto expect = [&](auto call) {
    try {
      call(request);
      ADD_FAILURE() << "nothing was thrown; expected: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  expect([](const Request& r) { run(r); });
  if (counts_too) {
    expect([](const Request& r) { count(r); });
  }
}

// During a run, a claim on more than the remaining memory waits and is not yet refused.
TEST(Run, HoldsAClaimOnMemory) {
  const TemporaryDirectory store;
  const Request in_memory = request_for("backward/rows");
  Request on_disk = in_memory;
  on_disk.store = Request::OnDisk{};
  on_disk.store->directory = store.path();
  for (Request request : {in_memory, on_disk}) {
    MemoryBudget memory;
    request.memory = &memory;
    std::future<void> other;
    const RunHook waits = [&](Machine&, const Plan&, const std::function<void()>& work) {
      other = std::async(std::launch::async, [&] {
        const MemoryClaim claim(&memory, Words(INT64_MAX) + Words(1), "another", "");
      });
      EXPECT_EQ(other.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
      work();
    };
    run(request, {}, {.kernel = waits});
    EXPECT_THROW(other.get(), std::runtime_error);
  }
}

// Each hook wraps its own part. It does not decide whether the peak speed is measured.
TEST(Run, AHookIsAroundItsPart) {
  const TemporaryDirectory store;
  const Request in_memory = request_for("backward/rows");
  Request on_disk = in_memory;
  on_disk.store = Request::OnDisk{};
  on_disk.store->directory = store.path();
  for (const Request& request : {in_memory, on_disk}) {
    std::vector<std::string> heard;
    const auto as = [&](const std::string& part) {
      return [&heard, part](Machine&, const Plan& plan, const std::function<void()>& work) {
        heard.push_back(part + " is " + plan.kernel);
        work();
      };
    };
    const Report both = run(request, {}, {.kernel = as("kernel"), .forward = as("forward")});
    EXPECT_EQ(heard, (std::vector<std::string>{"forward is " + both.forward->plan.kernel,
                                               "kernel is backward/rows"}));
    EXPECT_GT(both.kernel.peak_gflops, 0);
    EXPECT_GT(both.forward->peak_gflops, 0);
    heard.clear();
    const Report one = run(request, {}, {.kernel = as("kernel"), .peak_gflops = false});
    EXPECT_EQ(heard, (std::vector<std::string>{"kernel is backward/rows"}));
    EXPECT_EQ(one.kernel.peak_gflops, 0);
    EXPECT_EQ(one.forward->peak_gflops, 0);
    EXPECT_EQ(one.kernel.counted->phases, both.kernel.counted->phases);
  }
}

TEST(Experiment, WhatIsThrownForWhat) {
  Request request = request_for("backward/small");
  request.n.reset();
  expect_throw<UsageError>(request, "--n is missing", true);

  request = request_for("backward/small");
  request.M = 4;
  expect_throw<FastMemoryTooSmall>(request, "at least 5", true);

  request = request_for("backward/small", Index{1} << 40, Index{1} << 40);
  expect_throw<CountOverflow>(request, "63 bits", true);

  request = request_for("backward/small", Index{1} << 24, Index{1} << 24);
  expect_throw<std::runtime_error>(request, "of memory", false);
  EXPECT_GT(count(request).kernel.io(), Index{1} << 48);

  request = request_for("backward/small");
  request.blocks["C"] = 3;
  expect_throw<UsageError>(request, "backward/small has B", true);

  request = request_for("backward/small");
  request.blocks["B"] = 1000;
  request.M = 20;
  expect_throw<UsageError>(request, "words more than M = 20", true);

  request = request_for("backward/small");
  request.in["A1"] = "/no/such/file.npy";
  expect_throw<std::system_error>(request, "/no/such/file.npy", false);
}

TEST(Experiment, KeysAreQueriesWhereNobodySaysElse) {
  Request request = request_for("backward/small");
  request.m.reset();
  EXPECT_EQ(count(request).kernel.plan.problem.shape, (Shape{9, 9, 4}));
  // A file does state m.
  const TemporaryDirectory directory;
  request.in["A2"] = directory.write("a2.npy", npy_bytes(7, 4, std::vector<float>(28, 1)));
  request.seed = 1;
  EXPECT_EQ(run(request).kernel.plan.problem.shape, (Shape{9, 7, 4}));
}

TEST(Experiment, ARunAsCounted) {
  for (const TestedKernel& kernel : tested_kernels()) {
    Request request = request_for(kernel.name, 23, kernel.shape({23, 17, 6}).m, 6);
    request.verify = true;
    const Report report = run(request);
    SCOPED_TRACE(kernel.name);
    ASSERT_TRUE(report.kernel.counted);
    const RunCounts& counted = *report.kernel.counted;
    const Plan& plan = report.kernel.plan;
    ASSERT_EQ(counted.phases.size(), plan.phases.size());
    ASSERT_TRUE(counted.seconds && counted.span);
    ASSERT_EQ(counted.seconds->phases.size(), plan.phases.size());
    double seconds = 0;
    for (std::size_t i = 0; i < plan.phases.size(); ++i) {
      EXPECT_EQ(counted.phases[i].path, plan.phases[i].path);
      EXPECT_EQ(counted.phases[i].operations.flops, plan.phases[i].flops.value());
      EXPECT_GT(counted.seconds->phases[i], 0);
      seconds += counted.seconds->phases[i];
    }
    EXPECT_GE(counted.seconds->total, seconds);
    EXPECT_LE(counted.total.peak, request.M);
    EXPECT_LE(static_cast<double>(*counted.span),
              1.125 * static_cast<double>(request.M) + 64 * 1024 / 4);
    ASSERT_TRUE(report.error);
    EXPECT_TRUE(report.error->ok);
    EXPECT_NE(std::ranges::find(kernel.returns, report.error->output, &Signature::name),
              kernel.returns.end());
    EXPECT_EQ(report.seed, 1U);
    EXPECT_FALSE(count(request).kernel.counted);
    EXPECT_FALSE(count(request).seed);
  }
}

// Computing O and L fits in any M that the backward kernels need.
TEST(Experiment, AForwardPassAlwaysFitsBesideBackward) {
  for (const std::string_view name : {"backward/large", "backward/flash"}) {
    for (const Index n : {1, 2, 9}) {
      for (const Index m : {1, 2, 9}) {
        for (const Index d : {1, 2, 3, 8}) {
          Request request = request_for(name, n, m, d);
          request.M /= 2;
          const Report report = run(request);
          ASSERT_TRUE(report.forward);
          EXPECT_EQ(report.forward->plan.pass, Pass::forward);
          EXPECT_LE(report.forward->counted->total.peak, request.M)
              << name << " " << n << " " << m << " " << d;
        }
      }
    }
  }
}

TEST(Experiment, TheSeedIsNamedWhereItWasUsed) {
  const TemporaryDirectory directory;
  Request request = request_for("matmul/blocked", 3, 2, 4);
  request.seed = 8;
  request.in["A"] = directory.write("a.npy", npy_bytes(3, 4, std::vector<float>(12, 1)));
  EXPECT_EQ(run(request).seed, 8U);
  request.in["B"] = directory.write("b.npy", npy_bytes(4, 2, std::vector<float>(8, 1)));
  EXPECT_FALSE(run(request).seed);
}

// If the verification fails, no output is written. Command.AFailedVerification explains how that
// can happen.
TEST(Experiment, AFailedVerificationIsNoException) {
  const TemporaryDirectory directory;
  const float score = 1e6F * 1e6F;
  Request request = request_for("backward/flash", 1, 1, 1);
  request.verify = true;
  request.seed = 1;
  request.in = {{"A1", directory.write("a.npy", npy_bytes(1, 1, {1e6F}))},
                {"A2", directory / "a.npy"},
                {"X", directory.write("x.npy", npy_bytes(1, 1, {1}))},
                {"O", directory / "x.npy"},
                {"L", directory.write("l.npy", npy_bytes(1, 0, {score}))}};
  request.out["g"] = directory / "g.npy";
  const Report report = run(request);
  ASSERT_TRUE(report.error);
  EXPECT_FALSE(report.error->ok);
  EXPECT_FALSE(std::filesystem::exists(directory / "g.npy"));
  request.verify = false;
  run(request);
  EXPECT_TRUE(std::filesystem::exists(directory / "g.npy"));
}

// An output that cannot be written prevents all others.
TEST(Experiment, AllOutputsOrNone) {
  const TemporaryDirectory directory;
  Request request = request_for("backward/flash");
  request.out = {{"dK", directory / "dK.npy"}, {"g", directory / "none" / "g.npy"}};
  EXPECT_THROW(run(request), std::system_error);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

// With `auto`, the planner's kernels run one after the other. The backward kernel uses the O and L
// of the forward kernel, the words are the sum of both, and g is within its error bound.
TEST(Experiment, AutoIsOneRunOfWhatThePlannerChose) {
  std::mt19937 random(6);
  int after_another = 0;
  for (int trial = 0; trial < (kSanitized ? 60 : 300); ++trial) {
    Request request;
    const Pass pass = static_cast<Pass>(2 + trial % 4);  // forward, backward, attention, gradients
    request.kernel = std::string(to_string(pass)) + "/auto";
    const auto size = [&](unsigned most) { return static_cast<Index>(1 + random() % most); };
    const Shape shape{size(60), size(60), size(6)};
    request.n = shape.n;
    request.m = shape.m;
    request.d = shape.d;
    request.M = 4 + size(200);
    request.seed = random();
    request.verify = true;
    const std::vector<Choice> found = choices(
        {.pass = pass, .problem = Problem(shape), .memory = request.M, .known = Known::nothing});
    if (found.empty()) {
      EXPECT_THROW(static_cast<void>(run(request)), FastMemoryTooSmall);
      continue;
    }
    const Plan& plan = found.front().plan;
    const Report report = run(request);
    EXPECT_EQ(report.kernel.plan.kernel, plan.kernel);
    EXPECT_EQ(report.kernel.io() + (report.forward ? report.forward->io() : 0),
              found.front().words.value())
        << to_string(plan);
    EXPECT_TRUE(report.error->ok) << to_string(plan) << ": " << to_words(*report.error);
    after_another += report.forward ? 1 : 0;
  }
  EXPECT_GT(after_another, 5);
}

}  // namespace
}  // namespace redblue
