// Pictures are whole files of their format, with all words in them as they are, whatever these are.

#include "runtime/gnuplot.hpp"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/subprocess.hpp"
#include "tests/runtime/temporary_directory.hpp"
#include "tests/runtime/xml.hpp"

namespace redblue {
namespace {

Picture some_picture() {
  return {.title = "A title",
          .x_label = "n (queries)",
          .y_label = "words",
          .caption = "redblue plot some --n 1",
          .data = {{"$points", "1 1\n2 4\n3 9\n"}},
          .commands = "plot $points with linespoints linetype 1 title 'squares'\n"};
}

class Gnuplot : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = find_program("gnuplot", "/usr/bin:/bin");
    if (!found) {
      FAIL() << "gnuplot is not installed: tools/setup does it";
    }
    gnuplot_ = *found;
  }
  [[nodiscard]] std::string drawn(const Picture& picture, const std::string& name) const {
    Drawn drawn = draw(picture, *picture_format(name), gnuplot_, directory_.path());
    EXPECT_EQ(drawn.interrupted, 0);
    return std::move(drawn.bytes);
  }
  TemporaryDirectory directory_;
  std::filesystem::path gnuplot_;
};

TEST_F(Gnuplot, SvgIsXmlWithAllWords) {
  const std::string svg = drawn(some_picture(), "some.svg");
  EXPECT_NO_THROW(XmlReader::read(svg));
  for (const char* text :
       {"A title", "n (queries)", ">words<", "redblue plot some --n 1", "squares"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(svg, drawn(some_picture(), "again.svg"));
}

TEST_F(Gnuplot, PngHasItsSignature) {
  const std::string png = drawn(some_picture(), "some.png");
  EXPECT_TRUE(png.starts_with("\x89PNG\r\n\x1a\n"));
  EXPECT_NE(png.find("IEND"), std::string::npos);
}

// Nothing in a text is a command, or an escape.
TEST_F(Gnuplot, WordsAreTakenAsTheyAre) {
  Picture picture = some_picture();
  picture.title = R"(it's "x" `touch never` \n {/Bold b} a_b @c $d <e> & %f)";
  picture.caption = "a\nb 'c'";
  const std::string svg = drawn(picture, "some.svg");
  EXPECT_NO_THROW(XmlReader::read(svg));
  EXPECT_NE(svg.find(R"(`touch never` \n {/Bold b} a_b @c $d &lt;e> &amp; %f)"), std::string::npos);
  EXPECT_NE(svg.find("a b"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists("never"));
}

TEST_F(Gnuplot, SaysWhatGnuplotSays) {
  Picture picture = some_picture();
  picture.commands = "plot $points with nonsense\n";
  try {
    static_cast<void>(draw(picture, PictureFormat::svg, gnuplot_, directory_.path()));
    ADD_FAILURE() << "drawn";
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("unrecognized plot type"), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path())) << "nothing is left";
}

// A warning is not why it failed. A script stands in for a gnuplot that warns.
TEST_F(Gnuplot, AWarningIsNotItsError) {
  const std::filesystem::path warns = directory_.path() / "gnuplot";
  std::ofstream(warns) << "#!/bin/sh\n"
                          "echo '\"script\" line 1: warning: iconv failed' >&2\n"
                          "echo 'plot nonsense\n     ^' >&2\n"
                          "echo '\"script\" line 2: no such plot' >&2\nexit 1\n";
  std::filesystem::permissions(warns, std::filesystem::perms::owner_all);
  try {
    static_cast<void>(draw(some_picture(), PictureFormat::svg, warns, directory_.path()));
    ADD_FAILURE() << "drawn";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("no such plot"), std::string::npos) << error.what();
  }
}

TEST(Picture, FormatIsByExtension) {
  EXPECT_EQ(picture_format("a/b.svg"), PictureFormat::svg);
  EXPECT_EQ(picture_format("b.c.png"), PictureFormat::png);
  for (const char* other : {"a.pdf", "a", ".svg", "svg", "a.SVG", "a.svg/"}) {
    EXPECT_EQ(picture_format(other), std::nullopt) << other;
  }
}

TEST(Picture, TicsAreAFew) {
  EXPECT_EQ(gnuplot_tics('x', 3), "set xtics ('0' 0, '1' 1, '2' 2, '3' 3) nomirror out\n");
  EXPECT_EQ(gnuplot_tics('y', 17'000),
            "set ytics ('0' 0, '5,000' 5000, '10,000' 10000, '15,000' 15000) nomirror out\n");
  for (Index most = 1; most < 1'000'000'000'000; most = most * 3 / 2 + 1) {
    const std::string tics = gnuplot_tics('x', most);
    const auto commas = std::ranges::count(tics, '\'') / 2;
    EXPECT_GE(commas, 2) << tics;
    EXPECT_LE(commas, 7) << tics;
  }
}

}  // namespace
}  // namespace redblue
