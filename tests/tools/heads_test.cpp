// Tests several heads from the command line. Each head has the bits of a run alone, on whichever
// worker. Their words are the words of one head times the number of heads. In files, the first
// dimension is the heads.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/kernel.hpp"
#include "memsim/sanitized.hpp"
#include "runtime/system/npy.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;
using Words32 = std::vector<float>;

class Heads : public Cli {
 protected:
  static constexpr Shape kShape{19, 14, 6};
  static std::string problem(const TestedKernel& kernel) {
    return fmt::format("{} --n 19 --m 14 --d 6 --M {}", kernel.name,
                       kernel.least_M(kShape) * 3 / 2);
  }
  [[nodiscard]] Json json(const std::string& line) const {
    return Json::parse(data(line + " --format json"));
  }
  // Returns --out flags for all results of the kernel, in a new directory.
  [[nodiscard]] std::string outputs(const TestedKernel& kernel, const std::string& where) const {
    std::filesystem::create_directory(directory_ / where);
    std::string flags;
    for (const Signature& operand : kernel.returns) {
      flags += fmt::format(" --out {0}={1}/{0}.npy", operand.name, where);
    }
    return flags;
  }
  [[nodiscard]] Words32 words(const std::string& file) const {
    const NpyReader reader(directory_ / file);
    Words32 all(static_cast<std::size_t>(reader.rows() * reader.cols()));
    reader.read_rows({0, reader.rows()}, all);
    return all;
  }
  static bool same_bits(const Words32& a, const Words32& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
  static std::vector<Index> shape_of(const Signature& operand, Index heads) {
    std::vector<Index> shape = {heads, operand.rows_of(kShape)};
    if (operand.cols != nullptr) {
      shape.push_back(operand.cols_of(kShape));
    }
    return shape;
  }
};

Index io(const Json& counts) {
  return counts["reads"].get<Index>() + counts["writes"].get<Index>();
}

// The counts equal the formula in each phase, and H times one head. The peak equals the peak of one
// head. The busiest worker has ceil(H / threads) heads.
TEST_F(Heads, WordsAreThoseOfOneHeadTimesHeads) {
  for (const TestedKernel& kernel : some_tested_kernels()) {
    const Json one = json("count " + problem(kernel));
    EXPECT_EQ(one["heads"], 1);
    for (const auto& [heads, threads] :
         {std::pair<Index, Index>{1, 1}, {1, 3}, {2, 1}, {2, 3}, {5, 2}}) {
      if (heads == 1 && threads > 1 && !kernel.split()) {
        continue;
      }
      const std::string line =
          fmt::format("{} --heads {} --threads {}", problem(kernel), heads, threads);
      SCOPED_TRACE(line);
      const bool whole = heads > 1 || threads == 1;  // else the one head is split
      const Json run = json("run " + line);
      const Json count = json("count " + line);
      for (const Json& document : {run, count}) {
        EXPECT_EQ(document["heads"], heads);
        EXPECT_EQ(document["threads"], threads);
        ASSERT_EQ(document["phases"].size(), count["phases"].size());
        ASSERT_TRUE(!whole || count["phases"].size() == one["phases"].size());
        for (std::size_t i = 0; i < count["phases"].size(); ++i) {
          const Json& phase = document["phases"][i];
          SCOPED_TRACE(phase.dump());
          for (const char* key : {"reads", "writes", "peak"}) {
            EXPECT_EQ(phase[key], phase["formula"][key]) << key;
            EXPECT_EQ(phase[key], count["phases"][i][key]) << key;
          }
          if (whole) {
            const Json& alone = one["phases"][i];
            for (const char* key : {"reads", "writes", "flops"}) {
              EXPECT_EQ(phase[key].get<Index>(), heads * alone[key].get<Index>()) << key;
            }
            EXPECT_EQ(phase["peak"], alone["peak"]);
          }
        }
        const Json& total = document["total"];
        EXPECT_EQ(io(total), io(document["formula"]));
        if (threads > 1) {
          EXPECT_EQ(total["largest_worker"]["io"], total["largest_worker"]["formula"]);
          if (heads > 1) {
            EXPECT_EQ(total["largest_worker"]["io"], ceil_div(heads, threads) * io(one["total"]));
          }
        }
        // O and L are computed for each head, by the same threads.
        ASSERT_EQ(document.contains("forward"), one.contains("forward"));
        if (one.contains("forward")) {
          EXPECT_EQ(io(document["forward"]["total"]), heads * io(one["forward"]["total"]));
          if (threads > 1 && heads > 1) {
            EXPECT_EQ(document["forward"]["total"]["largest_worker"]["io"],
                      ceil_div(heads, threads) * io(one["forward"]["total"]));
          }
          EXPECT_EQ(io(document["forward"]["total"]), io(document["forward"]["formula"]));
          EXPECT_EQ(document["forward"]["total"]["peak"], one["forward"]["total"]["peak"]);
          EXPECT_EQ(document["total_from_nothing"], io(total) + io(document["forward"]["total"]));
        }
      }
    }
  }
}

// Head h of seed s equals the single problem of seed s + h, in every kernel, for any number of
// workers, even if some are idle.
TEST_F(Heads, EachIsWhatItIsAlone) {
  for (const TestedKernel& kernel : some_tested_kernels()) {
    const std::string run = "run " + problem(kernel);
    std::map<std::string_view, Words32> alone;
    for (const int seed : {7, 8, 9}) {
      data(run + fmt::format(" --seed {}", seed) + outputs(kernel, "alone"));
      for (const Signature& operand : kernel.returns) {
        const Words32 one = words(fmt::format("alone/{}.npy", operand.name));
        alone[operand.name].insert(alone[operand.name].end(), one.begin(), one.end());
      }
    }
    for (const Index threads : {1, 2, 7}) {
      const std::string line = run + fmt::format(" --heads 3 --seed 7 --threads {}", threads);
      SCOPED_TRACE(line);
      data(line + outputs(kernel, "together"));
      for (const Signature& operand : kernel.returns) {
        const std::string file = fmt::format("together/{}.npy", operand.name);
        EXPECT_EQ(NpyReader(directory_ / file).shape(), shape_of(operand, 3)) << file;
        EXPECT_TRUE(same_bits(words(file), alone[operand.name])) << file;
      }
    }
  }
}

TEST_F(Heads, SeedsGoOnBeyond64BitsFromZero) {
  const std::string run = "run forward/flash --n 9 --d 4 --M 500 --out ";
  data(run + "O=both.npy --heads 2 --seed 18446744073709551615");
  data(run + "O=zero.npy --seed 0");
  const Words32 both = words("both.npy");
  EXPECT_TRUE(same_bits({both.begin() + 36, both.end()}, words("zero.npy")));
}

// The files alone define n, m, d and the number of heads, in every file format.
TEST_F(Heads, FromFilesOfEveryForm) {
  constexpr Index kCount = 3;
  for (const TestedKernel& kernel : some_tested_kernels()) {
    std::string run = fmt::format("run {} --M 4000", kernel.name);
    std::map<std::string_view, Words32> inputs, expected;
    for (const Signature& operand : kernel.given) {
      Words32& all = inputs[operand.name];
      double angle = static_cast<double>(operand.name.front()) + 0.1;
      const auto size = static_cast<std::size_t>(operand.rows_of(kShape) * operand.cols_of(kShape));
      for (all.resize(kCount * size); float& word : all) {
        word = static_cast<float>(std::sin(angle *= 1.01) / 2);
      }
    }
    for (std::size_t head = 0; head < kCount; ++head) {
      std::string files;
      for (const Signature& operand : kernel.given) {
        const Words32& all = inputs[operand.name];
        const auto size = static_cast<std::ptrdiff_t>(all.size() / kCount);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(head) * size;
        const std::string name = fmt::format("one_{}.npy", operand.name);
        directory_.write(name, npy_bytes(operand.rows_of(kShape),
                                         operand.cols == nullptr ? 0 : operand.cols_of(kShape),
                                         Words32(begin, begin + size)));
        files += fmt::format(" --in {}={}", operand.name, name);
      }
      data(run + files + outputs(kernel, "alone"));
      for (const Signature& operand : kernel.returns) {
        const Words32 one = words(fmt::format("alone/{}.npy", operand.name));
        expected[operand.name].insert(expected[operand.name].end(), one.begin(), one.end());
      }
    }
    for (const NpyForm form : {NpyForm{}, NpyForm{.fortran = true}, NpyForm{.float64 = true},
                               NpyForm{.float64 = true, .fortran = true}}) {
      std::string files;
      for (const Signature& operand : kernel.given) {
        const std::string name = fmt::format("{}.npy", operand.name);
        directory_.write(name, npy_bytes(shape_of(operand, kCount), inputs[operand.name], form));
        files += fmt::format(" --in {}={}", operand.name, name);
      }
      const std::string line = run + files;
      SCOPED_TRACE(line);
      EXPECT_EQ(json(line + outputs(kernel, "together"))["heads"], kCount);
      for (const Signature& operand : kernel.returns) {
        EXPECT_EQ(content_of(directory_ / fmt::format("together/{}.npy", operand.name)),
                  npy_bytes(shape_of(operand, kCount), expected[operand.name]))
            << operand.name;
      }
    }
  }
}

// Files have the dimension of heads exactly if the number of heads was stated, even if it is 1.
TEST_F(Heads, OneHeadMayHaveADimensionToo) {
  const std::string run = "run backward/small --M 500 --out g=g.npy";
  const std::string sized = run + " --n 4 --m 5 --d 3";
  const auto shape = [&](const std::string& line) {
    data(line);
    return NpyReader(directory_ / "g.npy").shape();
  };
  EXPECT_EQ(shape(sized), (std::vector<Index>{3, 3}));
  const Words32 flat = words("g.npy");
  EXPECT_EQ(shape(sized + " --heads 1"), (std::vector<Index>{1, 3, 3}));
  EXPECT_TRUE(same_bits(words("g.npy"), flat));
  EXPECT_EQ(shape(sized + " --heads 2"), (std::vector<Index>{2, 3, 3}));
  directory_.write("a1.npy", npy_bytes({1, 4, 3}, Words32(12, 1)));
  EXPECT_EQ(shape(run + " --m 5 --seed 1 --in A1=a1.npy"), (std::vector<Index>{1, 3, 3}));
  EXPECT_EQ(shape(run + " --m 5 --seed 1 --in A1=a1.npy --heads 1"), (std::vector<Index>{1, 3, 3}));
}

TEST_F(Heads, TheTableSaysHowMany) {
  const std::string large = "backward/large --n 19 --m 14 --d 6 --M 500";
  for (const std::string command : {"run ", "count "}) {
    const std::string table = data(command + large + " --heads 5");
    EXPECT_EQ(table.find("5 heads of backward/large n=19 m=14 d=6 M=500"), 0U) << table;
    EXPECT_NE(table.find("\nO and L by 5 heads of forward/"), std::string::npos) << table;
    EXPECT_EQ(data(command + large).find("heads"), std::string::npos);
  }
}

// The verdict for all heads comes from the head with the largest share of its allowed error. The
// test finds this head by verifying each alone.
TEST_F(Heads, TheVerdictIsOfTheHeadWithTheLargestError) {
  std::set<Index> nearest_heads;
  for (const std::string kernel : {"forward/flash", "backward/large", "matmul/blocked"}) {
    for (const Index first : {1, 2, 3}) {
      const std::string run = fmt::format("run {} --n 19 --m 14 --d 6 --M 500 --verify", kernel);
      Json nearest;
      double most = -1;
      double relative = 0;
      for (Index head = 0; head < 4; ++head) {
        Json error = json(run + fmt::format(" --seed {}", first + head))["error"];
        EXPECT_FALSE(error.contains("head"));
        relative = std::max(relative, error["relative"].get<double>());
        const double share = error["value"].get<double>() / error["bound"].get<double>();
        if (share > most) {
          most = share;
          nearest = error;
          nearest["head"] = head;
        }
      }
      nearest["relative"] = relative;
      const std::string heads = run + fmt::format(" --heads 4 --seed {}", first);
      EXPECT_EQ(json(heads)["error"], nearest) << heads;
      const std::string where = fmt::format("at head {}, {}(", nearest["head"].get<Index>(),
                                            nearest["output"].get<std::string>());
      EXPECT_NE(data(heads).find(where), std::string::npos) << data(heads);
      nearest_heads.insert(nearest["head"].get<Index>());
    }
  }
  EXPECT_GT(nearest_heads.size(), 1U);
}

// If one head of three cannot be verified (as in Command.AFailedVerification), the run fails.
TEST_F(Heads, OneFailedVerificationFailsAll) {
  for (std::size_t bad = 0; bad < 3; ++bad) {
    Words32 large(3, 1);
    Words32 L(3, 1);
    large[bad] = 1e6F;
    L[bad] = 1e6F * 1e6F;
    directory_.write("large.npy", npy_bytes({3, 1, 1}, large));
    directory_.write("one.npy", npy_bytes({3, 1, 1}, Words32(3, 1)));
    directory_.write("L.npy", npy_bytes({3, 1}, L));
    const auto before = files();
    const std::string line =
        "run backward/flash --M 100 --in A1=large.npy --in A2=large.npy --in X=one.npy "
        "--in O=one.npy --in L=L.npy --seed 1 --verify --out g=g.npy --format json";
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find(fmt::format("at head {}, ", bad)), std::string::npos) << outcome.err;
    const Json error = Json::parse(outcome.out)["error"];
    EXPECT_EQ(error["ok"], false);
    EXPECT_EQ(error["head"], bad);
    EXPECT_EQ(files(), before);
  }
}

}  // namespace
}  // namespace redblue
