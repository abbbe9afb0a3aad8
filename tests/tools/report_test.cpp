// Tests `redblue report`: its refusals, and how a browser shows the page.

#include <algorithm>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "runtime/sweep/html_report.hpp"
#include "runtime/text/html.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

class ReportCommand : public Cli {
 protected:
  void sweep(const std::string& how) const {
    directory_.write("suite.json", fmt::format(R"({{"how": "{}",  // <b>bold</b> & "quoted"
        "points": [{{"kernel": ["backward/flash", "backward/small"], "n": [20, 33], "m": 40,
                     "d": 8, "M": [8, 512, "4K"], "given": "nothing"}}]}})",
                                               how));
    const Outcome outcome = redblue("sweep suite.json -o out");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void expect_report(const std::string& line, const std::string& page) const {
    const Outcome outcome = redblue(line);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("redblue: " + page + ": 12 points, "), std::string::npos)
        << outcome.err;
    const std::string html = content_of(directory_ / page);
    EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
    EXPECT_TRUE(html.ends_with("</html>\n"));
    EXPECT_NE(html.find("// &lt;b&gt;bold&lt;/b&gt; &amp; &quot;quoted&quot;"), std::string::npos);
    EXPECT_EQ(html.find("<b>"), std::string::npos);
    EXPECT_NE(html.find("All operands are from seed 1."), std::string::npos);
  }
};

TEST_F(ReportCommand, WritesThePage) {
  ASSERT_NO_FATAL_FAILURE(sweep("run"));
  expect_report("report out", "out/report.html");
  expect_report("report out/ --out page.html", "page.html");
  expect_report("report out -o again.html", "again.html");
  // Without gnuplot, the page is made without figures.
  const Outcome outcome = redblue("PATH=/nowhere report out -o bare.html");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.err.find("no figures: gnuplot is unavailable"), std::string::npos);
  EXPECT_EQ(content_of(directory_ / "bare.html").find("<img"), std::string::npos);
}

// Decodes base64 text into bytes.
std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char digit : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<unsigned>(kDigits.find(digit));
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 255);
    }
  }
  return bytes;
}

using ReportPictures = ReportCommand;

// The title of a figure is in the page and not again in the picture. The page says what made it.
TEST_F(ReportPictures, FiguresHaveOneTitle) {
  ASSERT_NO_FATAL_FAILURE(sweep("count"));
  ASSERT_EQ(redblue("report out").code, 0);
  const std::string html = content_of(directory_ / "out/report.html");
  const auto between = [&](const std::string& begin, const std::string& end, std::size_t& at) {
    const std::size_t first = html.find(begin, at) + begin.size();
    at = html.find(end, first);
    return html.substr(first, at - first);
  };
  int figures = 0;
  for (std::size_t at = 0; (at = html.find("<figure>", at)) != std::string::npos; ++figures) {
    const std::string title = between("<figcaption>", "</figcaption>", at);
    const std::string svg = from_base64(between("base64,", "\"", at));
    EXPECT_TRUE(title.starts_with("Words of backward") || title.starts_with("Where the words"))
        << title;
    EXPECT_NE(svg.find(">words moved, read and written<"), std::string::npos);
    EXPECT_EQ(svg.find(title), std::string::npos) << title;
    EXPECT_EQ(svg.find("redblue report"), std::string::npos);
  }
  EXPECT_EQ(figures, 2 + 4);
  EXPECT_NE(html.find("<dt>this page</dt><dd>redblue report out</dd>"), std::string::npos);
}

TEST_F(ReportPictures, SaysOneOfOne) {
  directory_.write("suite.json", R"({"points": [{"kernel": ["backward/flash", "backward/small"],
                                      "n": 20, "d": 8, "M": [512, "1K"]}]})");
  ASSERT_EQ(redblue("sweep suite.json -o out").code, 0);
  EXPECT_NE(redblue("report out").err.find(": 4 points, 3 figures\n"), std::string::npos);
  directory_.write(
      "suite.json",
      R"({"points": [{"kernel": "backward/small", "n": 20, "d": 8, "M": [512, "1K"]}]})");
  ASSERT_EQ(redblue("sweep suite.json -o two").code, 0);
  EXPECT_NE(redblue("report two").err.find(": 2 points, 1 figure\n"), std::string::npos);
}

TEST_F(ReportCommand, Refuses) {
  ASSERT_NO_FATAL_FAILURE(sweep("count"));
  expect_refused(process("report"), 2, "directory");
  expect_refused(process("report out --out a --out b"), 2, "--out");
  expect_refused(process("report nowhere"), 1,
                 "there is no nowhere/sweep.json: `redblue sweep SUITE -o nowhere` makes it");
  expect_refused(process("report suite.json"), 1, "there is no suite.json/sweep.json");
  expect_refused(process("report out --out out"), 1, "out.*[Ii]s a directory");
  expect_refused(process("report out --out nowhere/page.html"), 1, "nowhere/page.html");

  // The page must not replace a file of the sweep that it is made from.
  for (const char* own : {"points.jsonl", "sweep.csv", "sweep.json"}) {
    expect_refused(process(fmt::format("report out --out out/{}", own)), 2,
                   fmt::format("--out 'out/{}': this file is a part of the sweep", own));
  }
  std::filesystem::create_directory_symlink("out", directory_ / "link");
  expect_refused(process("report ./out/ -o link/../link/sweep.json"), 2,
                 "--out 'link/../link/sweep.json': this file is a part of the sweep");
  expect_refused(process("report link --out out/sweep.csv"), 2, "a part of the sweep");
  std::filesystem::remove(directory_ / "link");

  const std::string whole = content_of(directory_ / "out/sweep.json");
  for (const double part : {0.0, 0.1, 0.5, 0.99}) {
    const auto size = static_cast<std::size_t>(part * static_cast<double>(whole.size()));
    directory_.write("out/sweep.json", whole.substr(0, size));
    expect_refused(process("report out"), 1, "out/sweep.json, line ");
  }
  directory_.write("out/sweep.json", "{}");
  expect_refused(process("report out"), 1, "out/sweep.json is no sweep");
  // After a failure, an older page stays as it was.
  directory_.write("out/report.html", "old");
  expect_refused(process("report out"), 1, "out/sweep.json is no sweep");
}

// Shows pages in a browser, each in a frame with the width of a window. The pages themselves are
// unchanged; a script in the page around them inspects them.
class BrowserPictures : public ReportCommand {
 protected:
  // Returns the browser's view of the frames. Each frame is a width and a page.
  [[nodiscard]] Json shown(const std::vector<std::pair<int, std::string>>& frames,
                           std::string& log) const {
    std::string html = "<!DOCTYPE html><title>frames</title>\n";
    for (const auto& [width, page] : frames) {
      html += fmt::format("<iframe src='{}' width='{}' height='900' style='border: 0'></iframe>\n",
                          page, width);
    }
    html += R"(<pre id='seen'></pre><script>
      addEventListener('load', () => {
        const all = Array.from(document.querySelectorAll('iframe'), (frame) => {
          const page = frame.contentDocument;
          return {
            width: frame.contentWindow.innerWidth,
            content: page.documentElement.scrollWidth,
            body: page.body.scrollWidth,
            images: Array.from(page.images, (i) => i.complete && i.naturalWidth > 0 && i.width > 0),
            tables: Array.from(page.querySelectorAll('table'), (t) =>
                t.parentElement.clientWidth <= frame.contentWindow.innerWidth),
            scripts: page.scripts.length,
            heading: page.querySelector('h1')?.innerText,
            text: page.querySelector('pre')?.textContent};
        });
        const bytes = new TextEncoder().encode(JSON.stringify(all));  // no escapes of HTML's
        document.getElementById('seen').textContent =
            Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
      });
    </script>)";
    const std::filesystem::path wrapper = directory_.write("wrapper.html", html);
    // The browser keeps its own files below this test's directory.
    Process process{.words = {"/usr/bin/chromium", "--headless=new", "--no-sandbox",
                              "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                              "--disable-background-networking", "--disable-component-update",
                              "--user-data-dir=" + (directory_ / "profile").string(),
                              "--allow-file-access-from-files", "--enable-logging=stderr",
                              "--timeout=60000", "--dump-dom", "file://" + wrapper.string()},
                    .environment = {"PATH=/usr/bin:/bin", "HOME=" + directory_.path().string(),
                                    "XDG_RUNTIME_DIR=" + directory_.path().string()},
                    .directory = directory_.path()};
    const Outcome outcome = process.run();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    log = outcome.err;
    std::smatch seen;
    if (!std::regex_search(outcome.out, seen, std::regex("<pre id=.seen.>([0-9a-f]+)</pre>"))) {
      ADD_FAILURE() << "the script did not run: " << outcome.out << outcome.err;
      return {};
    }
    std::string json;
    for (std::size_t i = 0; i < seen[1].str().size(); i += 2) {
      json += static_cast<char>(std::stoi(seen[1].str().substr(i, 2), nullptr, 16));
    }
    return Json::parse(json);
  }
};

TEST_F(BrowserPictures, ShowsThePageAtAnyWidthAndFetchesNothing) {
  ASSERT_NO_FATAL_FAILURE(sweep("time"));
  const Sweep sweep = parse_sweep(content_of(directory_ / "out/sweep.json"), "sweep.json");
  const auto fitting =
      static_cast<std::size_t>(std::ranges::count(sweep.points, true, &Swept::fits));
  const auto svg = [](const char* color) {
    return fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='600' height='400' "
        "viewBox='0 0 600 400'><defs><linearGradient id='a'><stop "
        "stop-color='{}'/></linearGradient></defs><rect width='600' height='400' "
        "fill='url(#a)'/></svg>",
        color);
  };
  const std::string html = to_html(sweep, {{"A <red> one", svg("red")}, {"A blue", svg("blue")}});
  directory_.write("page.html", html);
  EXPECT_FALSE(
      std::regex_search(html, std::regex("(https?|ftp|file):|url\\(|@import|<link|<script")));
  // A bad page proves that the checks below detect faults. A page like ours must not fetch or run
  // anything.
  directory_.write("bad.html", html_page("bad",
                                         "<div style='width: 3000px'>wide</div><script>1</script>"
                                         "<img src='data:image/svg+xml;base64,AAAA'>"
                                         "<img src='missing.png'>"));

  EXPECT_EQ(redblue("report out").code, 0);  // with the figures that this machine can draw

  std::string log;
  const Json frames = shown(
      {{1280, "page.html"}, {400, "page.html"}, {400, "bad.html"}, {400, "out/report.html"}}, log);
  ASSERT_EQ(frames.size(), 4U);
  for (std::size_t k = 0; k < 2; ++k) {
    const Json& frame = frames[k];
    SCOPED_TRACE(frame.dump(2));
    EXPECT_EQ(frame["width"], k == 0 ? 1280 : 400);
    EXPECT_LE(frame["content"], frame["width"]);
    EXPECT_LE(frame["body"], frame["width"]);
    EXPECT_EQ(frame["images"], Json({true, true}));
    EXPECT_EQ(frame["tables"], Json(std::vector<bool>(fitting + 1, true)));
    EXPECT_EQ(frame["scripts"], 0);
    EXPECT_EQ(frame["heading"], "Words moved by backward/flash, backward/small");
    EXPECT_EQ(frame["text"], content_of(directory_ / "suite.json"));
  }
  EXPECT_LE(frames[3]["content"], 400);
  for (const Json& drawn : frames[3]["images"]) {
    EXPECT_EQ(drawn, true);
  }
  EXPECT_GT(frames[2]["content"], 3000);
  EXPECT_EQ(frames[2]["images"], Json({false, false}));
  std::istringstream lines(log);
  int complaints = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) {  // from a page, not from the browser itself
      EXPECT_NE(line.find("/bad.html"), std::string::npos) << line;
      ++complaints;
    }
  }
  EXPECT_EQ(complaints, 2) << log;
}

}  // namespace
}  // namespace redblue
