// Tests `redblue curve`. At each size, a curve has the words that `plan` reports. The M that it
// finds for a number of words is enough, and one word less is not.

#include "runtime/report/curve.hpp"

#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"

namespace redblue {
namespace {

class CurveCommand : public Cli {
 protected:
  // Checks that each point has the kernels, words, ratios and bound of a plan of that size.
  void expect_plans(const std::string& problem, const std::string& over,
                    const std::string& range = "") {
    SCOPED_TRACE(problem + " over " + over);
    const Json curve = json(fmt::format("curve {} --over {}{}", problem, over, range));
    EXPECT_EQ(curve["over"], over);
    ASSERT_GE(curve["points"].size(), 3U);
    for (std::size_t k = 0; k < curve["points"].size(); k += 5) {
      const Json& point = curve["points"][k];
      const Index size = point[over].get<Index>();
      const Outcome outcome =
          redblue(fmt::format("plan --format json {} --{} {}", problem, over, size));
      if (point["choices"].empty()) {
        EXPECT_NE(outcome.code, 0) << size;
        continue;
      }
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const Json plan = Json::parse(outcome.out);
      EXPECT_EQ(point["lower_bound"], plan["lower_bound"]);
      std::vector<Json> choices = {plan["plan"]};
      choices.insert(choices.end(), plan["runners_up"].begin(), plan["runners_up"].end());
      ASSERT_EQ(point["choices"].size(), choices.size()) << size;
      for (std::size_t c = 0; c < choices.size(); ++c) {
        for (const char* key : {"kernel", "forward", "words", "ratio"}) {
          EXPECT_EQ(point["choices"][c][key], choices[c][key]) << size << " " << key;
        }
        EXPECT_EQ(point["choices"][c]["class_bound"], choices[c]["lower_bound"]["words"]) << size;
        EXPECT_EQ(point["choices"][c]["class_term"], choices[c]["lower_bound"]["term"]) << size;
      }
    }
  }

  // Returns the fewest words of all kernels that fit in M, or the largest Index if no kernel fits.
  [[nodiscard]] Index fewest(const std::string& problem, Index M) const {
    const Outcome outcome = redblue(fmt::format("plan --format json {} --M {}", problem, M));
    return outcome.code == 0 ? Json::parse(outcome.out)["plan"]["words"].get<Index>()
                             : std::numeric_limits<Index>::max();
  }
};

TEST_F(CurveCommand, HasTheWordsOfPlans) {
  for (const char* problem :
       {"--problem backward --n 90 --m 70 --d 8",
        "--problem gradients --given nothing --n 60 --d 5 --mask causal",
        "--problem attention --n 50 --d 4 --dv 7 --heads 6 --kv-heads 2",
        "--problem product --n 40 --d 9", "--problem forward --n 30 --d 6 --make A1=random:3"}) {
    expect_plans(problem, "M");
  }
  expect_plans("--problem backward --d 8 --M 900", "n", " --from 5 --to 3K");
  expect_plans("--problem forward --n 90 --M 900", "d", " --from 1 --to 200");
}

// With the objective time, the kernels and their order are those of plans for time.
TEST_F(CurveCommand, OfTheLeastTime) {
  expect_plans("--problem attention --n 300 --d 8 --objective time", "M");
  expect_plans("--problem gradients --given nothing --d 8 --M 2K --objective time", "n",
               " --from 5 --to 300");
  const std::string line = "curve --problem attention --n 300 --d 8 --objective time";
  const Json curve = json(line);
  EXPECT_NE(curve["rates"].get<std::string>().find("default"), std::string::npos);
  for (const Json& point : curve["points"]) {
    double before = 0;
    for (const Json& choice : point["choices"]) {
      EXPECT_GE(choice["seconds"], before);
      before = choice["seconds"];
    }
  }
  EXPECT_NE(data(line).find("least ms"), std::string::npos);
  expect_refused(process("curve --n 300 --d 8 --objective balanced"), 2,
                 "--objective 'balanced': expected words or time");
  expect_refused(process("curve --n 300 --d 8 --objective time --words 9K"), 2,
                 "--words: it finds an M by its words: leave out --objective time");
}

// Every algorithm moves at least `lower_bound`, and a kernel of the class at least `class_bound`.
// The class is a part of all algorithms, so lower_bound <= class_bound <= words. If the two bounds
// differ, the larger one makes an assumption, and `bounds` lists it with the same assumption.
TEST_F(CurveCommand, HasTheBoundOfEachKernelsClass) {
  constexpr const char* kAll = "any order, recomputation allowed";
  int apart = 0;
  for (const char* problem :
       {"--problem gradients --n 300 --d 8", "--problem backward --n 300 --d 8",
        "--problem backward --n 300 --d 8 --sharing kv", "--problem forward --n 90 --d 8"}) {
    const Json curve = json(fmt::format("curve {} --from 200 --to 4K", problem));
    for (const Json& point : curve["points"]) {
      const Json bounds = json(fmt::format("bounds {} --M {}", problem, point["M"].get<Index>()));
      for (const Json& choice : point["choices"]) {
        const std::string assumes = choice["class_assumes"];
        EXPECT_LE(point["lower_bound"]["words"], choice["class_bound"]);
        EXPECT_LE(choice["class_bound"], choice["words"]);
        EXPECT_EQ(choice["class_bound"] > point["lower_bound"]["words"], assumes != kAll) << choice;
        bool found = false;
        for (const Json& bound : bounds["bounds"]) {
          if (bound["name"] == choice["class_term"]) {
            found = true;
            EXPECT_EQ(bound["words"], choice["class_bound"]);
            EXPECT_EQ(bound["order"] == "two-step", assumes.starts_with("two-step"));
            EXPECT_EQ(bound["recomputation"], assumes.ends_with("recomputation allowed"));
          }
        }
        EXPECT_TRUE(found) << choice;
        apart += assumes == kAll ? 0 : 1;
      }
    }
  }
  EXPECT_GT(apart, 20);
}

// The table and the CSV say the same. The line below the table says what any algorithm may do.
TEST_F(CurveCommand, SaysWhyTheTwoBoundsDiffer) {
  const std::string line = "curve --problem gradients --n 300 --d 8 --from 512 --to 2K";
  const std::string table = data(line);
  for (const char* text : {"lower bound", "bound of its class", "its bound assumes",
                           "any order, no recomputation", "any order, recomputation allowed",
                           "\nthe lower bound assumes: any order, recomputation allowed\n"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text;
  }
  const std::string over_d = " --problem gradients --n 300 --M 1K --over d --from 7 --to 9";
  const std::vector<CsvRow> csv = parse_csv(data("curve --format csv" + over_d));
  const Json points = json("curve" + over_d);
  std::size_t row = 0;
  for (const Json& point : points["points"]) {
    for (const Json& choice : point["choices"]) {
      EXPECT_EQ(csv.at(row).at("class_bound"), std::to_string(choice["class_bound"].get<Index>()));
      EXPECT_EQ(csv.at(row).at("class_term"), choice["class_term"]);
      EXPECT_EQ(csv.at(row).at("class_assumes"), choice["class_assumes"]);
      ++row;
    }
  }
  // A dense kernel that runs on sparse operands has the bound of the dense problem.
  bool dense = false;
  const Json sparse =
      json("curve --problem forward --n 30 --d 6 --make A1=random:3 --from 64 --to 4K");
  for (const Json& choice : sparse["points"][3]["choices"]) {
    dense = dense || choice["class_assumes"].get<std::string>().starts_with("dense operands, ");
  }
  EXPECT_TRUE(dense);
}

// The picture has a line for each kind of bound, and its legend states the assumption of that
// bound.
TEST(CurvePicture, NamesWhatItsBoundsAssume) {
  std::vector<Task> tasks;
  for (const Index M : {1024, 1536, 2048}) {
    tasks.push_back({Pass::gradients, {300, 300, 8}, M});
  }
  const std::string plot = curve_picture(report_curve(tasks, Curve::Over::M)).commands;
  for (const char* legend : {"'lower bound'", "'bound, sums once'"}) {
    EXPECT_NE(plot.find(legend), std::string::npos) << legend << "\n" << plot;
  }
}

TEST_F(CurveCommand, FindsTheLeastM) {
  for (const char* problem : {"--problem backward --n 90 --m 70 --d 8",
                              "--problem gradients --n 60 --d 5 --given nothing",
                              "--problem attention --n 50 --d 4 --heads 3"}) {
    for (const Index words : {50'000, 20'000, 9'000}) {
      const Json found = json(fmt::format("curve {} --words {}", problem, words))["reached"];
      const Index M = found["M"].get<Index>();
      EXPECT_EQ(found["at_most"], words);
      EXPECT_LE(found["words"], words);
      EXPECT_EQ(fewest(problem, M), found["words"]);
      if (M > 1) {
        EXPECT_GT(fewest(problem, M - 1), words) << problem << " in M = " << M - 1;
      }
    }
  }
  EXPECT_EQ(json("curve --n 90 --d 8 --bytes 80004B")["reached"],
            json("curve --n 90 --d 8 --words 20001")["reached"]);
}

// The heading leaves out the size that varies, and each point states all its sizes. Sizes may be as
// large as an Index.
TEST_F(CurveCommand, SaysWhichProblemEachPointIs) {
  EXPECT_TRUE(data("curve --d 8 --mask causal --over n --M 1K --from 8 --to 32")
                  .starts_with("backward d=8 M=1024, after a forward pass, mask causal   ("));
  const std::string varied =
      "curve --problem attention --n 9 --dv 7 --M 1K --over d --from 7 --to 9";
  EXPECT_TRUE(data(varied).starts_with("attention n=9 m=9 M=1024"));
  const Json causal = json("curve --d 8 --mask causal --over n --M 1K --from 8 --to 32");
  for (const Json& point : causal["points"]) {
    const Index n = point["n"].get<Index>();
    EXPECT_EQ(point["m"], n);
    EXPECT_EQ(point["pairs"], n * (n + 1) / 2);
  }
  const Json points = json(varied);
  for (const Json& point : points["points"]) {
    EXPECT_EQ(point["dv"], 7);
  }
  Index before = 0;
  const Json huge = json("curve --n 64 --d 8 --from 4700000000000000000 --to 9200000000000000000");
  for (const Json& point : huge["points"]) {
    EXPECT_GT(point["M"].get<Index>(), before);
    before = point["M"].get<Index>();
    EXPECT_GE(before, 4700000000000000000);
  }
}

using PerfOfCurve = Cli;

// A curve needs only formulas, so it is fast.
TEST_F(PerfOfCurve, TakesLessThanASecond) {
  EXPECT_LT(seconds_after_start("curve --n 64K --d 128 --words 100M", 1), 1);
}

TEST_F(CurveCommand, SaysWhatItCannotAnswer) {
  const auto refused = [&](const std::string& line, const std::string& message, int code = 2) {
    expect_refused(process("curve " + line), code, message);
  };
  refused("--n 9 --d 3 --M 4K",
          "--M '4K': words are against M: leave it out, or give --over n or --over d");
  refused("--n 9 --d 3 --over k", "--over 'k': expected M, n or d");
  refused("--n 9 --d 3 --over n --M 1K --from 2 --to 9",
          "--n '9': words are against n: leave it out");
  refused("--d 3 --over n --M 1K --to 9", "--from is missing: a size, with --over n");
  refused("--n 9 --over d --M 1K --from 9 --to 3",
          "--to 3: from 9 on there is nothing up to it: give a larger one");
  refused("--n 90 --d 8 --from 1M",
          "--from 1048576: words no longer fall beyond 2048: give a --to, too");
  refused("--n 9 --d 3 --words 5 --bytes 8B",
          "--bytes 8B: --words says how many; give one of the two");
  refused("--n 9 --d 3 --bytes 3B",
          "--bytes: \"3B\" is no whole number of words; expected a multiple of 4 bytes");
  refused("--over d --n 9 --M 1K --from 1 --to 3 --words 9",
          "--words: it finds an M, and --over d asks about one");
  refused("--over d --n 9 --M 1K,2K --from 1 --to 3",
          "--M: a curve is of one level of fast memory: give one size");
  refused("--n 90 --d 8 --words 100",
          "no M is enough for 100 words: the fewest are 3,072, of backward/naive", 2);
  refused("--over n --d 3 --M 1K --from 4 --to 9 --mask documents:f.npy",
          "--mask 'documents:f.npy': a file has a mask of one n, and --over n asks about several");
  refused("--over n --d 3 --m 32 --sharing self --M 1K --from 16 --to 40",
          "--m 32 is not --n 16: with --sharing self, queries and keys are one");
  refused("--over n --d 64 --M 2 --from 1K --to 2K", "no kernel fits in M = 2 words:.*", 2);
}

}  // namespace
}  // namespace redblue
