// redblue plan, and the kernels that it chooses when they are run by the name of auto.

#include <fmt/format.h>

#include "runtime/planner.hpp"
#include "tests/tools/cli.hpp"
#include "tests/tools/json.hpp"

namespace redblue {
namespace {

class PlanCommand : public Cli {};

// The first is the planner's, the others do not move fewer, and each is what count says of it.
TEST_F(PlanCommand, ListsEveryKernelThatFits) {
  for (const std::string given : {"OL", "nothing"}) {
    const Json plan = json("plan --n 100 --m 60 --d 8 --M 500 --given " + given);
    const Task task{
        .shape = {100, 60, 8}, .M = 500, .known = given == "OL" ? Known::O_and_L : Known::nothing};
    const std::vector<Choice> expected = choices(task);
    ASSERT_EQ(plan["runners_up"].size() + 1, expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const Json& found = k == 0 ? plan["plan"] : plan["runners_up"][k - 1];
      EXPECT_EQ(found["kernel"], expected[k].plan.kernel);
      EXPECT_EQ(found["words"], expected[k].words.value());
      EXPECT_NEAR(found["ratio"].get<double>(),
                  static_cast<double>(expected[k].words.value()) /
                      plan["lower_bound"]["words"].get<double>(),
                  1e-9);
      const Json count = json(
          fmt::format("count {} --n 100 --m 60 --d 8 --M 500", found["kernel"].get<std::string>()));
      Index words = count["total"]["io"].get<Index>();
      if (!found["forward"].is_null()) {
        words += json(fmt::format("count {} --n 100 --m 60 --d 8 --M 500",
                                  found["forward"].get<std::string>()))["total"]["io"]
                     .get<Index>();
      }
      EXPECT_EQ(found["words"], words) << found["kernel"];
      EXPECT_EQ(found["blocks"], count["blocks"]) << found["kernel"];
    }
    EXPECT_NE(data("plan --n 100 --m 60 --d 8 --M 500 --given " + given)
                  .find(plan["reason"].get<std::string>()),
              std::string::npos);
  }
}

// Where A3 is A2, the kernels that read them once are there, too; else they are not.
TEST_F(PlanCommand, SharedSourcesAreReadOnce) {
  const std::string size = "plan --n 4096 --d 64 --M 64K";
  EXPECT_EQ(json(size)["plan"]["kernel"], "backward/rows-xg");
  EXPECT_EQ(json(size + " --sharing kv")["plan"]["kernel"], "backward/rows-xg-shared");
  EXPECT_EQ(data(size).find("-shared"), std::string::npos);
}

// auto runs what plan says, and moves what it says.
TEST_F(PlanCommand, AutoRunsThePlan) {
  for (const std::string pass : {"forward", "backward"}) {
    for (const Index M : {Index{300}, Index{2000}, Index{100'000}}) {
      const std::string size = fmt::format("--n 90 --m 70 --d 6 --M {}", M);
      const Json plan = json(fmt::format("plan --problem {} {}{}", pass, size,
                                         pass == "backward" ? " --given nothing" : ""));
      const Json run = json(fmt::format("run {}/auto {} --verify", pass, size));
      EXPECT_EQ(run["asked"], pass + "/auto");
      EXPECT_EQ(run["kernel"], plan["plan"]["kernel"]);
      EXPECT_EQ(run["total_from_nothing"], plan["plan"]["words"]);
      EXPECT_EQ(run["lower_bound"], plan["lower_bound"]);
      EXPECT_EQ(run["ratio"], plan["plan"]["ratio"]);
      EXPECT_TRUE(run["error"]["ok"].get<bool>());
    }
  }
  // Of several threads' kernels, one that splits.
  const Json run = json("run backward/auto --n 90 --d 6 --M 2000 --threads 2 --verify");
  EXPECT_TRUE(find_kernel(run["kernel"].get<std::string>()).split);
  EXPECT_TRUE(run["lower_bound"].is_null()) << "of one machine";
}

// O and L from files: kernels that take them are asked, too.
TEST_F(PlanCommand, AutoTakesWhatItIsGiven) {
  const std::string size = "--n 90 --m 70 --d 6 --M 2000";
  const auto file = [&](const char* name) { return (directory_.path() / name).string(); };
  static_cast<void>(
      json(fmt::format("run forward/naive --n 90 --m 70 --d 6 --M 100K --out O={} --out L={}",
                       file("o.npy"), file("l.npy"))));
  const Json run = json(fmt::format("run backward/auto {} --verify --in O={} --in L={}", size,
                                    file("o.npy"), file("l.npy")));
  EXPECT_EQ(run["kernel"], json("plan " + size)["plan"]["kernel"]);
  EXPECT_EQ(run["seed"], 1) << "the other operands came from it";
  EXPECT_TRUE(run["error"]["ok"].get<bool>());
}

}  // namespace
}  // namespace redblue
