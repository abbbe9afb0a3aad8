// Tests that a sweep's figures of a point equal the kernel's own report. They come back unchanged
// from their line and from the document, to the last bit of a double.

#include "runtime/sweep/sweep.hpp"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "runtime/subjects/kernel_subjects.hpp"
#include "runtime/subjects/kernel_sweep.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

Point point_of(const std::string& kernel, Index n, Index m, Index d, Index M,
               const std::string& given = "OL") {
  const std::vector<Subject> subjects = kernel_subjects();
  const auto subject = std::ranges::find(subjects, kernel, &Subject::name);
  Arguments arguments;
  arguments.set("n", n);
  arguments.set("m", m);
  arguments.set("d", d);
  arguments.set("M", M);
  if (kernel.starts_with("backward/") || kernel.starts_with("gradients/") ||
      kernel.starts_with("layer/")) {
    arguments.set("given", given);
  }
  return {kernel, complete(*subject, arguments)};
}

TEST(Sweep, HasTheWordsOfTheKernelAndItsFormula) {
  for (const std::string kernel : {"backward/small", "backward/rows", "forward/flash"}) {
    const Point point = point_of(kernel, 37, 23, 7, 600);
    const Swept swept = sweep_point(point, How::run, false);
    const Plan plan = tested_kernel(kernel).plan({37, 23, 7}, 600);
    ASSERT_TRUE(swept.fits);
    EXPECT_EQ(swept.kernel, kernel);
    ASSERT_EQ(swept.phases.size(), plan.phases.size());
    for (std::size_t k = 0; k < plan.phases.size(); ++k) {
      const SweptPhase& phase = swept.phases[k];
      const IoCount formula{plan.phases[k].reads.value(), plan.phases[k].writes.value()};
      EXPECT_EQ(phase.counts.path, plan.phases[k].path);
      EXPECT_EQ(phase.counts.io, formula);
      ASSERT_TRUE(phase.formula);
      EXPECT_EQ(phase.formula->io, formula);
      EXPECT_EQ(phase.counts.peak, plan.phases[k].peak.value());
      EXPECT_EQ(phase.formula->peak, plan.phases[k].peak.value());
    }
    EXPECT_EQ(swept.total.counts.io.io(),
              (total(plan.phases).reads + total(plan.phases).writes).value());
    EXPECT_EQ(swept.total.counts.operations.flops, total(plan.phases).flops.value());
    EXPECT_FALSE(swept.total.seconds || swept.speed) << "nobody asked how long it took";

    Swept counted = sweep_point(point, How::count, false);
    for (SweptPhase& phase : counted.phases) {
      const auto ran = std::ranges::find_if(swept.phases, [&](const SweptPhase& other) {
        return other.counts.path == phase.counts.path;
      });
      // Formulas do not count these operations.
      phase.counts.operations.elementwise = ran->counts.operations.elementwise;
    }
    counted.total.counts.operations.elementwise = swept.total.counts.operations.elementwise;
    EXPECT_EQ(counted, swept);
  }
}

// From scratch, a kernel that takes O and L also moves the words of its forward pass.
TEST(Sweep, FromNothingHasTheForwardPassToo) {
  const Swept given = sweep_point(point_of("backward/rows", 37, 23, 7, 600), How::run, false);
  const Swept nothing =
      sweep_point(point_of("backward/rows", 37, 23, 7, 600, "nothing"), How::run, false);
  const Swept forward = sweep_point(point_of("forward/auto", 37, 23, 7, 600), How::run, false);
  EXPECT_EQ(nothing.total.counts.io.io(),
            given.total.counts.io.io() + forward.total.counts.io.io());
  EXPECT_EQ(nothing.phases.size(), given.phases.size() + forward.phases.size());
  EXPECT_EQ(nothing.phases.front().counts.path, "forward/" + forward.phases.front().counts.path);
}

TEST(Sweep, SaysThatAPointDoesNotFit) {
  const Point point = point_of("backward/naive", 37, 23, 7, 600);
  const Swept swept = sweep_point(point, How::run, false);
  EXPECT_FALSE(swept.fits);
  EXPECT_EQ(parse_line(to_line(swept), "line"), swept);
}

TEST(Sweep, IsTimedWhereAskedFor) {
  const Swept swept = sweep_point(point_of("backward/rows", 64, 64, 16, 2048), How::run, true);
  ASSERT_TRUE(swept.speed && swept.total.seconds);
  EXPECT_GT(*swept.total.seconds, 0);
  EXPECT_NEAR(swept.speed->gflops * 1e9 * *swept.total.seconds,
              static_cast<double>(swept.total.counts.operations.flops),
              1e-6 * static_cast<double>(swept.total.counts.operations.flops));
  EXPECT_GT(swept.speed->peak_gflops, 0);
  EXPECT_GT(swept.speed->words_per_second, 0);
  EXPECT_EQ(parse_line(to_line(swept), "line"), swept) << "a double lost bits";
}

// The reading speed is measured in 256 MiB, more than any run of this point needs.
TEST(Sweep, IsNotTimedInTooLittleMemory) {
  const TemporaryDirectory root;
  root.write("proc/meminfo", "MemAvailable: 102400 kB\n");
  MemoryBudget memory(root.path());
  const Point point = point_of("backward/rows", 64, 64, 16, 2048);
  const std::string message = thrown<std::runtime_error>(
      [&] { static_cast<void>(sweep_point(point, How::run, true, &memory)); });
  EXPECT_EQ(message,
            "measuring how fast words are read would need 256.0 MiB of memory, but 100.0 MiB are "
            "available: have the suite run or count (how)");
  EXPECT_TRUE(sweep_point(point, How::run, false, &memory).fits);
  EXPECT_FALSE(
      sweep_point(point_of("backward/naive", 37, 23, 7, 600), How::run, true, &memory).fits)
      << "nothing is measured for it";
}

TEST(Sweep, ComesBackFromItsDocument) {
  Sweep sweep{.how = "run", .suite = "{\"points\": \"<&>\"} // é\n", .points = {}};
  sweep.points.push_back(sweep_point(point_of("backward/small", 37, 23, 7, 600), How::run, false));
  sweep.points.push_back(sweep_point(point_of("backward/naive", 37, 23, 7, 600), How::run, false));
  const std::string text = to_json(sweep, sweep_context({}));
  const Sweep back = parse_sweep(text, "file");
  EXPECT_EQ(back.how, sweep.how);
  EXPECT_EQ(back.suite, sweep.suite);
  EXPECT_EQ(back.points, sweep.points);

  // A document that is cut off anywhere is refused with its name.
  for (std::size_t size = 0; size + 3 < text.size(); size += 7) {
    try {
      parse_sweep(std::string_view(text).substr(0, size), "file");
      FAIL() << size;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("file")) << error.what();
    }
  }
  EXPECT_THROW(parse_sweep("{}", "file"), InputError);
  EXPECT_THROW(parse_sweep(R"({"redblue": "sweep", "schema": 99})", "file"), InputError);
}

// Each row of the table has a cell for each column, and the rows of phases add up to the total's.
TEST(Sweep, TableAddsUp) {
  Sweep sweep{.how = "run", .suite = {}, .points = {}};
  sweep.points.push_back(sweep_point(point_of("backward/small", 37, 23, 7, 600), How::run, false));
  sweep.points.push_back(sweep_point(point_of("forward/rows", 37, 23, 7, 600), How::run, false));
  sweep.points.push_back(sweep_point(point_of("backward/naive", 37, 23, 7, 600), How::run, false));
  Index phases = 0;
  for (const CsvRow& row : parse_csv(to_csv(sweep))) {
    if (row.at("fits") == "no") {
      continue;
    }
    const Index words = std::stoll(row.at("reads")) + std::stoll(row.at("writes"));
    if (row.at("phase") == "total") {
      EXPECT_EQ(words, phases);
      phases = 0;
    } else {
      phases += words;
    }
  }
}

}  // namespace
}  // namespace redblue
