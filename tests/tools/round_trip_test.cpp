// Tests matrices through the command and back, bit for bit: input files of every form, output
// files, and the same kernel run by the library on the same numbers.

#include <cmath>
#include <map>

#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/npy.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

using Numbers = std::map<std::string, std::vector<float>, std::less<>>;

// Returns the results of a kernel for these inputs, without files or a command.
Numbers computed(const TestedKernel& kernel, const Plan& plan, Numbers inputs) {
  const Shape& shape = plan.problem.shape;
  std::vector<SlowMatrix> matrices;
  matrices.reserve(kernel.given.size() + kernel.returns.size());
  Operands io;
  Numbers results;
  for (const Signature& operand : kernel.given) {
    io.give(matrices.emplace_back(borrow(std::string(operand.name),
                                         inputs.at(std::string(operand.name)).data(),
                                         operand.rows_of(shape), operand.cols_of(shape))));
  }
  for (const Signature& operand : kernel.returns) {
    std::vector<float>& words = results[std::string(operand.name)];
    words.resize(words_of(operand, shape));
    io.take(matrices.emplace_back(borrow(std::string(operand.name), words.data(),
                                         operand.rows_of(shape), operand.cols_of(shape))));
  }
  Machine machine(plan.M);
  RamWorkspace workspace;
  kernel.kernel->run(machine, plan, io, workspace);
  return results;
}

class RoundTrip : public Cli {
 protected:
  static constexpr Shape kShape{19, 14, 6};
  static constexpr Index kM = 4000;

  // Returns numbers with many bits set and no special values.
  static std::vector<float> numbers(const Signature& operand) {
    std::vector<float> words(words_of(operand, kShape));
    double angle = static_cast<double>(operand.name.front()) + 0.1;
    for (float& word : words) {
      word = static_cast<float>(std::sin(angle *= 1.01) / 2);
    }
    return words;
  }

  // Writes all operands in one file format and returns their --in flags.
  std::string write_inputs(const TestedKernel& kernel, const Numbers& inputs, NpyForm form) const {
    std::string flags;
    for (const Signature& operand : kernel.given) {
      const std::string name(operand.name);
      const Index cols = operand.cols == nullptr ? 0 : operand.cols_of(kShape);
      directory_.write(name + ".npy",
                       npy_bytes(operand.rows_of(kShape), cols, inputs.at(name), form));
      flags += " --in " + name + "=" + name + ".npy";
    }
    return flags;
  }
  static std::string output_flags(const TestedKernel& kernel, const std::string& prefix) {
    std::string flags;
    for (const Signature& operand : kernel.returns) {
      flags += " --out " + std::string(operand.name) + "=" + prefix + std::string(operand.name);
    }
    return flags;
  }
  void expect_file(const std::string& name, const Signature& operand,
                   const std::vector<float>& expected) const {
    const Index cols = operand.cols == nullptr ? 0 : operand.cols_of(kShape);
    EXPECT_EQ(content_of(directory_ / name), npy_bytes(operand.rows_of(kShape), cols, expected))
        << name;
  }
};

// The files alone define n, m and d.
TEST_F(RoundTrip, EveryKernelFromFilesOfEveryForm) {
  for (const TestedKernel& kernel : some_tested_kernels()) {
    Numbers inputs;
    for (const Signature& operand : kernel.given) {
      inputs[std::string(operand.name)] = numbers(operand);
    }
    const Numbers expected = computed(kernel, kernel.plan(kShape, kM), inputs);
    for (const NpyForm form : {NpyForm{}, NpyForm{.fortran = true}, NpyForm{.float64 = true},
                               NpyForm{.float64 = true, .fortran = true}}) {
      const std::string line = "run " + std::string(kernel.name) + " --objective words --M " +
                               std::to_string(kM) + write_inputs(kernel, inputs, form) +
                               output_flags(kernel, "");
      SCOPED_TRACE(line);
      data(line);
      for (const Signature& operand : kernel.returns) {
        expect_file(std::string(operand.name), operand, expected.find(operand.name)->second);
        std::filesystem::remove(directory_ / operand.name);
      }
    }
  }
}

TEST_F(RoundTrip, TheLibraryWritesTheSameFiles) {
  for (const TestedKernel& kernel : tested_kernels_of_any_shape()) {
    data("run " + std::string(kernel.name) +
         " --n 19 --m 14 --d 6 --M 4000 --seed 5 --scale 0.5 --objective words" +
         output_flags(kernel, "tool_"));
    Request request;
    request.kernel = kernel.name;
    request.n = kShape.n;
    request.m = kShape.m;
    request.d = kShape.d;
    request.M = kM;
    request.seed = 5;
    request.scale = 0.5;
    for (const Signature& operand : kernel.returns) {
      request.out[std::string(operand.name)] =
          directory_ / ("library_" + std::string(operand.name));
    }
    run(request);
    for (const Signature& operand : kernel.returns) {
      const std::string name(operand.name);
      EXPECT_EQ(content_of(directory_ / ("tool_" + name)),
                content_of(directory_ / ("library_" + name)))
          << kernel.name << " " << name;
    }
  }
}

// If O and L are not given, the command runs a kernel that computes them. Running that kernel by
// hand gives the same result, and a run with all operands from files does not depend on a seed.
TEST_F(RoundTrip, OneKernelsOutputsAreAnothersInputs) {
  const std::string problem = " --n 19 --m 14 --d 6 --M 500 --seed 7";
  const Json made =
      Json::parse(data("count backward/large --n 19 --m 14 --d 6 --M 500 --format json"));
  data("run " + made["forward"]["kernel"].get<std::string>() + problem +
       " --out O=O.npy --out L=L.npy");
  EXPECT_EQ(NpyReader(directory_ / "L.npy").shape(), std::vector<Index>{19});
  EXPECT_EQ(NpyReader(directory_ / "O.npy").shape(), (std::vector<Index>{19, 6}));
  for (const std::string kernel : {"backward/large", "backward/flash"}) {
    const std::string automatic = data("run " + kernel + problem + " --out g=a.npy --format json");
    const std::string by_hand = data("run " + kernel + problem +
                                     " --in O=O.npy --in L=L.npy --out g=b.npy --format json"
                                     " --verify");
    EXPECT_EQ(content_of(directory_ / "a.npy"), content_of(directory_ / "b.npy")) << kernel;
    EXPECT_NE(automatic.find("\"forward\""), std::string::npos);
    EXPECT_EQ(by_hand.find("\"forward\""), std::string::npos);
    EXPECT_EQ(by_hand.find("total_from_nothing"), std::string::npos);
  }
}

TEST_F(RoundTrip, SeedsTell) {
  const std::string run = "run backward/small --n 19 --m 14 --d 6 --M 500 ";
  data(run + "--out g=1.npy");
  data(run + "--seed 1 --scale 1 --verify --out g=1_again.npy");
  data(run + "--seed 2 --out g=2.npy");
  data(run + "--scale 2 --out g=scaled.npy");
  EXPECT_EQ(content_of(directory_ / "1.npy"), content_of(directory_ / "1_again.npy"));
  EXPECT_NE(content_of(directory_ / "1.npy"), content_of(directory_ / "2.npy"));
  EXPECT_NE(content_of(directory_ / "1.npy"), content_of(directory_ / "scaled.npy"));
}

TEST_F(RoundTrip, AnOlderFileIsReplaced) {
  directory_.write("g.npy", "older");
  data("run backward/small --n 4 --d 3 --M 100 --out g=g.npy");
  const NpyReader g(directory_ / "g.npy");
  EXPECT_EQ(g.rows(), 3);
  EXPECT_EQ(g.cols(), 3);
  EXPECT_EQ(files().size(), 1U);  // no other file is left
}

// Scores up to 10^4, exact in float32, give finite gradients within their error bound.
TEST_F(RoundTrip, LargeScoresInEveryKernel) {
  const Index n = 8;
  const Index d = 4;
  // S = A1 and s = A1 A2^T. The entries are multiples of 100, times 1, 0 or -1.
  std::vector<float> rows(n * d);
  std::vector<float> signs(n * d);
  std::vector<float> unit(d * d);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<float>(i % 26) * 100;
    signs[i] = static_cast<float>(i * 7 % 3) - 1;
  }
  rows[0] = rows[1] = rows[2] = rows[3] = 2500;  // against 1 1 1 1: 10^4
  signs[0] = signs[1] = signs[2] = signs[3] = 1;
  for (Index i = 0; i < d; ++i) {
    unit[static_cast<std::size_t>(i * d + i)] = 1;
  }
  directory_.write("A1.npy", npy_bytes(n, d, rows));
  directory_.write("A2.npy", npy_bytes(n, d, signs));
  directory_.write("X.npy", npy_bytes(d, d, unit));
  for (const TestedKernel& kernel : tested_kernels()) {
    if (!takes(kernel, "X")) {
      continue;
    }
    const std::string line =
        "run " + std::string(kernel.name) +
        " --M 500 --in A1=A1.npy --in A2=A2.npy --in X=X.npy --seed 1 --verify";
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 0) << line << "\n" << outcome.err;
    EXPECT_NE(outcome.out.find("verified: yes"), std::string::npos) << outcome.out;
  }
}

}  // namespace
}  // namespace redblue
