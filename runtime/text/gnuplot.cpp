#include "runtime/text/gnuplot.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/system/read_text.hpp"
#include "runtime/system/subprocess.hpp"
#include "runtime/system/system_call.hpp"
#include "runtime/text/powers.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Colours by Okabe and Ito, Color Universal Design (2008). Grey replaces black, the colour of
// texts. Yellow is last, because thin yellow lines are hard to see.
constexpr std::array kColours = {"#0072B2", "#E69F00", "#009E73", "#D55E00",
                                 "#CC79A7", "#56B4E9", "#999999", "#F0E442"};
constexpr std::array kPoints = {7, 5, 9, 13, 11, 4, 6, 8};
// Dashes are longer than the points on them. The first line matters most and is solid.
constexpr std::array kDashes = {"1", "(14,4)", "(14,4,3,4)", "(6,3)", "(14,4,3,4,3,4)"};
// Solid light areas (gnuplot's pattern 3) alternate with darker hatched areas.
struct Fill {
  const char* colour;
  int pattern;
};
constexpr std::array<Fill, 20> kFills = {
    {{"#0072B2", 3}, {"#D55E00", 5}, {"#56B4E9", 3}, {"#000000", 1}, {"#E69F00", 3},
     {"#009E73", 2}, {"#F0E442", 3}, {"#0072B2", 7}, {"#CC79A7", 3}, {"#000000", 5},
     {"#009E73", 3}, {"#CC79A7", 4}, {"#999999", 3}, {"#0072B2", 2}, {"#D55E00", 3},
     {"#009E73", 5}, {"#555555", 3}, {"#D55E00", 2}, {"#F0E442", 2}, {"#0072B2", 4}}};

struct FormatFacts {
  std::string_view extension;
  std::string_view terminal;
  std::string_view end;  // the bytes near the end of every complete file
  std::size_t after;     // the most bytes after `end`: empty lines, a checksum
};
// In the order of PictureFormat.
constexpr std::array<FormatFacts, 4> kFormats = {{{".svg", "svg", "</svg>", 2},
                                                  {".png", "pngcairo", "IEND", 4},
                                                  {".pdf", "pdfcairo", "%%EOF", 2},
                                                  {".eps", "epscairo", "%%EOF", 2}}};

const FormatFacts& facts_of(PictureFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

// Sizes in pixels of the SVG. A PNG has twice as many pixels, for print.
constexpr double kWidth = 960;
constexpr double kHeight = 540;
constexpr double kFont = 13;
// As shares of the picture's height.
constexpr double kLine = 1.35 * kFont / kHeight;
constexpr double kEdge = 0.5 * kLine;
constexpr double kBelow = 3.7 * kLine;  // the numbers of an axis and its label
// The mean width of a letter, as a share of the font's size.
constexpr double kLetterWidth = 0.62;
constexpr std::size_t kCaptionLine = 140;

// Breaks a text into lines of at most kCaptionLine letters. A longer word has a line to itself.
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
  const std::string_view name = facts_of(format).terminal;
  constexpr double kCairo = 0.75;  // Cairo draws fonts a third larger than asked for
  constexpr double kInch = 96;     // in pixels of the SVG
  if (format == PictureFormat::svg) {
    return fmt::format(
        "set terminal {} size {},{} font 'Helvetica,{}' enhanced background rgb 'white'\n", name,
        kWidth, kHeight, kFont);
  }
  if (format == PictureFormat::png) {
    return fmt::format(
        "set terminal {} size {},{} font 'Sans,{}' fontscale {} linewidth 2 pointscale 2 enhanced "
        "background rgb 'white'\n",
        name, 2 * kWidth, 2 * kHeight, kFont, 2 * kCairo);
  }
  return fmt::format(
      "set terminal {} size {}in,{}in font 'Sans,{}' fontscale {} linewidth 1.5 pointscale 0.75 "
      "enhanced\n",
      name, kWidth / kInch, kHeight / kInch, kFont, 72 / kInch * kCairo);
}

// Returns the error in gnuplot's output. It follows the script line that it is about: "script" line
// 3: what. Warnings may precede it.
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

// Returns whether the picture is complete. gnuplot reports no error when the disk is full.
bool is_whole(std::string_view picture, PictureFormat format) {
  const FormatFacts& facts = facts_of(format);
  const std::size_t at = picture.rfind(facts.end);
  return at != std::string_view::npos && picture.size() - at - facts.end.size() <= facts.after;
}

// Returns a text in gnuplot's quotes, without raising powers.
std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char letter : text) {
    // The text must fit on one line of the script. Inside single quotes only a single quote is
    // special.
    const bool control = std::iscntrl(static_cast<unsigned char>(letter)) != 0;
    // A single quote is written as "\047" outside the quotes. After a backslash a doubled quote
    // would end the string. An unpaired quote would end the protection of an @.
    quoted += letter == '\'' ? R"(' . "\047" . ')" : std::string(1, control ? ' ' : letter);
  }
  return quoted + "'";
}

struct Tick {
  double at;
  std::string text;  // empty: a minor tic
};

std::string tics_of(char axis, const std::vector<Tick>& ticks) {
  std::string tics;
  for (const auto& [at, text] : ticks) {
    tics += fmt::format("{}{} {}{}", tics.empty() ? "" : ", ", gnuplot_text(text), at,
                        text.empty() ? " 1" : "");
  }
  return fmt::format("set {}tics ({}) nomirror out\n", axis, tics);
}

// Returns a few multiples of 1, 2 or 5 times a power of ten.
std::vector<double> even(double least, double most, double finest) {
  constexpr int kAtMost = 6;
  double step = finest;
  for (int k = 1; (most - least) / step > kAtMost; ++k) {
    step = k % 3 == 2 ? step / 2 * 5 : step * 2;  // 1, 2, 5, 10, ...
  }
  std::vector<double> found;
  const double first = std::ceil(least / step);
  for (int k = 0; k <= kAtMost && (first + k) * step <= most;
       ++k) {  // beyond 2^53, ++first would not change it
    found.push_back((first + k) * step);
  }
  return found;
}

// Returns the exponent of the power of ten at or below a positive number. Returns 0 for the length
// of an axis with one point or none.
int exponent(double number) {
  if (!(number > 0) || std::isinf(number)) {
    return 0;
  }
  return static_cast<int>(std::floor(std::log10(number) + 1e-9));
}

// Returns 0.25 or 1,500; with a power 2×10^8 or 10^8.
std::string text_of(double number, std::optional<int> power) {
  if (number == 0 || !power) {
    return number == std::floor(number) ? grouped(static_cast<Index>(number))
                                        : fmt::format("{:g}", number);
  }
  return fmt::format("{:g}\u00d710^{}", number / std::pow(10, *power), *power);
}

}  // namespace

std::optional<PictureFormat> picture_format(const std::filesystem::path& file) {
  const auto found =
      std::ranges::find(kFormats, file.extension().string(), &FormatFacts::extension);
  return found == kFormats.end() ? std::nullopt
                                 : std::optional(PictureFormat(found - kFormats.begin()));
}

namespace {

// Escapes the characters that gnuplot would take as markup.
std::string as_it_is(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (std::string_view(R"(\^_{}@&~)").find(c) != std::string_view::npos) {
      plain += '\\';
    }
    plain += c;
  }
  return plain;
}

}  // namespace

std::string gnuplot_plain(std::string_view text) {
  return in_quotes(as_it_is(text));
}

std::string gnuplot_text(std::string_view text) {
  return in_quotes(with_powers(as_it_is(text), R"(\^)", [](std::string_view exponent) {
    const bool negative = exponent.starts_with('-');
    return fmt::format("^{{{}{}}}", negative ? "\u2212" : "", exponent.substr(negative ? 1 : 0));
  }));
}

std::string gnuplot_fill(std::size_t k) {
  const auto& [colour, pattern] = kFills[k % kFills.size()];
  return fmt::format(
      "fillstyle pattern {} border rgb 'black' linecolor rgb '{}' dashtype 1 linewidth 0.5",
      pattern, colour);
}

std::string size_text(Index size) {
  constexpr Index kK = 1 << 10;
  constexpr Index kM = 1 << 20;
  return size >= kM && size % kM == 0   ? fmt::format("{}M", size / kM)
         : size >= kK && size % kK == 0 ? fmt::format("{}K", size / kK)
                                        : grouped(size);
}

std::string gnuplot_tics(char axis, Index most, Index least) {
  constexpr double kLong = 1e6;  // larger numbers are written as powers of ten
  constexpr double kFine = 1e4;  // closer neighbours would look alike as powers
  const std::vector<double> numbers =
      even(static_cast<double>(least), static_cast<double>(most), 1);
  const double last = numbers.back();
  const bool powers = last >= kLong && last - numbers.front() >= last / kFine;
  std::vector<Tick> ticks;
  for (const double at : numbers) {
    ticks.push_back({at, text_of(at, powers ? std::optional(exponent(last)) : std::nullopt)});
  }
  return tics_of(axis, ticks);
}

std::string gnuplot_log_tics(char axis, double least, double most) {
  constexpr int kAtMost = 8;
  const bool powers = most >= 1e5 || least < 1e-3;
  const int first = exponent(least);
  const int last = exponent(most);
  const int stride = 1 + (last - first) / kAtMost;
  const auto ticks_at = [&](const std::vector<int>& factors, bool only_tens) {
    std::vector<Tick> ticks;
    for (int k = first; k <= last; ++k) {
      for (const int factor : factors) {
        const double at = factor * std::pow(10, k);
        const bool named = factor == 1 ? k % stride == 0 : !only_tens;
        if (at >= least && at <= most && (named || stride == 1)) {
          ticks.push_back({at, !named ? ""
                               : powers && factor == 1
                                   ? fmt::format("10^{}", k)
                                   : text_of(at, powers ? std::optional(k) : std::nullopt)});
        }
      }
    }
    return ticks;
  };
  const auto named = [](const std::vector<Tick>& ticks) {
    return std::ranges::count_if(ticks, [](const Tick& tick) { return !tick.text.empty(); });
  };
  // Powers of ten suffice for counts of words. Small numbers may have more tics.
  const std::vector<Tick> tens = ticks_at({1, 2, 3, 4, 5, 6, 7, 8, 9}, true);
  std::vector<Tick> ticks = ticks_at({1, 2, 5}, false);
  if (powers ? named(tens) >= 2 : named(ticks) > kAtMost) {
    ticks = tens;
  }
  if (named(ticks) < 2) {
    ticks.clear();
    const int power = exponent(most);
    for (const double at : even(least, most, std::pow(10, exponent(most - least) - 1))) {
      ticks.push_back({at, text_of(at, powers ? std::optional(power) : std::nullopt)});
    }
  }
  return tics_of(axis, ticks);
}

std::string gnuplot_size_tics(char axis, double least, double most, std::size_t at_most) {
  std::vector<double> powers;
  for (double at = 1; at <= most; at *= 2) {
    if (at >= least) {
      powers.push_back(at);
    }
  }
  const bool enough = powers.size() >= 2;
  const std::vector<double>& numbers = enough ? powers : even(least, most, 1);
  const std::size_t stride = 1 + (numbers.size() - 1) / at_most;
  std::vector<Tick> ticks;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    ticks.push_back({numbers[k], k % stride == 0 ? size_text(static_cast<Index>(numbers[k])) : ""});
  }
  return tics_of(axis, ticks);
}

std::size_t label_room(double share_of_axis) {
  const double pixels = share_of_axis * (kPlotRight - kPlotLeft) * kWidth;
  return static_cast<std::size_t>(pixels / (kLetterWidth * kSmallFont));
}

std::string script_of(const Picture& picture, PictureFormat format,
                      const std::filesystem::path& drawn) {
  std::string script = "set encoding utf8\n" + terminal(format);
  script += fmt::format("set output {}\n", in_quotes(drawn.string()));
  // All line types differ, because the numbers of colours and of dashes have no common factor.
  constexpr std::size_t kLines = kColours.size() * kDashes.size();
  for (std::size_t k = 0; k < kLines; ++k) {
    script += fmt::format(
        "set linetype {} linecolor rgb '{}' linewidth 2.5 dashtype {} pointtype {}\n", k + 1,
        kColours[k % kColours.size()], kDashes[k % kDashes.size()], kPoints[k % kPoints.size()]);
  }
  const std::vector<std::string> caption = lines_of(picture.caption);
  const double top =
      1 - kEdge - kLine * ((picture.title.empty() ? 0 : 1.6) + (picture.words_above ? 1.2 : 0));
  const double bottom = kBelow + kLine * static_cast<double>(caption.size());
  script += fmt::format(
      "set linetype cycle {}\n"
      "set border 3\n"
      "set tics scale 0.6\n"
      "set grid linecolor rgb '#dddddd' linetype 1 linewidth 0.5 dashtype 1\n"
      "set key at screen {}, screen {:.4f} left top vertical Left reverse samplen 4\n"
      "set lmargin at screen {}\nset rmargin at screen {}\nset tmargin at screen {:.4f}\n"
      "set bmargin at screen {:.4f}\nset xlabel {}\nset ylabel {}\n",
      kLines, kPlotRight + 0.005, top, kPlotLeft, kPlotRight, top, bottom,
      gnuplot_text(picture.x_label), gnuplot_text(picture.y_label));
  // Titles belong to the whole picture, even if it has several plots.
  if (!picture.title.empty()) {
    script += fmt::format("set label {} at screen 0.5, screen {:.4f} center font ',{}'\n",
                          gnuplot_text(picture.title), 1 - kEdge - 0.6 * kLine, kFont + 2);
  }
  for (std::size_t k = 0; k < caption.size(); ++k) {
    script += fmt::format(
        "set label {} noenhanced at screen 0.01, screen {:.4f} font ',{}' "
        "textcolor rgb '#555555'\n",
        in_quotes(caption[k]), kLine * (static_cast<double>(caption.size() - k) - 0.4), kSmallFont);
  }
  for (const auto& [name, lines] : picture.data) {
    script += fmt::format("{} << EOD\n{}EOD\n", name, lines);
  }
  return script + picture.commands + "set output\n";  // closes the file
}

Drawn draw(const Picture& picture, PictureFormat format, const std::filesystem::path& gnuplot,
           const std::filesystem::path& temporary) {
  const ScratchDirectory scratch(temporary);
  const std::filesystem::path script = scratch.path() / "script";
  const std::filesystem::path drawn = scratch.path() / "picture";
  std::ofstream written(script);
  written << script_of(picture, format, drawn);
  written.close();
  if (!written) {
    fail(fmt::format("cannot write {}", script.string()));
  }
  // Uses default settings, so that no settings file of a user changes the look.
  const Ended ended =
      run_program({gnuplot.string(), "--default-settings", script.string()}, {}, scratch.path());
  if (ended.interrupted != 0) {
    return {.bytes = {}, .interrupted = ended.interrupted};
  }
  if (ended.code != 0 || ended.signal != 0) {
    const std::string said = complaint(ended.err);
    if (said.find("unknown or ambiguous terminal") != std::string::npos) {
      const auto& [extension, name, end, after] = facts_of(format);
      throw std::runtime_error(fmt::format(
          "{} draws no {} (it has no terminal {}): install gnuplot-nox, or take another "
          "of {}",
          gnuplot.string(), extension, name, kPictureEndings));
    }
    throw std::runtime_error(fmt::format("{} failed: {}", gnuplot.string(), said));
  }
  Drawn picture_drawn{.bytes = content_if_any(drawn)};
  if (!is_whole(picture_drawn.bytes, format)) {
    throw std::runtime_error(
        fmt::format("{} failed: its picture is not whole: is there room in {}?", gnuplot.string(),
                    temporary.string()));
  }
  return picture_drawn;
}

}  // namespace redblue
