// Tests `--dv` of run, count, plan and bounds: values that are wider or narrower than keys.

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"

namespace redblue {
namespace {

using Json = nlohmann::json;

class DvOption : public Cli {};

// Tests every kernel of attention and gradients. The counts of a run equal the formula, and the
// results hold against double precision. The options include masks, heads that share keys, and
// threads.
TEST_F(DvOption, EveryKernelTakesIt) {
  for (const Kernel& kernel : kernels()) {
    if (inputs_of(kernel.pass) == Inputs::weighted || kernel.of_one_source) {
      continue;
    }
    SCOPED_TRACE(kernel.name);
    for (const int dv : {1, 4, 6, 17}) {
      const std::string problem =
          fmt::format("{} --n 29 --m 23 --d 6 --dv {} --M 1500{}", kernel.name, dv,
                      kernel.takes_masks ? " --mask causal" : "");
      const Json ran = json("run " + problem + " --verify");
      EXPECT_EQ(ran["dv"], dv);
      EXPECT_EQ(ran["total"]["reads"], ran["formula"]["reads"]);
      EXPECT_EQ(ran["total"]["writes"], ran["formula"]["writes"]);
      EXPECT_EQ(ran["error"]["ok"], true);
      EXPECT_EQ(json("count " + problem)["formula"], ran["formula"]);
      EXPECT_EQ(
          json("run " + problem + " --heads 4 --kv-heads 2 --threads 2 --verify")["error"]["ok"],
          true);
    }
  }
}

// dv = d is the default. Input files state dv by their shape.
TEST_F(DvOption, IsThatOfFiles) {
  const std::string size = " --n 9 --m 8 --d 5 --M 700";
  EXPECT_EQ(data("count attention/rows --dv 5" + size), data("count attention/rows" + size));
  const Json made =
      json("run gradients/rows-keys-onepass --dv 3 --out dV=dV.npy --out dK=dK.npy" + size);
  EXPECT_EQ(made["dv"], 3);
  // dV is m x 3 and dK is m x 5. Read as V and K, they give dv = 3.
  const Json read =
      json("run attention/rows --in V=dV.npy --in K=dK.npy --in Q=dK.npy --M 700 --verify");
  EXPECT_EQ(read["dv"], 3);
  EXPECT_EQ(read["d"], 5);
  EXPECT_EQ(read["error"]["ok"], true);
  for (const CsvRow& row : parse_csv(data("count attention/rows --dv 3 --format csv" + size))) {
    EXPECT_EQ(row.at("dv"), "3");
  }
  EXPECT_FALSE(json("count forward/rows" + size).contains("dv"));
}

// Plans and bounds count the width of values in the compulsory words: n d (Q) + m (d + dv) (K and
// V) + n dv + n (O and L).
TEST_F(DvOption, OfPlansAndBounds) {
  const std::string size = " --n 64 --m 64 --d 8 --dv 24 --M 100K";
  const Json plan = json("plan --problem attention" + size);
  EXPECT_EQ(plan["dv"], 24);
  EXPECT_EQ(plan["plan"]["words"], 64 * 8 + 64 * (8 + 24) + 64 * 24 + 64);
  EXPECT_EQ(json("bounds --problem attention" + size)["lower_bound"]["words"],
            plan["plan"]["words"]);
  EXPECT_NE(data("plan --problem gradients" + size).find("d=8 dv=24"), std::string::npos);
}

}  // namespace
}  // namespace redblue
