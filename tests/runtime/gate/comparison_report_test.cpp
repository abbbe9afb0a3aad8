// Tests that each format of a comparison follows the rules of its readers, even with names that
// could break it.

#include "runtime/gate/comparison_report.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/csv.hpp"
#include "tests/support/json.hpp"
#include "tests/support/phase_counts.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/xml.hpp"

namespace redblue {
namespace {

using Kind = Difference::Kind;
using Lines = std::vector<std::string>;

std::string text_of(const std::string& form, const GateComparison& comparison) {
  const auto found = std::ranges::find(comparison_forms(), form, &ComparisonForm::name);
  if (found == comparison_forms().end()) {
    throw std::out_of_range(form);
  }
  return found->text(comparison);
}

Lines lines_of(const std::string& text) {
  EXPECT_TRUE(text.ends_with("\n"));
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

RecordedPoint recorded(const std::string& kernel, Index n, const std::vector<PhaseCounts>& phases) {
  RecordedPoint recorded{
      .point = {kernel, {}}, .least_M = std::nullopt, .counts = run_counts(phases)};
  recorded.point.arguments.set("n", n);
  return recorded;
}

GateComparison compared(const Recording& before, const Recording& now,
                        const std::vector<std::string>& tolerances = {}) {
  std::vector<Tolerance> parsed;
  for (const std::string& tolerance : tolerances) {
    parsed.push_back(parse_tolerance(tolerance));
  }
  GateComparison comparison = compare(before, now, parsed);
  comparison.before = "base.json";
  comparison.now = "this program";
  return comparison;
}

GateComparison one(const RecordedPoint& before, const RecordedPoint& now,
                   const std::vector<std::string>& tolerances = {}) {
  return compared({.how = How::run, .points = {before}}, {.how = How::run, .points = {now}},
                  tolerances);
}

// Points of all kinds. x n=1 reads one more word, and x n=2 has a renamed phase. y is gone, and w
// is new. z n=4 has two words that a tolerance hides, z n=5 no longer fits, and z n=6 is unchanged.
GateComparison all_kinds() {
  Recording before{.how = How::run, .points = {}}, now;
  before.points = {recorded("x", 1, {phase_counts("p", 1000, 20, 30)}),
                   recorded("x", 2, {phase_counts("p", 10, 0, 3)}),
                   recorded("y", 3, {phase_counts("p", 10, 20, 30)}),
                   recorded("z", 4, {phase_counts("p", 10, 20, 30)}),
                   recorded("z", 5, {phase_counts("p", 10, 20, 30)}),
                   recorded("z", 6, {phase_counts("p", 10, 20, 30)})};
  now.points = {recorded("x", 1, {phase_counts("p", 1001, 20, 30)}),
                recorded("x", 2, {phase_counts("q", 10, 0, 3)}),
                recorded("z", 4, {phase_counts("p", 10, 22, 30)}),
                before.points[4],
                recorded("z", 6, {phase_counts("p", 10, 20, 30)}),
                recorded("w", 7, {phase_counts("p", 1, 2, 3)})};
  now.points[3].fits = false;
  now.points[3].why = "fast memory overflow in phase p: a asks for 9 words: 5 words are missing";
  return compared(before, now, {"writes=2"});
}

// A name of letters that have a meaning to one of the readers.
const std::string kBadName = "a&b<c>\"d\"|e,f:g%h\\i\nj'k`l*m_n\r\x01";
const std::string kShown = "a&b<c>\"d\"|e,f:g%h\\i\\x0aj'k`l*m_n\\x0d\\x01";  // to people

GateComparison bad_names() {
  GateComparison comparison = one(recorded(kBadName, 1, {phase_counts(kBadName, 1, 2, 3)}),
                                  recorded(kBadName, 1, {phase_counts(kBadName, 2, 2, 3)}));
  return comparison;
}

TEST(Verdict, CountsPointsAndWhatIsHidden) {
  EXPECT_EQ(verdict(all_kinds()), "DIFFERENT, 5 of 7 points; 2 differences hidden by tolerances");
  const RecordedPoint same = recorded("x", 1, {phase_counts("p", 1, 1, 1)});
  EXPECT_EQ(verdict(one(same, same)), "same, the only point");
  EXPECT_EQ(verdict(one(same, recorded("x", 1, {phase_counts("p", 1, 1, 2)}))),
            "DIFFERENT, 1 of 1 point");
  RecordedPoint least = same;
  least.least_M = 2;
  RecordedPoint more = same;
  more.least_M = 3;
  EXPECT_EQ(verdict(one(least, more, {"least_M=1"})),
            "same, the only point; 1 difference hidden by tolerances");
  Recording two{.how = How::run, .points = {same, recorded("y", 1, {phase_counts("p", 1, 1, 1)})}};
  EXPECT_EQ(verdict(compared(two, two)), "same, all 2 points");
}

// First the total words of each point, reads and writes together. Then the phases of all points, by
// the size of their change. Then the differences without a phase, and last the hidden ones.
TEST(ComparisonTable, HasTotalsAndThenTheLargestChangeAndNoTrailingBlanks) {
  const std::string text = text_of("table", all_kinds());
  EXPECT_EQ(
      text,
      "this program\n"
      "against base.json: DIFFERENT, 5 of 7 points; 2 differences hidden by tolerances\n"
      "\n"
      "total words  baseline                now  change    share\n"
      "y n=3              30                  -       -        -\n"
      "z n=5              30  does not fit in M       -        -\n"
      "w n=7               -                  3       -        -\n"
      "x n=1           1,020              1,021      +1  +0.098%\n"
      "x n=2              10                 10       0       0%\n"
      "z n=4              30                 32      +2   +6.67%\n"
      "\n"
      "point  phase  metric       baseline            now  change  share\n"
      "y n=3  total   point          there           gone       -      -  it is gone\n"
      "z n=5  total    fits            yes             no       -      -  fast memory overflow in "
      "phase p: a asks for 9 words: 5 words are missing\n"
      "w n=7  total   point              -            new       -      -\n"
      "x n=2      p   words             10  no such phase     -10   gone\n"
      "           q   words  no such phase             10     +10    new\n"
      "x n=1      p   reads          1,000          1,001      +1  +0.1%\n"
      "       total   reads          1,000          1,001      +1  +0.1%\n"
      "z n=4      p  writes             20             22      +2   +10%  hidden by writes=2\n"
      "       total  writes             20             22      +2   +10%  hidden by writes=2\n");
  for (const std::string& line : lines_of(text)) {
    EXPECT_FALSE(line.ends_with(" ")) << line;
  }
  const RecordedPoint same = recorded("x", 1, {phase_counts("p", 1, 1, 1)});
  EXPECT_EQ(text_of("table", one(same, same)),
            "this program\nagainst base.json: same, the only point\n");
}

TEST(ComparisonTable, EndsAndSaysSo) {
  Recording before{.how = How::run, .points = {}}, now;
  for (Index n = 1; n <= 61; ++n) {
    before.points.push_back(
        recorded("x", n, {phase_counts("p", 1, 1, 1), phase_counts("q", 1, 1, 9)}));
    now.points.push_back(
        recorded("x", n, {phase_counts("p", 1, 1, 2), phase_counts("q", 1, 1, 9)}));
  }
  const Lines lines = lines_of(text_of("table", compared(before, now)));
  EXPECT_EQ(lines.size(), 3U + 2U * (1U + 60U + 1U) + 1U);
  EXPECT_EQ(lines.back(), "and 1 more (--format json has all)");
  EXPECT_EQ(Json::parse(text_of("json", compared(before, now)))["differences"].size(), 61U);
}

TEST(ComparisonJson, HasEachDifference) {
  const Json json = Json::parse(text_of("json", all_kinds()));
  EXPECT_EQ(keys(json), (Keys{"schema", "before", "now", "how", "points", "different", "hidden",
                              "same", "differences"}));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["before"], "base.json");
  EXPECT_EQ(json["now"], "this program");
  EXPECT_EQ(json["how"], "run");
  EXPECT_EQ(json["points"], 7);
  EXPECT_EQ(json["different"], 5);
  EXPECT_EQ(json["hidden"], 2);
  EXPECT_EQ(json["same"], false);
  ASSERT_EQ(json["differences"].size(), 9U);
  EXPECT_EQ(json["differences"][3], (Json{{"kernel", "x"},
                                          {"arguments", {{"n", 1}}},
                                          {"kind", "words"},
                                          {"phase", "p"},
                                          {"metric", "reads"},
                                          {"before", 1000},
                                          {"after", 1001},
                                          {"hidden_by", nullptr},
                                          {"text", "p reads 1,000 -> 1,001 words (+1, +0.1%)"}}));
  std::string kinds;
  for (const Json& each : json["differences"]) {
    kinds += each["kind"].get<std::string>() + " ";
  }
  EXPECT_EQ(kinds, "gone no_longer_fits added words words phase_gone phase_new words words ");
  EXPECT_EQ(json["differences"][8]["hidden_by"], "writes=2");
  EXPECT_TRUE(json["differences"][8]["phase"].is_null()) << "of the total";
  EXPECT_EQ(Json::parse(text_of("json", bad_names()))["differences"][0]["phase"], kBadName);
}

TEST(ComparisonCsv, HasALineForEachDifference) {
  const std::vector<CsvRow> rows = parse_csv(text_of("csv", all_kinds()));
  ASSERT_EQ(rows.size(), 9U);
  EXPECT_EQ(rows[0].at("kind"), "gone");
  EXPECT_EQ(rows[3], (CsvRow{{"kernel", "x"},
                             {"arguments", "n=1"},
                             {"kind", "words"},
                             {"phase", "p"},
                             {"metric", "reads"},
                             {"before", "1000"},
                             {"after", "1001"},
                             {"hidden_by", ""},
                             {"why", ""}}));
  EXPECT_PRED2(contains, rows[1].at("why"), "5 words are missing");
  EXPECT_EQ(rows[8].at("hidden_by"), "writes=2");
  const std::vector<CsvRow> bad = parse_csv(text_of("csv", bad_names()));
  ASSERT_EQ(bad.size(), 2U);
  EXPECT_EQ(bad[0].at("kernel"), kBadName);
  EXPECT_EQ(bad[0].at("phase"), kBadName);
}

// Counts the bars that no backslash escapes.
std::size_t columns(const std::string& line) {
  std::size_t bars = 0;
  for (std::size_t k = 0; k < line.size(); ++k) {
    if (line[k] == '\\') {
      ++k;
    } else if (line[k] == '|') {
      ++bars;
    }
  }
  return bars - 1;
}

TEST(ComparisonMarkdown, IsATableOfTotalsAndOneOfEightColumns) {
  for (const GateComparison& comparison : {all_kinds(), bad_names()}) {
    const Lines lines = lines_of(text_of("markdown", comparison));
    ASSERT_GE(lines.size(), 8U);
    EXPECT_EQ(lines[0], "### redblue: " + verdict(comparison));
    const std::size_t head = lines.size() - (comparison.points.size() == 1 ? 4 : 11);
    EXPECT_EQ(lines[head], "| point | phase | metric | baseline | now | change | share | |");
    EXPECT_EQ(lines[head + 1], "|---|---|---|---:|---:|---:|---:|---|");
    EXPECT_EQ(lines[4], "| total words | baseline | now | change | share |");
    for (std::size_t k = 4; k < lines.size(); ++k) {
      if (k + 1 == head) {
        EXPECT_EQ(lines[k], "");
        continue;
      }
      EXPECT_EQ(columns(lines[k]), k < head ? 5U : 8U) << lines[k];
      EXPECT_TRUE(lines[k].starts_with("|") && lines[k].ends_with("|")) << lines[k];
    }
  }
  const std::string bad = text_of("markdown", bad_names());
  EXPECT_PRED2(contains, bad, "\\|e");
  EXPECT_PRED2(contains, bad, "\\<c");
  EXPECT_PRED2(contains, bad, "h\\\\i\\\\x0aj");
  EXPECT_PRED2(contains, bad, "\\`l\\*m\\_n");
  const RecordedPoint same = recorded("x", 1, {phase_counts("p", 1, 1, 1)});
  EXPECT_EQ(text_of("markdown", one(same, same)),
            "### redblue: same, the only point\n\nthis program against base.json\n");
}

// Decodes a property or a message as GitHub does.
std::string unescaped(std::string text, bool property) {
  std::vector<std::pair<std::string, std::string>> codes = {{"%0D", "\r"}, {"%0A", "\n"}};
  if (property) {
    codes.insert(codes.end(), {{"%3A", ":"}, {"%2C", ","}});
  }
  codes.emplace_back("%25", "%");
  for (const auto& [code, letter] : codes) {
    for (std::size_t at = 0; (at = text.find(code, at)) != std::string::npos; ++at) {
      text.replace(at, code.size(), letter);
    }
  }
  return text;
}

TEST(ComparisonGithub, IsAnAnnotationForEachPoint) {
  EXPECT_EQ(
      lines_of(text_of("github", all_kinds())),
      (Lines{
          "::error title=redblue%3A y n=3::it is gone",
          "::error title=redblue%3A z n=5::it no longer fits in M: fast memory overflow in phase "
          "p: a asks for 9 words: 5 words are missing",
          "::error title=redblue%3A w n=7::it is new",
          "::error title=redblue%3A x n=1::1,020 -> 1,021 words in total (+1, +0.098%25)"
          "%0Ap reads 1,000 -> 1,001 words (+1, +0.1%25)"
          "%0Atotal reads 1,000 -> 1,001 words (+1, +0.1%25)",
          "::error title=redblue%3A x n=2::10 -> 10 words in total (0, 0%25)%0Ap: the phase is "
          "gone, and its 10 words"
          "%0Aq: the phase is new, and its 10 words",
          "::notice title=redblue%3A z n=4::30 -> 32 words in total (+2, +6.67%25)%0Ap writes 20 "
          "-> 22 words (+2, +10%25), hidden "
          "by writes=2%0Atotal writes 20 -> 22 words (+2, +10%25), hidden by writes=2",
          "redblue: DIFFERENT, 5 of 7 points; 2 differences hidden by tolerances"}));
}

// A point with a file is annotated there, whatever the name of the file.
TEST(ComparisonGithub, NamesTheFileAndTheLine) {
  GateComparison comparison = all_kinds();
  comparison.points[0].file = "kernels, 1:2/suite%.json";
  comparison.points[0].line = 12;
  EXPECT_TRUE(text_of("github", comparison)
                  .starts_with("::error file=kernels%2C 1%3A2/suite%25.json,line=12,title=redblue"))
      << text_of("github", comparison);
}

// The command accepts the points that fail and have words. It leaves out points that are gone,
// hidden or over their budget, and names that a terminal would interpret.
TEST(ComparisonReport, EndsInTheCommandThatAccepts) {
  GateComparison comparison = all_kinds();
  comparison.points[3].now->at_most = {{.phase = "", .metric = "words", .words = 1}};  // x n=1
  for (const char* form : {"table", "markdown", "github"}) {
    EXPECT_FALSE(contains(text_of(form, comparison), "--accept")) << form;
  }
  comparison.accept_with = "redblue check base.json";
  const std::string command =
      "redblue check base.json \\\n  --accept 'z n=5' \\\n  --accept 'w n=7' \\\n"
      "  --accept 'x n=2' \\\n  --reason 'WHY'\n";
  EXPECT_TRUE(text_of("table", comparison).ends_with("\n\nto accept: " + command))
      << text_of("table", comparison);
  EXPECT_TRUE(
      text_of("markdown", comparison).ends_with("|\n\nTo accept:\n\n```sh\n" + command + "```\n"));
  EXPECT_PRED2(contains, text_of("github", comparison),
               "%0Ato accept: redblue check base.json --accept 'x n=2' --reason 'WHY'\n");
  GateComparison bad = bad_names();
  bad.accept_with = "redblue check base.json";
  EXPECT_FALSE(contains(text_of("table", bad), "--accept"));
}

TEST(ComparisonGithub, EscapesWhatWouldEndALineOrAProperty) {
  const Lines lines = lines_of(text_of("github", bad_names()));
  ASSERT_EQ(lines.size(), 2U) << "a line, whatever the names";
  const std::string& line = lines[0];
  const std::size_t title = line.find("title="), message = line.find("::", 2);
  ASSERT_EQ(title, 8U);
  const std::string property = line.substr(title + 6, message - title - 6);
  EXPECT_EQ(property.find_first_of(":,\r\n"), std::string::npos);
  EXPECT_EQ(unescaped(property, true), "redblue: " + kShown + " n=1");
  EXPECT_EQ(unescaped(line.substr(message + 2), false),
            "3 -> 4 words in total (+1, +33.3%)\n" + kShown +
                " reads 1 -> 2 words (+1, +100%)\ntotal reads 1 -> 2 words (+1, +100%)");
}

TEST(ComparisonJunit, IsATestForEachPoint) {
  const XmlElement root = XmlReader::read(text_of("junit", all_kinds()));
  EXPECT_EQ(root.name, "testsuites");
  EXPECT_EQ(root.attributes.at("tests"), "7");
  EXPECT_EQ(root.attributes.at("failures"), "5");
  EXPECT_EQ(root.attributes.at("errors"), "0");
  std::size_t tests = 0, failures = 0;
  std::string names;
  for (const XmlElement& suite : root.children) {
    EXPECT_EQ(suite.name, "testsuite");
    names += suite.attributes.at("name") + suite.attributes.at("tests") + " ";
    std::size_t failed = 0;
    for (const XmlElement& test : suite.children) {
      EXPECT_EQ(test.name, "testcase");
      EXPECT_EQ(test.attributes.at("classname"), suite.attributes.at("name"));
      ASSERT_LE(test.children.size(), 1U);
      failed += !test.children.empty() && test.children[0].name == "failure" ? 1 : 0;
    }
    EXPECT_EQ(suite.attributes.at("tests"), std::to_string(suite.children.size()));
    EXPECT_EQ(suite.attributes.at("failures"), std::to_string(failed));
    tests += suite.children.size();
    failures += failed;
  }
  EXPECT_EQ(names, "w1 x2 y1 z3 ");
  EXPECT_EQ(tests, 7U);
  EXPECT_EQ(failures, 5U);

  const XmlElement& more = root.children.at(1).children.at(0);
  EXPECT_EQ(more.attributes.at("name"), "n=1");
  EXPECT_EQ(more.children.at(0).attributes.at("message"),
            "1,020 -> 1,021 words in total (+1, +0.098%)");
  EXPECT_EQ(more.children.at(0).text,
            "1,020 -> 1,021 words in total (+1, +0.098%)\n"
            "p reads 1,000 -> 1,001 words (+1, +0.1%)\n"
            "total reads 1,000 -> 1,001 words (+1, +0.1%)\n");
  const auto& of_z = root.children.at(3).children;
  EXPECT_EQ(of_z.at(1).children.at(0).name, "system-out") << "hidden, and said";
  EXPECT_PRED2(contains, of_z.at(1).children.at(0).text, ", hidden by writes=2\n");
  EXPECT_TRUE(of_z.at(2).children.empty()) << "as it was";
}

TEST(ComparisonJunit, IsXmlWhateverTheNames) {
  const XmlElement root = XmlReader::read(text_of("junit", bad_names()));
  EXPECT_EQ(root.children.at(0).attributes.at("name"), kShown);
  EXPECT_EQ(root.children.at(0).children.at(0).children.at(0).attributes.at("message"),
            "3 -> 4 words in total (+1, +33.3%)");
}

// The current counts, for services that keep them and draw their curves.
TEST(ComparisonBenchmarks, HaveWhatWasCountedNow) {
  const Json list = Json::parse(text_of("customSmallerIsBetter", all_kinds()));
  ASSERT_EQ(list.size(), 10U) << "of five points: one is gone, one does not fit";
  for (const Json& entry : list) {
    EXPECT_EQ(keys(entry), (Keys{"name", "unit", "value"}));
    EXPECT_EQ(entry["unit"], "words");
    EXPECT_TRUE(entry["value"].is_number_integer());
  }
  EXPECT_EQ(list[2]["name"], "x n=1: moved");
  EXPECT_EQ(list[2]["value"], 1021);
  EXPECT_EQ(list[3]["name"], "x n=1: peak");
  EXPECT_EQ(list[3]["value"], 30);

  const Json bmf = Json::parse(text_of("bmf", all_kinds()));
  EXPECT_EQ(keys(bmf), (Keys{"w n=7", "x n=1", "x n=2", "z n=4", "z n=6"}));
  EXPECT_EQ(
      bmf["x n=1"],
      (Json{{"reads", {{"value", 1001}}}, {"writes", {{"value", 20}}}, {"peak", {{"value", 30}}}}));
}

// Counts as large as the type allows mean a damaged file, but the report is still valid.
TEST(ComparisonBenchmarks, OfAsManyWordsAsThereAre) {
  RecordedPoint most = recorded("x", 1, {phase_counts("p", 1, 1, 1)});
  most.counts.total = phase_counts("", INT64_MAX, INT64_MAX, INT64_MAX);
  EXPECT_EQ(Json::parse(text_of("customSmallerIsBetter", one(most, most)))[0]["value"],
            18446744073709551614U);
}

// Every format that lists differences has the message of a failed point.
TEST(ComparisonReport, SaysWhyAPointFailed) {
  GateComparison comparison = bad_names();
  comparison.points[0].differences = {
      {.kind = Kind::failed, .why = "required: a tile is at rest \x1b[31m"}};
  for (const std::string form : {"table", "json", "csv", "markdown", "github", "junit"}) {
    EXPECT_PRED2(contains, text_of(form, comparison), "required: a tile is at rest") << form;
    if (form != "json" && form != "csv") {  // data formats, which escape or quote it
      EXPECT_FALSE(contains(text_of(form, comparison), "\x1b")) << form;
    }
  }
}

}  // namespace
}  // namespace redblue
