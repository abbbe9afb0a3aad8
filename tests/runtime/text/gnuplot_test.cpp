// Tests that pictures are complete files of their format, with all texts unchanged.

#include "runtime/text/gnuplot.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/support/svg.hpp"
#include "tests/support/temporary_directory.hpp"

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
  [[nodiscard]] std::string drawn(const Picture& picture, const std::string& name) const {
    Drawn drawn = draw(picture, *picture_format(name), gnuplot(), directory_.path());
    EXPECT_EQ(drawn.interrupted, 0);
    return std::move(drawn.bytes);
  }
  [[nodiscard]] static std::filesystem::path gnuplot() { return "/usr/bin/gnuplot"; }

  TemporaryDirectory directory_;
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

// Texts with apostrophes are quoted like a shell's words, and gnuplot interprets no part of them.
TEST_F(Gnuplot, WordsWithQuotesStayWords) {
  Picture picture = some_picture();
  picture.caption = R"(redblue plot 'it'\''s' "two" `date` $(date) \)";
  picture.title = R"(it's \'a\' title)";
  const std::vector<std::string> texts = svg_texts(drawn(picture, "some.svg"));
  EXPECT_EQ(std::ranges::count(texts, picture.caption), 1) << testing::PrintToString(texts);
  EXPECT_EQ(std::ranges::count(texts, picture.title), 1) << testing::PrintToString(texts);
}

TEST_F(Gnuplot, PngHasItsSignature) {
  const std::string png = drawn(some_picture(), "some.png");
  EXPECT_TRUE(png.starts_with("\x89PNG\r\n\x1a\n"));
  EXPECT_NE(png.find("IEND"), std::string::npos);
}

// PDF pictures for papers have one page of the stated size.
TEST_F(Gnuplot, PdfHasOnePage) {
  const std::string pdf = drawn(some_picture(), "some.pdf");
  EXPECT_TRUE(pdf.starts_with("%PDF-"));
  EXPECT_NE(pdf.find("/Count 1\n"), std::string::npos) << "of pages";
  EXPECT_NE(pdf.find("/MediaBox [ 0 0 720 405 ]"), std::string::npos);
}

TEST_F(Gnuplot, EpsSaysItsBox) {
  const std::string eps = drawn(some_picture(), "some.eps");
  EXPECT_TRUE(eps.starts_with("%!PS-Adobe-"));
  EXPECT_NE(eps.substr(0, eps.find('\n')).find("EPSF"), std::string::npos);
  EXPECT_NE(eps.find("\n%%BoundingBox: 0 0 720 405\n"), std::string::npos);
  EXPECT_NE(eps.find("\n%%Pages: 1\n"), std::string::npos);
}

// If gnuplot was built without a format, the message says so and names a remedy.
TEST_F(Gnuplot, SaysWhichTerminalIsMissing) {
  const std::filesystem::path gnuplot = directory_.write(
      "gnuplot",
      "#!/bin/sh\necho '\"script\" line 2: unknown or ambiguous terminal name; type just' >&2\n"
      "exit 1\n");
  std::filesystem::permissions(gnuplot, std::filesystem::perms::owner_all);
  try {
    static_cast<void>(draw(some_picture(), PictureFormat::pdf, gnuplot, directory_.path()));
    ADD_FAILURE() << "drawn";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()),
              gnuplot.string() +
                  " draws no .pdf (it has no terminal pdfcairo): install gnuplot-nox, or take "
                  "another of .svg, .png, .pdf or .eps");
  }
}

// "d^2" and "10^-3" become powers everywhere. The caption is a command and stays unchanged.
TEST_F(Gnuplot, PowersAreRaised) {
  Picture picture = some_picture();
  picture.title = "M = 4 d^2, x ^ y";
  picture.x_label = "10^-3 s";
  picture.caption = "redblue plot a^2";
  picture.commands = "set logscale y 10\nset yrange [1:2e9]\n" + gnuplot_log_tics('y', 1e8, 1e9) +
                     "plot $points title " + gnuplot_text("10^12 words") + "\n";
  const std::vector<std::string> texts = svg_texts(drawn(picture, "some.svg"));
  for (const char* text :
       {"M = 4 d^2, x ^ y", "10^\u22123 s", "10^8", "10^9", "10^12 words", "redblue plot a^2"}) {
    EXPECT_EQ(std::ranges::count(texts, text), 1) << text;
  }
  const std::string svg = drawn(picture, "some.svg");
  EXPECT_EQ(svg.find("d^2"), std::string::npos);
  EXPECT_NE(svg.find(">redblue plot a^2<"), std::string::npos);
}

// Without a title or a caption, the plot takes their room.
TEST_F(Gnuplot, NoEmptyStrips) {
  const Picture picture = some_picture();
  Picture bare = picture;
  bare.title = bare.caption = "";
  const auto margin = [](const Picture& of, const std::string& name) {
    const std::string script = script_of(of, PictureFormat::svg, "some.svg");
    const std::size_t at = script.find("set " + name + " at screen ");
    return std::stod(script.substr(script.find("screen ", at) + 7));
  };
  EXPECT_GT(margin(bare, "tmargin"), margin(picture, "tmargin"));
  EXPECT_LT(margin(bare, "bmargin"), margin(picture, "bmargin"));
  EXPECT_GT(margin(bare, "tmargin"), 0.97);
  EXPECT_EQ(svg_texts(drawn(bare, "bare.svg")).size() + 2,
            svg_texts(drawn(picture, "some.svg")).size());
}

// No part of a text acts as a command or an escape.
TEST_F(Gnuplot, WordsAreTakenAsTheyAre) {
  Picture picture = some_picture();
  picture.title = R"(it's "x" `touch never` \n {/Bold b} a_b @c $d <e> & ~f a^b ^ %g)";
  picture.caption = "a\nb 'c'";
  const std::string svg = drawn(picture, "some.svg");
  const std::vector<std::string> texts = svg_texts(svg);
  EXPECT_EQ(std::ranges::count(texts, picture.title), 1) << svg;
  EXPECT_EQ(std::ranges::count(texts, "a b 'c'"), 1) << svg;
  EXPECT_FALSE(std::filesystem::exists("never"));
}

TEST_F(Gnuplot, SaysWhatGnuplotSays) {
  Picture picture = some_picture();
  picture.commands = "plot $points with nonsense\n";
  try {
    static_cast<void>(draw(picture, PictureFormat::svg, gnuplot(), directory_.path()));
    ADD_FAILURE() << "drawn";
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("unrecognized plot type"), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path())) << "nothing is left";
}

// A warning is not the reason of a failure. A script plays a gnuplot that warns.
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
  EXPECT_EQ(picture_format("a.pdf"), PictureFormat::pdf);
  EXPECT_EQ(picture_format("a.eps"), PictureFormat::eps);
  for (const char* other : {"a.ps", "a", ".svg", "svg", "a.SVG", "a.svg/"}) {
    EXPECT_EQ(picture_format(other), std::nullopt) << other;
  }
}

TEST(Picture, TicsAreAFew) {
  EXPECT_EQ(gnuplot_tics('x', 3), "set xtics ('0' 0, '1' 1, '2' 2, '3' 3) nomirror out\n");
  EXPECT_EQ(gnuplot_tics('y', 17'000),
            "set ytics ('0' 0, '5,000' 5000, '10,000' 10000, '15,000' 15000) nomirror out\n");
  EXPECT_EQ(gnuplot_tics('y', 2'600, 2'050),
            "set ytics ('2,100' 2100, '2,200' 2200, '2,300' 2300, '2,400' 2400, '2,500' 2500, "
            "'2,600' 2600) nomirror out\n");
  EXPECT_EQ(gnuplot_tics('y', 12'345'679, 12'345'677),
            "set ytics ('12,345,677' 12345677, '12,345,678' 12345678, '12,345,679' 12345679) "
            "nomirror out\n");
  EXPECT_EQ(gnuplot_tics('y', 250'000'000),
            "set ytics ('0' 0, '0.5\u00d710^{8}' 50000000, '1\u00d710^{8}' 100000000, "
            "'1.5\u00d710^{8}' 150000000, '2\u00d710^{8}' 200000000, '2.5\u00d710^{8}' 250000000) "
            "nomirror out\n");
  for (Index most = 1; most < 1'000'000'000'000; most = most * 3 / 2 + 1) {
    const std::string tics = gnuplot_tics('x', most);
    const auto commas = std::ranges::count(tics, '\'') / 2;
    EXPECT_GE(commas, 2) << tics;
    EXPECT_LE(commas, 7) << tics;
  }
}

// Returns the labels of tics.
std::vector<std::string> texts_of(const std::string& tics) {
  std::vector<std::string> texts;
  std::istringstream parts(tics);
  std::string part;
  for (bool text = false; std::getline(parts, part, '\''); text = !text) {
    if (text && !part.empty()) {
      texts.push_back(part);
    }
  }
  return texts;
}

TEST(Picture, SizesAreAsOneGivesThem) {
  EXPECT_EQ(size_text(64), "64");
  EXPECT_EQ(size_text(4096), "4K");
  EXPECT_EQ(size_text(5793), "5,793");
  EXPECT_EQ(size_text(3 << 20), "3M");
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts_of(gnuplot_size_tics('x', 1000, 5793, 9)), (Texts{"1K", "2K", "4K"}));
  EXPECT_EQ(texts_of(gnuplot_size_tics('x', 1 << 8, 1 << 24, 9)),
            (Texts{"256", "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M"}));
  EXPECT_EQ(texts_of(gnuplot_size_tics('x', 33, 60, 9)),
            (Texts{"35", "40", "45", "50", "55", "60"}))
      << "there is no power of two";
}

// For any range there are some labels, but not too many.
TEST(Picture, LogTics) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts_of(gnuplot_log_tics('y', 8e5, 2e9)),
            (Texts{"10^{6}", "10^{7}", "10^{8}", "10^{9}"}));
  EXPECT_EQ(texts_of(gnuplot_log_tics('y', 3e6, 3e7)),
            (Texts{"5\u00d710^{6}", "10^{7}", "2\u00d710^{7}"}));
  EXPECT_EQ(texts_of(gnuplot_log_tics('y', 0.8, 30)), (Texts{"1", "2", "5", "10", "20"}));
  EXPECT_EQ(texts_of(gnuplot_log_tics('x', 0.004, 0.03)), (Texts{"0.005", "0.01", "0.02"}));
  for (double least = 1e-6; least < 1e12; least *= 7.3) {
    for (double factor = 1.3; factor < 1e12; factor *= 1.7) {
      const Texts texts = texts_of(gnuplot_log_tics('y', least, least * factor));
      EXPECT_GE(texts.size(), 2U) << least << " " << factor;
      EXPECT_LE(texts.size(), 9U) << least << " " << factor;
    }
  }
}

}  // namespace
}  // namespace redblue
