// Tests `redblue plot` from the outside: pictures with all their texts, or one line with the
// reason.

#include <fmt/format.h>

#include "runtime/text/table.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/svg.hpp"

namespace redblue {
namespace {

using Plot = Cli;

class PlotPictures : public Cli {
 protected:
  void expect_words(const std::string& file, const std::vector<std::string>& words) const {
    const std::string svg = content_of(directory_ / file);
    EXPECT_NO_THROW(XmlReader::read(svg));
    for (const std::string& text : words) {
      EXPECT_NE(svg.find(text), std::string::npos) << text;
    }
  }
};

const std::string kOccupancy = "plot occupancy backward/small --n 60 --d 16 --M 300";

TEST_F(PlotPictures, OccupancyHasAllItsWords) {
  EXPECT_EQ(data(kOccupancy + " -o picture.svg"), "");
  expect_words("picture.svg",
               {"backward/small: n = 60, m = 60, d = 16", "words moved, read and written",
                "words in fast memory", "M = 300", ">phase1<", ">phase2/q<", ">A1<", ">f<", ">q<",
                "redblue plot occupancy backward/small --n 60 --d 16 --M 300 --out picture.svg"});
  EXPECT_EQ(data(kOccupancy + " -o picture.png"), "");
  EXPECT_TRUE(content_of(directory_ / "picture.png").starts_with("\x89PNG\r\n\x1a\n"));
  EXPECT_EQ(data(kOccupancy + " -o picture.pdf"), "");
  EXPECT_TRUE(content_of(directory_ / "picture.pdf").starts_with("%PDF-"));
  EXPECT_EQ(data(kOccupancy + " -o picture.eps"), "");
  EXPECT_TRUE(content_of(directory_ / "picture.eps").starts_with("%!PS-Adobe-"));
  EXPECT_EQ(files().size(), 4U) << "and nothing beside them";
}

// For papers, which have their own title and caption.
TEST_F(PlotPictures, BareIsWithoutTitleAndCommand) {
  EXPECT_EQ(data(kOccupancy + " -o whole.svg"), "");
  EXPECT_EQ(data(kOccupancy + " --bare -o bare.svg"), "");
  expect_words("bare.svg", {"words moved, read and written", ">phase1<", "M = 300"});
  const std::string svg = content_of(directory_ / "bare.svg");
  for (const char* text : {"Fast memory of", "redblue plot"}) {
    EXPECT_EQ(svg.find(text), std::string::npos) << text;
    EXPECT_NE(content_of(directory_ / "whole.svg").find(text), std::string::npos) << text;
  }
}

// A hatched area hides the drawing behind it, in an SVG as well: there is white below each area.
TEST_F(PlotPictures, AreasHideWhatIsBehind) {
  EXPECT_EQ(data(kOccupancy + " -o p.svg"), "");
  const std::string svg = content_of(directory_ / "p.svg");
  std::size_t white = 0, patterns = 0;
  for (std::size_t at = 0; (at = svg.find("fill = 'rgb(255, 255, 255)'", at)) != std::string::npos;
       ++at) {
    ++white;
  }
  for (std::size_t at = 0; (at = svg.find("<pattern ", at)) != std::string::npos; ++at) {
    ++patterns;
  }
  EXPECT_GT(patterns, 5U);
  EXPECT_GE(2 * white, patterns) << "of area and legend each";
}

// The caption is a command that makes the picture again.
TEST_F(PlotPictures, CaptionIsACommand) {
  EXPECT_EQ(data("plot occupancy backward/small --n 60 --d 16 --M 300 --blocks B=5 --out p.svg"),
            "");
  expect_words("p.svg", {"redblue plot occupancy backward/small --n 60 --d 16 --M 300 --blocks B=5 "
                         "--out p.svg"});
}

TEST_F(PlotPictures, EveryKernelIsDrawn) {
  for (const std::string kernel : {"backward/rows", "backward/large", "backward/naive",
                                   "backward/rows-q", "forward/flash", "matmul/blocked"}) {
    EXPECT_EQ(data("plot occupancy " + kernel + " --n 20 --d 6 --M 3000 -o p.svg"), "") << kernel;
    expect_words("p.svg", {kernel, "M = 3,000"});
  }
}

// If M is far above all words, it is a text only. Drawn to scale, it would make all words
// invisible.
TEST_F(PlotPictures, MFarAboveAll) {
  EXPECT_EQ(data("plot occupancy matmul/blocked --n 10 --m 7 --d 3 --M 1M -o p.svg"), "");
  expect_words("p.svg", {"at most 121 of M = 1,048,576 words", "M is far above", ">100<"});
}

TEST_F(PlotPictures, RefusesWhatItCannotDraw) {
  expect_refused(process(kOccupancy), 2, "--out is missing");
  expect_refused(process(kOccupancy + " -o p.jpg"), 2,
                 "--out 'p.jpg': .*\\.svg, \\.png, \\.pdf or \\.eps");
  expect_refused(process(kOccupancy + " --out p"), 2, "--out 'p'");
  expect_refused(process(kOccupancy + " -o none/p.svg"), 1, "none/p.svg");
  expect_refused(process(kOccupancy + " -o p.svg --threads 2"), 2, "--threads");
  expect_refused(process("PATH= " + kOccupancy + " -o p.svg"), 1,
                 "gnuplot is unavailable: .*install gnuplot-nox");
  expect_refused(process("plot"), 2, "subcommand");
  if (!kFilesAreLimited) {
    GTEST_SKIP() << "below a limit of files clang's OpenMP does not start";
  }
  Process full = process(kOccupancy + " -o p.svg");
  full.largest_file = 1000;
  expect_refused(full, 1, "cannot write .*/script.*: File too large");
}

const std::string kDividing =
    "plot dividing --n 90 --d 24 --seed 3 --make A1=random:6 --make A2=random:5 --make X=identity";

// The table needs no gnuplot. A point has the words of `count`.
TEST_F(Plot, DividingIsATable) {
  const Json report = json("PATH= " + kDividing);
  EXPECT_EQ(keys(report), (Keys{"schema", "context", "n", "m", "d", "sparse", "measured",
                                "measured_without_prepare", "remark_4_7", "points"}));
  EXPECT_EQ(report["sparse"]["A1"], (Json{{"stored", 540}, {"from", "random:6"}}));
  const Index measured = report["measured"];
  const std::string table = data(kDividing);
  const std::vector<CsvRow> rows = parse_csv(data(kDividing + " --format csv"));
  ASSERT_EQ(rows.size(), report["points"].size());
  bool seen = false;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const Json& point = report["points"][k];
    EXPECT_EQ(rows[k].at("M"), point["M"].dump());
    if (point["M"] == measured) {
      seen = true;
      for (const std::string name : {"tiles", "rows"}) {
        const Json total = json(fmt::format(
            "count logsumexp/sparse-{} --M {} --n 90 --d 24 --seed 3 --make A1=random:6 --make "
            "A2=random:5 --make X=identity",
            name, measured))["total"];
        EXPECT_EQ(point[name]["words"], total["io"]);
        EXPECT_EQ(rows[k].at(name), total["io"].dump());
        EXPECT_EQ(point[name]["index"].get<Index>(),
                  total["index_reads"].get<Index>() + total["index_writes"].get<Index>());
        EXPECT_NE(table.find(grouped(total["io"].get<Index>())), std::string::npos);
      }
    }
  }
  EXPECT_TRUE(seen);
  EXPECT_NE(
      table.find(fmt::format(
          "rows move fewer words than tiles first at M = {}, and where regrouping is not counted",
          grouped(measured))),
      std::string::npos)
      << table;
  expect_refused(process("plot dividing --d 24"), 2, "--n is missing");
  expect_refused(process("plot dividing --n 9 --d 4 --make A3=random:2"), 2, "is given A1");
  expect_refused(process(kDividing + " --format svg"), 2, "--format 'svg'");
}

TEST_F(PlotPictures, DividingHasAllItsWords) {
  const std::string line = "plot dividing --n 90 --d 24 --make A1=random:16 --make A2=random:15";
  EXPECT_NE(data(line + " -o p.svg").find("rows / tiles"), std::string::npos);
  expect_words("p.svg",
               {"Words of L: n = m = 90, d = 24; A1 random:16, A2 random:15",
                "M, words of fast memory", "words moved, read and written", ">sparse-tiles<",
                ">sparse-rows<", "rows from M = ", "Z_QK = ", "--make A1=random:16"});
  const Outcome both = redblue(line + " -o -");
  EXPECT_EQ(both.code, 0);
  EXPECT_NE(both.out.find("<svg"), std::string::npos);
  EXPECT_NE(both.err.find("rows / tiles"), std::string::npos);
}

TEST_F(PlotPictures, ReplayHasAllItsWords) {
  EXPECT_NE(data("plot replay backward/rows --n 20 --d 4 --M 200 -o p.svg").find("OPT reads"),
            std::string::npos);
  expect_words("p.svg", {"backward/rows and caches: n = m = 20, d = 4", ">LRU<", ">Belady<",
                         ">OPT, fewest reads<", ">lower bound<", ">the kernel<", "peak, "});
  data("plot replay backward/rows --n 20 --d 4 --M 200 --unit row -o rows.svg");
  expect_words("rows.svg", {"backward/rows and caches of rows: n = m = 20, d = 4", "--unit row"});
}

const std::string kOnRanks = "plot ranks backward/rows --n 4096 --d 32 --M 16K --ranks 64";

// Each point agrees with plan and count. Each run is a point as well. The table needs no gnuplot.
TEST_F(Plot, RanksAreATable) {
  const Json report = json("PATH= " + kOnRanks);
  EXPECT_EQ(report["points"].size(), 12U) << "2, 4, ... 64 ranks: best grid and ring";
  for (const Json& point : report["points"]) {
    EXPECT_GE(point["ratio"], 1);
    EXPECT_GT(point["received"], point["words"]) << "the running sum of g is not in the bound";
    const Json counted = json(fmt::format("plan backward/rows --n 4096 --d 32 --M 16K --ranks {}",
                                          point["ranks"].get<Index>()));
    if (point["what"] == "best grid") {
      EXPECT_EQ(point["received"], counted["plan"]["received"]);
      EXPECT_EQ(point["words"], counted["plan"]["rank_bounds"]["links"]["words"]);
      EXPECT_EQ(point["ratio"], counted["plan"]["rank_bounds"]["links"]["ratio"]);
    } else {
      EXPECT_EQ(point["columns"], 1);
    }
  }
  const std::string run = "run backward/rows --n 90 --d 4 --M 900 --grid 2x2";
  directory_.write("run.json", json(run).dump());
  const std::string drawn = "plot ranks backward/rows --n 90 --d 4 --M 900 --ranks 4 --runs ";
  const Json point = json(drawn + "run.json")["points"].back();
  EXPECT_EQ(point["what"], "run");
  EXPECT_EQ(point["ranks"], 4);
  EXPECT_EQ(point["words"], json(run)["rank_bounds"]["links"]["words"]);
  EXPECT_EQ(point["received"], json(run)["largest"]["received"]);
  EXPECT_NE(data(drawn + "run.json").find("run"), std::string::npos);
  expect_refused(
      process("plot ranks backward/rows --n 91 --d 4 --M 900 --runs run.json"), 1,
      "run.json: a run of backward/rows n=90 m=90 d=4, but backward/rows n=91 m=91 d=4 is "
      "drawn: give runs of one problem");
  directory_.write("count.json", json("count backward/rows --n 90 --d 4 --M 900").dump());
  expect_refused(process(drawn + "count.json"), 1, "count.json: expected what `redblue run");
  expect_refused(process(drawn + "none.json"), 1, "none.json");
  expect_refused(process("plot ranks backward/small --n 90 --d 4 --M 900"), 2,
                 "backward/small does not run on ranks; .*backward/rows");
  for (const char* const out : {"", " -o p.svg"}) {
    expect_refused(
        process(std::string("plot ranks backward/rows --n 90 --d 4 --M 900 --ranks 1") + out), 2,
        "--ranks 1: one rank has no links; expected at least 2");
  }
}

// For any size, the best grid minimises the words received by its busiest rank, and the ring is
// among the candidates. In the words that the bound counts, the best grid may exceed the ring.
TEST_F(Plot, TheBestOfRanksReceivesTheFewestWords) {
  for (const char* const kernel : {"forward/rows", "backward/rows", "gradients/rows-keys"}) {
    for (const int n : {3, 10, 31, 64}) {
      const std::string line =
          fmt::format("plot ranks {} --n {} --d 3 --M 900 --ranks 16", kernel, n);
      SCOPED_TRACE(line);
      const Json points = json(line)["points"];
      for (std::size_t k = 1; k < points.size(); ++k) {
        if (points[k]["what"] == "ring") {
          EXPECT_EQ(points[k - 1]["ranks"], points[k]["ranks"]);
          EXPECT_LE(points[k - 1]["received"], points[k]["received"]);
        }
      }
    }
  }
}

TEST_F(PlotPictures, RanksHaveAllTheirWords) {
  directory_.write("run.json", json("run backward/rows --n 90 --d 4 --M 900 --grid 2x2").dump());
  EXPECT_NE(
      data("plot ranks backward/rows --n 90 --d 4 --M 900 --ranks 16 --runs run.json -o p.svg")
          .find("best grid"),
      std::string::npos);
  expect_words("p.svg", {"Words of one rank: backward/rows, n = m = 90, d = 4, M = 900", ">ranks<",
                         "words of the links of one rank", ">lower bound<", ">ring, P x 1<",
                         ">best grid<", ">runs<", "--ranks 16"});
}

// If gnuplot fails, the message has gnuplot's own text.
TEST_F(Plot, SaysWhatGnuplotSays) {
  const auto gnuplot =
      directory_.write("bin/gnuplot", "#!/bin/sh\necho >&2\necho broken >&2\nexit 3\n");
  std::filesystem::permissions(gnuplot, std::filesystem::perms::owner_all);
  expect_refused(process("PATH=bin:/bin " + kOccupancy + " -o p.svg"), 1, "gnuplot failed: broken");
}

}  // namespace
}  // namespace redblue
