#pragma once
// Pictures that gnuplot draws. They share one look, which is legible in black and white: each
// colour (those of Okabe and Ito) has a dash type, a point type and a fill that no other colour
// has.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

enum class PictureFormat { svg, png, pdf, eps };
// The format of a file name; nothing for an unknown extension.
std::optional<PictureFormat> picture_format(const std::filesystem::path& file);
inline constexpr std::string_view kPictureEndings = ".svg, .png, .pdf or .eps";

// In pixels of the SVG. Other texts have 13.
inline constexpr int kSmallFont = 10;
// The left and right end of the plot, as shares of the picture's width. Labels and the legend take
// the rest.
inline constexpr double kPlotLeft = 0.105;
inline constexpr double kPlotRight = 0.8;

// Powers are raised ("M = d^2", "10^-3") in all texts except the caption.
struct Picture {
  std::string title;             // without one the plot is higher
  std::string x_label, y_label;  // with their units
  std::string caption = {};      // the command that made it, below the plot; may be empty
  // Blocks of data by name ("$columns"): lines of numbers.
  std::vector<std::pair<std::string, std::string>> data = {};
  // Gnuplot's commands beyond the common look; the last one plots. Line type k >= 1 has the k-th
  // colour, dash type and point type.
  std::string commands = {};
  bool words_above = false;  // the commands set a line of text above the plot
};

// A text in gnuplot's quotes. Powers are raised; gnuplot interprets nothing else in it.
std::string gnuplot_text(std::string_view text);
// The same of a text in which gnuplot interprets nothing at all: what a person wrote.
std::string gnuplot_plain(std::string_view text);
// The fill of area k >= 0: "fillstyle ... linecolor ...".
std::string gnuplot_fill(std::size_t k);
// The ground of hatched areas. In an SVG their gaps are transparent.
inline constexpr std::string_view kGnuplotWhite =
    "fillstyle solid 1 noborder linecolor rgb 'white'";
// A size as people give it to --M: 4096 as 4K, 1048576 as 1M; 5000 as 5,000.
std::string size_text(Index size);

// "set xtics (...)" with texts for some of the numbers on an axis, x or y.
// On a linear axis from `least` to `most`: 5,000, or 2×10^8.
std::string gnuplot_tics(char axis, Index most, Index least = 0);
// On a logarithmic axis: 10^9, and numbers between powers of ten if these are too far apart.
std::string gnuplot_log_tics(char axis, double least, double most);
// On a logarithmic axis of sizes: powers of two, as 4K.
std::string gnuplot_size_tics(char axis, double least, double most, std::size_t at_most);
// The characters of a label that fit over a share of the axis as wide as the plot.
std::size_t label_room(double share_of_axis);

// The whole script, which draws into the file `drawn`.
std::string script_of(const Picture& picture, PictureFormat format,
                      const std::filesystem::path& drawn);

struct Drawn {
  std::string bytes;    // of a file in the format; empty after an interruption
  int interrupted = 0;  // the signal that asked this process to end meanwhile, else 0
};
// Runs the program `gnuplot` with its files in a fresh directory of `temporary`.
// Throws: std::runtime_error with gnuplot's message, std::system_error.
[[nodiscard]] Drawn draw(const Picture& picture, PictureFormat format,
                         const std::filesystem::path& gnuplot,
                         const std::filesystem::path& temporary);

}  // namespace redblue
