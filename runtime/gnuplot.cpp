#include "runtime/gnuplot.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/subprocess.hpp"
#include "runtime/table.hpp"

namespace redblue {
namespace {

// Okabe and Ito, Color Universal Design (2008), with grey in place of black, which words have.
// Yellow, which thin lines are lost in, comes last.
constexpr std::array kColours = {"#0072B2", "#E69F00", "#009E73", "#D55E00",
                                 "#CC79A7", "#56B4E9", "#999999", "#F0E442"};
constexpr std::array kPoints = {7, 5, 9, 13, 11, 4, 6, 8};
constexpr int kDashes = 5;
// Light areas are full (gnuplot's pattern 3), between them lie hatched ones of darker lines.
struct Fill {
  const char* colour;
  int pattern;
};
constexpr std::array<Fill, 20> kFills = {
    {{"#0072B2", 3}, {"#D55E00", 5}, {"#56B4E9", 3}, {"#000000", 1}, {"#E69F00", 3},
     {"#009E73", 2}, {"#F0E442", 3}, {"#0072B2", 7}, {"#CC79A7", 3}, {"#000000", 5},
     {"#009E73", 3}, {"#CC79A7", 4}, {"#999999", 3}, {"#0072B2", 2}, {"#D55E00", 3},
     {"#009E73", 5}, {"#555555", 3}, {"#D55E00", 2}, {"#F0E442", 2}, {"#0072B2", 4}}};

// In units of a pixel of the SVG; a PNG has twice as many, for print.
constexpr int kWidth = 960;
constexpr int kHeight = 540;
constexpr int kFont = 12;
// Of the picture's width; the rest is for labels and legend.
constexpr double kPlotLeft = 0.125;
constexpr double kPlotRight = 0.81;
constexpr double kPlotTop = 0.91;
// Of the font's size, on average.
constexpr double kLetterWidth = 0.62;
constexpr std::size_t kCaptionLine = 150;

// Lines of at most so many letters, broken between words where that can be.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > kCaptionLine) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

std::string terminal(PictureFormat format) {
  return format == PictureFormat::svg
             ? fmt::format(
                   "set terminal svg size {},{} font 'Helvetica,{}' noenhanced "
                   "background rgb 'white'\n",
                   kWidth, kHeight, kFont)
             : fmt::format(
                   "set terminal pngcairo size {},{} font 'Sans,{}' fontscale 1.5 "
                   "linewidth 2 noenhanced background rgb 'white'\n",
                   2 * kWidth, 2 * kHeight, kFont);
}

// What gnuplot says of an error is below the line that it is about: "script" line 3: what. Warnings
// may come before it.
std::string complaint(const std::string& said) {
  std::istringstream lines(said);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("warning:") != std::string::npos) {
      continue;
    }
    if (line.find("\" line ") != std::string::npos) {
      return line;
    }
    if (first.empty()) {
      first = line;
    }
  }
  return first.empty() ? "without a word" : first;
}

// Gnuplot does not say so when the disk is full: by the end that every such file has.
bool is_whole(std::string_view picture, PictureFormat format) {
  const bool svg = format == PictureFormat::svg;
  const std::string_view end = svg ? "</svg>" : "IEND";
  constexpr std::size_t kChecksum = 4;
  const std::size_t at = picture.rfind(end);
  return at != std::string_view::npos &&
         picture.size() - at - end.size() <= (svg ? 2 : kChecksum);  // or empty lines
}

}  // namespace

std::optional<PictureFormat> picture_format(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".svg") {
    return PictureFormat::svg;
  }
  return extension == ".png" ? std::optional(PictureFormat::png) : std::nullopt;
}

std::string gnuplot_text(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    // A line of a script holds it, and in single quotes nothing else means anything.
    const bool control = std::iscntrl(static_cast<unsigned char>(letter)) != 0;
    quoted += letter == '\'' ? "''" : std::string(1, control ? ' ' : letter);
  }
  return quoted + "'";
}

std::string gnuplot_fill(std::size_t k) {
  const auto& [colour, pattern] = kFills[k % kFills.size()];
  return fmt::format(
      "fillstyle pattern {} border rgb 'black' linecolor rgb '{}' dashtype 1 linewidth 0.5",
      pattern, colour);
}

std::string gnuplot_tics(char axis, Index most) {
  constexpr Index kAtMost = 6;
  Index step = 1;
  for (int k = 1; most / step > kAtMost; ++k) {
    step = k % 3 == 2 ? step / 2 * 5 : step * 2;  // 1, 2, 5, 10, ...
  }
  std::string tics;
  for (Index at = 0; at <= most; at += step) {
    tics += fmt::format("{}'{}' {}", at == 0 ? "" : ", ", grouped(at), at);
  }
  return fmt::format("set {}tics ({}) nomirror out\n", axis, tics);
}

std::size_t label_room(double share_of_axis) {
  const double pixels = share_of_axis * (kPlotRight - kPlotLeft) * kWidth;
  return static_cast<std::size_t>(pixels / (kLetterWidth * kSmallFont));
}

std::string script_of(const Picture& picture, PictureFormat format,
                      const std::filesystem::path& drawn) {
  std::string script = "set encoding utf8\n" + terminal(format);
  script += fmt::format("set output {}\n", gnuplot_text(drawn.string()));
  for (std::size_t k = 0; k < kColours.size(); ++k) {
    script +=
        fmt::format("set linetype {} linecolor rgb '{}' linewidth 2 dashtype {} pointtype {}\n",
                    k + 1, kColours[k], k % kDashes + 1, kPoints[k]);
  }
  const std::vector<std::string> caption = lines_of(picture.caption);
  const double line = 1.3 * kFont / kHeight;
  script += fmt::format(
      "set linetype cycle {}\n"
      "set border 3\n"
      "set grid linecolor rgb '#dddddd' linetype 1 linewidth 0.5 dashtype 1\n"
      "set key outside right top vertical Left reverse samplen 2.5\n"
      "set lmargin at screen {}\nset rmargin at screen {}\nset tmargin at screen {}\n"
      "set bmargin at screen {:.4f}\n"
      "set title {}\nset xlabel {}\nset ylabel {}\n",
      kColours.size(), kPlotLeft, kPlotRight, kPlotTop,
      0.13 + line * static_cast<double>(caption.size()), gnuplot_text(picture.title),
      gnuplot_text(picture.x_label), gnuplot_text(picture.y_label));
  for (std::size_t k = 0; k < caption.size(); ++k) {
    script += fmt::format(
        "set label {} at screen 0.01, screen {:.4f} font ',{}' textcolor rgb '#555555'\n",
        gnuplot_text(caption[k]), line * (static_cast<double>(caption.size() - k) - 0.4),
        kSmallFont);
  }
  for (const auto& [name, lines] : picture.data) {
    script += fmt::format("{} << EOD\n{}EOD\n", name, lines);
  }
  return script + picture.commands + "set output\n";  // which closes it
}

Drawn draw(const Picture& picture, PictureFormat format, const std::filesystem::path& gnuplot,
           const std::filesystem::path& temporary) {
  const ScratchDirectory scratch(temporary);
  const std::filesystem::path script = scratch.path() / "script";
  const std::filesystem::path drawn = scratch.path() / "picture";
  std::ofstream(script) << script_of(picture, format, drawn);
  // Its default settings: nobody's own file changes the look.
  const Ended ended =
      run_program({gnuplot.string(), "--default-settings", script.string()}, {}, scratch.path());
  if (ended.interrupted != 0) {
    return {.bytes = {}, .interrupted = ended.interrupted};
  }
  if (ended.code != 0 || ended.signal != 0) {
    throw std::runtime_error(fmt::format("{} failed: {}", gnuplot.string(), complaint(ended.err)));
  }
  std::ifstream in(drawn, std::ios::binary);
  Drawn picture_drawn{.bytes = {std::istreambuf_iterator<char>(in), {}}};
  if (!is_whole(picture_drawn.bytes, format)) {
    throw std::runtime_error(
        fmt::format("{} failed: its picture is not whole: is there room in {}?", gnuplot.string(),
                    temporary.string()));
  }
  return picture_drawn;
}

}  // namespace redblue
