// Tests the merging of a sweep's parts: the order of the suite, whichever part has which point, and
// each time with the machine that took it.

#include "runtime/sweep/kept_points.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/subjects/kernel_figures.hpp"
#include "runtime/subjects/kernel_sweep.hpp"
#include "runtime/sweep/html_report.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

Topology machine(const std::string& model) {
  Topology topology{.source = "a test", .model = model, .cores = {{0}, {1}}};
  topology.caches[0] = {{.bytes = 32768, .line = 64, .ways = 8, .cores = {0}}};
  return topology;
}

Swept point(Index M, std::optional<double> seconds) {
  Arguments arguments;
  for (const auto& [name, size] : {std::pair{"n", 20}, {"m", 20}, {"d", 6}}) {
    arguments.set(name, Index{size});
  }
  arguments.set("M", M);
  for (const char* name : {"threads", "heads", "prefetch"}) {
    arguments.set(name, Index{1});
  }
  arguments.set("store", "memory");
  arguments.set("given", "OL");
  Swept swept = sweep_point({"backward/flash", arguments}, How::count, false);
  if (seconds) {
    swept.total.seconds = seconds;
    for (SweptPhase& phase : swept.phases) {
      phase.seconds = *seconds / 8;
    }
    swept.speed = Speed{.gflops = 1 / *seconds, .peak_gflops = 100, .words_per_second = 1e9};
  }
  return swept;
}

constexpr Index kLengths[] = {300, 400, 500, 600, 700};

SuiteOrigin origin(const std::string& how) {
  SuiteOrigin origin{.how = how, .suite = "{}", .program = "f00d", .points = {}, .files = {}};
  for (const Index M : kLengths) {
    origin.points.push_back(to_string(point(M, {}).point));
  }
  return origin;
}

SweptPart part(const SuitePart& part, const std::string& model,
               const std::optional<double>& seconds) {
  SweptPart made{.name = fmt::format("dir.{}", part.number),
                 .kept = {.head = {.origin = origin(seconds ? "time" : "count"),
                                   .part = part,
                                   .context = sweep_context(machine(model))},
                          .points = {}}};
  for (const std::size_t k : points_of(part, std::size(kLengths))) {
    made.kept.points.push_back(point(kLengths[k], seconds));
  }
  return made;
}

std::string document(const MergedSweep& merged) {
  return to_json(merged.sweep, merged.head.context);
}

std::vector<Index> sizes(const MergedSweep& merged) {
  std::vector<Index> found;
  for (const Swept& swept : merged.sweep.points) {
    found.push_back(swept.size("M"));
  }
  return found;
}

TEST(KeptPoints, ComeBackFromTheirLines) {
  const SweptPart made = part({2, 3}, "A", 0.25);
  std::vector<std::string> lines = {to_line(made.kept.head)};
  for (const Swept& swept : made.kept.points) {
    lines.push_back(to_line(swept));
  }
  const KeptPoints back = parse_kept(lines, "points");
  EXPECT_EQ(differing(back.head, made.kept.head), "");
  EXPECT_EQ(back.head.context, made.kept.head.context);
  EXPECT_EQ(back.points, made.kept.points);
  EXPECT_THROW(parse_kept({}, "points"), InputError);
  lines.front() = "{}";
  EXPECT_TRUE(thrown<InputError>([&] {
                parse_kept(lines, "points");
              }).starts_with("points, line 1 has no \"part\": this line begins no sweep"));
  lines.front() = to_line(made.kept.head);
  lines.back() = "{\"subject\": 1}";
  EXPECT_TRUE(
      thrown<InputError>([&] { parse_kept(lines, "points"); }).starts_with("points, line 3"));
}

// Counts may come from any machine. Times may not.
TEST(KeptPoints, AreContinuedWhereTheyBelong) {
  EXPECT_EQ(differing(part({1, 2}, "A", {}).kept.head, part({1, 2}, "B", {}).kept.head), "");
  EXPECT_EQ(differing(part({1, 2}, "A", 1).kept.head, part({1, 2}, "B", 1).kept.head), "machine");
  EXPECT_EQ(differing(part({1, 2}, "A", {}).kept.head, part({2, 2}, "A", {}).kept.head), "part");
  EXPECT_EQ(differing(part({1, 2}, "A", {}).kept.head, part({1, 2}, "A", 1).kept.head), "suite");
}

// Merged parts equal one sweep on that machine, for parts in any order and of any number.
TEST(KeptPoints, OfOneMachineMakeTheWhole) {
  for (const std::optional<double> seconds : {std::optional<double>(), std::optional(0.5)}) {
    const SweptPart whole = part({1, 1}, "A", seconds);
    const Sweep sweep{
        .how = seconds ? "time" : "count", .suite = "{}", .points = whole.kept.points};
    const std::string expected = to_json(sweep, whole.kept.head.context);
    for (std::size_t of = 1; of <= 7; ++of) {
      std::vector<SweptPart> parts;
      for (std::size_t number = 1; number <= of; ++number) {
        parts.push_back(part({number, of}, "A", seconds));
      }
      for (std::size_t turn = 0; turn < of; ++turn) {
        std::rotate(parts.begin(), parts.begin() + 1, parts.end());
        const MergedSweep merged = merge(parts);
        EXPECT_EQ(merged.missing, "");
        EXPECT_EQ(document(merged), expected) << of << " parts";
        EXPECT_EQ(to_csv(merged.sweep), to_csv(sweep));
        EXPECT_EQ(to_line(merged.head), to_line(whole.kept.head));
      }
    }
  }
}

// Each time has its processor in the document, the table, the page and the picture.
TEST(KeptPoints, ATimeKeepsItsMachine) {
  std::vector<SweptPart> parts = {part({1, 2}, "A", 0.5), part({2, 2}, "B", 0.25)};
  const MergedSweep merged = merge(parts);
  EXPECT_EQ(sizes(merged), std::vector<Index>(std::begin(kLengths), std::end(kLengths)));
  const std::string simd =
      nlohmann::json::parse(parts[0].kept.head.context)["simd"].get<std::string>();
  for (std::size_t k = 0; k < merged.sweep.points.size(); ++k) {
    const Swept& swept = merged.sweep.points[k];
    EXPECT_EQ(swept.processor, fmt::format("{} ({})", k % 2 == 0 ? "A" : "B", simd));
    EXPECT_EQ(swept.total.seconds, k % 2 == 0 ? 0.5 : 0.25);
  }
  const nlohmann::json context = nlohmann::json::parse(merged.head.context);
  EXPECT_FALSE(context.contains("processor"));
  ASSERT_EQ(context.at("machines").size(), 2U);
  EXPECT_EQ(context.at("machines").at(1).at("processor"), "B");
  EXPECT_EQ(parse_sweep(document(merged), "merged").points, merged.sweep.points);
  EXPECT_EQ(parse_csv(to_csv(merged.sweep)).front().at("processor"), "A (" + simd + ")");
  std::ranges::reverse(parts);
  EXPECT_EQ(document(merge(parts)), document(merged)) << "the order of parts says nothing";
  EXPECT_EQ(merge(parts).head.context, merged.head.context);

  const Sweep shown = parse_sweep(document(merged), "merged");
  const std::string html = to_html(shown, {});
  EXPECT_NE(html.find("<th scope=\"col\">processor</th>"), std::string::npos);
  EXPECT_NE(html.find("<td>B (" + simd + ")</td></tr>"), std::string::npos);
  EXPECT_NE(html.find("<dt>a machine</dt><dd>simd " + simd + "; processor B; cores 2; L1 cache"),
            std::string::npos)
      << html;
  const std::string roofline = roofline_picture(points_of(shown)).commands;
  EXPECT_NE(roofline.find("1: 100 GF/s (FMA)"), std::string::npos) << roofline;
  EXPECT_NE(roofline.find("2: 100 GF/s (FMA)"), std::string::npos);
  EXPECT_NE(roofline_picture(points_of(shown))
                .title.find(fmt::format(": 1 is A ({0}), 2 is B ({0})", simd)),
            std::string::npos);

  // A merged sweep can be merged again with a third part, in any order.
  std::vector<SweptPart> three = {part({1, 3}, "A", 0.5), part({2, 3}, "B", 0.25),
                                  part({3, 3}, "C", 0.125)};
  const MergedSweep at_once = merge(three);
  const MergedSweep two = merge({three[0], three[1]});
  EXPECT_NE(two.missing, "");
  const SweptPart first{.name = "two", .kept = {.head = two.head, .points = two.sweep.points}};
  EXPECT_EQ(document(merge({three[2], first})), document(at_once));
}

TEST(KeptPoints, CountsOfSeveralMachinesAreOfNone) {
  const MergedSweep merged = merge({part({1, 2}, "A", {}), part({2, 2}, "B", {})});
  EXPECT_EQ(nlohmann::json::parse(merged.head.context)["machines"].size(), 2U);
  EXPECT_TRUE(std::ranges::none_of(merged.sweep.points,
                                   [](const Swept& swept) { return !!swept.processor; }));
  EXPECT_FALSE(parse_csv(to_csv(merged.sweep)).front().contains("processor"));
}

// A machine without points does not appear.
TEST(KeptPoints, OfAnEmptyPartSayNothing) {
  const MergedSweep merged =
      merge({part({7, 9}, "B", 1), part({1, 1}, "A", 1), part({6, 9}, "C", 1)});
  EXPECT_EQ(merged.head.context, sweep_context(machine("A")));
}

TEST(KeptPoints, ThatAreThereTwiceAreEqualButForTimes) {
  const auto merged = [](const SweptPart& a, const SweptPart& b) { return merge({a, b}); };
  const SweptPart slow = part({1, 1}, "A", 0.5);
  const SweptPart fast = part({1, 2}, "B", 0.25);
  for (const MergedSweep& both : {merged(slow, fast), merged(fast, slow)}) {
    EXPECT_EQ(both.sweep.points[0].total.seconds, 0.25) << "the fastest counts";
    EXPECT_TRUE(both.sweep.points[0].processor->starts_with("B ("));
    EXPECT_EQ(both.sweep.points[1].total.seconds, 0.5);
    EXPECT_TRUE(both.sweep.points[1].processor->starts_with("A ("));
  }
  EXPECT_EQ(document(merged(slow, fast)), document(merged(fast, slow)));

  SweptPart other = part({1, 1}, "A", {});
  other.name = "other";
  other.kept.points[1].phases[0].counts.io.reads += 1;
  const SweptPart second = part({2, 2}, "A", {});
  const std::string message = thrown<InputError>([&] { merge({second, other}); });
  const SweptPhase& phase = second.kept.points[0].phases[0];
  EXPECT_TRUE(message.starts_with(fmt::format("dir.2 and other differ at {}: {} reads ",
                                              origin("count").points[1], phase.counts.path)))
      << message;
  other = part({1, 1}, "A", {});
  other.kept.points[1].blocks = "B=1";
  EXPECT_NE(thrown<InputError>([&] {
              merge({second, other});
            }).find("the plan, the bound"),
            std::string::npos);
}

TEST(KeptPoints, OfOtherWholesAreRefused) {
  SweptPart other = part({2, 2}, "A", {});
  other.kept.head.origin.suite = "{ }";
  EXPECT_EQ(thrown<InputError>([&] {
              merge({part({1, 2}, "A", {}), other});
            }),
            "dir.1 and dir.2 are no parts of one whole: the suite of one is another");
  other = part({2, 2}, "A", {});
  nlohmann::json context = nlohmann::json::parse(other.kept.head.context);
  context["redblue"] = "0.0.1";
  other.kept.head.context = context.dump();
  EXPECT_TRUE(thrown<InputError>([&] {
                merge({part({1, 2}, "A", {}), other});
              }).starts_with("dir.2 is of redblue \"0.0.1\", and this is "));
}

TEST(KeptPoints, ThatAreMissingAreInTheDocument) {
  const MergedSweep merged = merge({part({1, 2}, "A", {})});
  EXPECT_TRUE(merged.missing.starts_with("2 of 5 points are missing, of part 2/2: "));
  const Sweep shown = parse_sweep(document(merged), "merged");
  const std::vector<std::string> names = origin("count").points;
  EXPECT_EQ(shown.missing, (std::vector{names[1], names[3]}));
  EXPECT_NE(to_html(shown, {}).find("<strong>2 of the suite's 5 points are missing</strong>"),
            std::string::npos);
  Sweep part_alone = shown;
  part_alone.missing.clear();
  part_alone.part = {1, 2};
  const Sweep back = parse_sweep(to_json(part_alone, sweep_context({})), "part");
  EXPECT_EQ(back.part, part_alone.part);
  EXPECT_NE(to_html(back, {}).find("Here are 3 points of part 1/2 of a suite"), std::string::npos);
}

}  // namespace
}  // namespace redblue
