// Tests that the page of a sweep has the content of the sweep, whatever its texts are.

#include "runtime/sweep/html_report.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/observe/topology.hpp"
#include "runtime/subjects/kernel_sweep.hpp"
#include "runtime/text/html.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

Swept swept(Index M) {
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
  return sweep_point({"backward/flash", arguments}, How::run, false);
}

Sweep sweep_of(std::vector<Swept> points) {
  return {.how = "run", .suite = "{}", .points = std::move(points)};
}

std::size_t times(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) {
    ++count;
  }
  return count;
}

std::string cells(const SweptPhase& phase) {
  std::string html;
  const PhaseCounts& counts = phase.counts;
  for (const Index count : {counts.io.reads, counts.io.writes, counts.io.io(), counts.peak}) {
    html += html_cell(grouped(count));
  }
  return html;
}

constexpr std::string_view kDiffer = "Formula and count differ";

TEST(HtmlReport, SaysEveryCountOfTheSweep) {
  const Sweep sweep = sweep_of({swept(200), swept(3000)});
  const std::string html = to_html(sweep, {});
  for (const Swept& point : sweep.points) {
    ASSERT_TRUE(point.fits);
    EXPECT_EQ(times(html, cells(point.total)), 2U) << "among the points and below its phases";
    for (const SweptPhase& phase : point.phases) {
      EXPECT_GE(times(html, "<th scope=\"row\">" + phase.counts.path + "</th>" + cells(phase)), 1U);
    }
  }
  EXPECT_EQ(times(html, kDiffer), 0U);
  EXPECT_EQ(times(html, "Here are 2 points of a suite"), 1U);
  EXPECT_EQ(times(html, "Formula and count agree: at each of 2 points"), 1U);
  const std::string one = to_html(sweep_of({swept(200)}), {});
  EXPECT_EQ(times(one, "Here is 1 point of a suite"), 1U);
  EXPECT_EQ(times(one, "Formula and count agree: at 1 point, every phase"), 1U);
  // Only M varies.
  EXPECT_EQ(times(html, "<th scope=\"col\">M, words</th>"), 1U);
  EXPECT_EQ(times(html, "<th scope=\"col\">n</th>"), 0U);
  EXPECT_EQ(times(html, "Everywhere n = 20, m = 20, d = 6, threads = 1"), 1U);
  EXPECT_EQ(times(html, "GF/s"), 0U) << "nothing was timed";
}

TEST(HtmlReport, SaysWhatWasTimed) {
  Sweep sweep = sweep_of({swept(200), swept(3000)});
  sweep.how = "time";
  sweep.points[1].total.seconds = 0.25;
  sweep.points[1].speed = Speed{.gflops = 12.5, .peak_gflops = 50, .words_per_second = 1e9};
  const std::string html = to_html(sweep, {});
  EXPECT_EQ(times(html, "<td>0.250000</td><td>12.50</td><td>25.0</td></tr>"), 1U);
}

TEST(HtmlReport, SaysWhatDoesNotFit) {
  const Sweep sweep = sweep_of({swept(2), swept(3000)});
  ASSERT_FALSE(sweep.points[0].fits);
  const std::string html = to_html(sweep, {});
  EXPECT_EQ(times(html, "1 of 2 points does not fit"), 1U);
  EXPECT_EQ(times(html, "does not fit in M = 2 words"), 1U);
  EXPECT_EQ(times(html, "<details><summary>backward/flash"), 1U) << "it has no phases";
}

TEST(HtmlReport, IsLoudWhereFormulaAndCountDiffer) {
  Sweep sweep = sweep_of({swept(200), swept(3000)});
  SweptPhase& phase = sweep.points[1].phases.front();
  phase.formula->io.writes = phase.counts.io.writes + 1000;
  sweep.points[1].total.counts.peak += 5;
  const std::string html = to_html(sweep, {});
  EXPECT_EQ(times(html, "Formula and count differ at 1 of 2 points."), 1U);
  EXPECT_EQ(times(html, "agree"), 0U);
  EXPECT_EQ(times(html, "by the formula " + grouped(phase.formula->io.writes) + " (-1,000)"), 1U);
  EXPECT_EQ(times(html, "words of peak, by the formula"), 1U);
  EXPECT_EQ(times(html, "<td class=\"differs\">"), 3U) << "the peak is in both tables";
  // If all points come from formulas alone, the page claims no agreement.
  sweep.how = "count";
  EXPECT_EQ(times(to_html(sweep, {}), kDiffer), 1U);
  sweep.points.pop_back();
  EXPECT_EQ(times(to_html(sweep, {}), "agree"), 0U);
  EXPECT_EQ(times(to_html(sweep, {}), "Nothing ran"), 1U);
}

TEST(HtmlReport, TextsAreHarmless) {
  const std::string bad = "</pre><script>alert('&amp;\"')</script>";
  Sweep sweep = sweep_of({swept(200), swept(3000), swept(2)});
  sweep.suite = bad;
  sweep.context = {{bad, bad}};
  for (Swept& point : sweep.points) {
    point.point.subject = point.kernel = point.blocks = bad;
    point.point.arguments.set(bad, bad + std::to_string(point.total.counts.io.reads));
    for (SweptPhase& phase : point.phases) {
      phase.counts.path = bad;
    }
  }
  sweep.points[0].kernel += "2";
  sweep.points[0].total.counts.io.reads += 1;
  sweep.points[0].phases[0].counts.io.reads += 1;
  const std::string html = to_html(sweep, {{bad, "<svg>"}});
  EXPECT_EQ(times(html, "<script"), 0U);
  EXPECT_EQ(times(html, "</pre>"), 1U);
  EXPECT_EQ(times(html, "alert('"), 0U);
  EXPECT_GT(
      times(html, "&lt;/pre&gt;&lt;script&gt;alert(&apos;&amp;amp;&quot;&apos;)&lt;/script&gt;"),
      15U);
}

// Each text is escaped once, so a browser shows it unchanged.
TEST(HtmlReport, TextsAreEscapedOnce) {
  Arguments arguments;
  arguments.set("M", Index{8});
  Sweep sweep = sweep_of({nothing_swept({"k", arguments}, false, "")});
  sweep.points[0].fits = true;
  sweep.points[0].processor = "A & B";
  const std::string html = to_html(sweep, {});
  EXPECT_EQ(times(html, "A &amp; B"), 1U);
  EXPECT_EQ(times(html, "&amp;amp;"), 0U);
}

TEST(HtmlReport, PicturesAreInsideThePage) {
  // The examples of RFC 4648.
  for (const auto& [bytes, text] : {std::pair{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(svg_address(bytes), std::string("data:image/svg+xml;base64,") + text);
  }
  EXPECT_EQ(svg_address("\xff\xfe\xfb"), "data:image/svg+xml;base64,//77");
  const std::string html = to_html(
      sweep_of({swept(200)}), {{"one: M = d^2", "<svg id='a'/>"}, {"two & more", "<svg id='a'/>"}});
  EXPECT_EQ(times(html, "<img "), 2U);
  EXPECT_EQ(times(html, "src=\"data:image/svg+xml;base64,"), 2U);
  EXPECT_EQ(times(html, "<figcaption>two &amp; more</figcaption>"), 1U);
  EXPECT_EQ(times(html, "alt=\"two &amp; more: "), 1U);
  // Powers become superscripts where tags are possible.
  EXPECT_EQ(times(html, "<figcaption>one: M = d<sup>2</sup></figcaption>"), 1U);
  EXPECT_EQ(times(html, "alt=\"one: M = d^2: "), 1U);
  EXPECT_EQ(times(html, "http"), 1U) << "http-equiv, and no address";
}

// The machine is described in words, and the rest of the document stays the same.
TEST(HtmlReport, TheMachineOfASweepThatWasParsed) {
  Topology topology{.source = "a test", .model = "Some <Processor>", .cores = {{0}, {1}}};
  topology.caches[0] = {{.bytes = 49152, .line = 64, .ways = 12, .cores = {0}},
                        {.bytes = 49152, .line = 64, .ways = 12, .cores = {1}}};
  topology.caches[1] = {{.bytes = 1000, .line = {}, .ways = {}, .cores = {0, 1}}};
  const std::string json = to_json(sweep_of({swept(200), swept(2)}), sweep_context(topology));
  const Sweep sweep = parse_sweep(json, "here");
  EXPECT_EQ(to_json(sweep, sweep_context(topology)), json);
  using Fact = std::pair<std::string, std::string>;
  for (const Fact& fact : {Fact{"processor", "Some <Processor>"},
                           {"cores", "2"},
                           {"word", "float32"},
                           {"L1 cache", "2 of 48 KiB, lines of 64 bytes, 12 ways"},
                           {"L2 cache", "1,000 bytes"}}) {
    EXPECT_EQ(std::ranges::count(sweep.context, fact), 1) << fact.first;
  }
  const std::string html = to_html(sweep, {});
  EXPECT_EQ(times(html, "<dt>processor</dt><dd>Some &lt;Processor&gt;</dd>"), 1U);
  topology.model.reset();
  for (const auto& [name, value] :
       parse_sweep(to_json(sweep, sweep_context(topology)), "here").context) {
    EXPECT_NE(name, "processor") << value;
  }
}

}  // namespace
}  // namespace redblue
