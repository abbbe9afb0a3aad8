// Tests gradients/sources on the command line: Q, K and V are one matrix.

#include <string>

#include <fmt/format.h>

#include "tests/support/cli.hpp"
#include "tests/support/json.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;

class OneSource : public Cli {
 protected:
  const std::string run_ = "run gradients/sources --n 61 --d 7 --M 700";
};

// O and L are made by a kernel of attention, which reads the one matrix as Q and as K.
TEST_F(OneSource, IsVerified) {
  for (const char* const more :
       {"", " --mask causal", " --mask window:9,2", " --mask prefix:4", " --mask global:3-5",
        " --heads 3 --threads 2", " --threads 3", " --activation silu", " --softmax-scale 0.5",
        " --objective time", " --word 2 --sums 4", " --store file:st"}) {
    SCOPED_TRACE(more);
    const Json run = json(run_ + more + " --verify");
    EXPECT_EQ(run["error"]["ok"], true);
    EXPECT_EQ(run["sharing"], "self");
    EXPECT_EQ(run["m"], 61);
    for (const char* const counted : {"reads", "writes", "peak"}) {
      EXPECT_EQ(run["total"][counted], run["formula"][counted]) << counted;
    }
  }
}

// Threads, and a run that resumes, leave the same bits.
TEST_F(OneSource, HasTheBitsOfOneThread) {
  data(run_ + " --out dQ=one.npy");
  for (const int threads : {2, 3, 7}) {
    data(fmt::format("{} --threads {} --out dQ=other.npy", run_, threads));
    EXPECT_EQ(content_of(directory_ / "one.npy"), content_of(directory_ / "other.npy")) << threads;
  }
  data(run_ + " --store file:st --resume --out dQ=other.npy");
  EXPECT_EQ(content_of(directory_ / "one.npy"), content_of(directory_ / "other.npy"));
}

// The plan of `--sharing self` has it first, with the bound of one source.
TEST_F(OneSource, IsPlanned) {
  const Json plan = json("plan --problem gradients --n 512 --d 16 --M 2K --sharing self");
  const Json& best = plan["plan"];
  EXPECT_EQ(best["kernel"], "gradients/sources");
  const Json count = json("count gradients/sources --n 512 --d 16 --M 2K --objective words");
  EXPECT_EQ(best["words"], count["total"]["io"]);
  EXPECT_GE(best["ratio"].get<double>(), 1);
}

}  // namespace
}  // namespace redblue
