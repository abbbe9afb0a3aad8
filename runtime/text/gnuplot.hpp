#pragma once
// Draws pictures with gnuplot. They share one look that is legible in black and white: each colour
// (from Okabe and Ito's palette) has its own dash type, point type and fill.

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
// Returns the format for a file name, or nullopt for an unknown extension.
std::optional<PictureFormat> picture_format(const std::filesystem::path& file);
inline constexpr std::string_view kPictureEndings = ".svg, .png, .pdf or .eps";

// Size of small texts in pixels of the SVG. Other texts have size 13.
inline constexpr int kSmallFont = 10;
// The left and right end of the plot, as shares of the picture's width. Labels and the legend take
// the rest.
inline constexpr double kPlotLeft = 0.105;
inline constexpr double kPlotRight = 0.8;

// Powers are raised ("M = d^2", "10^-3") in all texts except the caption.
struct Picture {
  std::string title;             // if empty, the plot is higher
  std::string x_label, y_label;  // with their units
  std::string caption = {};      // the command that made the picture, shown below the plot
  // Blocks of data by name ("$columns"): lines of numbers.
  std::vector<std::pair<std::string, std::string>> data = {};
  // Further gnuplot commands after the common look; the last one plots. Line type k >= 1 has the
  // k-th colour, dash type and point type.
  std::string commands = {};
  bool words_above = false;  // the commands set a line of text above the plot
};

// Returns a text in gnuplot's quotes. Powers are raised; all other markup is shown as written.
std::string gnuplot_text(std::string_view text);
// Returns a user's text in gnuplot's quotes. All markup, powers too, is shown as written.
std::string gnuplot_plain(std::string_view text);
// Returns the fill of area k >= 0: "fillstyle ... linecolor ...".
std::string gnuplot_fill(std::size_t k);
// The white background of hatched areas. Without it, their gaps are transparent in an SVG.
inline constexpr std::string_view kGnuplotWhite =
    "fillstyle solid 1 noborder linecolor rgb 'white'";
// Returns a size as people give it to --M: 4096 as 4K, 1048576 as 1M; 5000 as 5,000.
std::string size_text(Index size);

// The next three functions return "set xtics (...)" with texts for some numbers on an axis, x or y.
// This one is for a linear axis from `least` to `most`: 5,000, or 2×10^8.
std::string gnuplot_tics(char axis, Index most, Index least = 0);
// For a logarithmic axis: 10^9. Adds numbers between powers of ten if these are too far apart.
std::string gnuplot_log_tics(char axis, double least, double most);
// For a logarithmic axis of sizes: powers of two, as 4K.
std::string gnuplot_size_tics(char axis, double least, double most, std::size_t at_most);
// Returns the number of characters that fit over a share of the axis, on a plot of full width.
std::size_t label_room(double share_of_axis);

// Returns the whole script. It draws into the file `drawn`.
std::string script_of(const Picture& picture, PictureFormat format,
                      const std::filesystem::path& drawn);

struct Drawn {
  std::string bytes;    // the file; empty after an interruption
  int interrupted = 0;  // the signal that asked this process to end, else 0
};
// Runs the program `gnuplot` with its files in a new directory under `temporary`. Throws:
// std::runtime_error with gnuplot's message, std::system_error.
[[nodiscard]] Drawn draw(const Picture& picture, PictureFormat format,
                         const std::filesystem::path& gnuplot,
                         const std::filesystem::path& temporary);

}  // namespace redblue
