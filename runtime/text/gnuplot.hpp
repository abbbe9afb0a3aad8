#pragma once
// Pictures, drawn by gnuplot, that look alike and can be read in black and white: the colours of
// Okabe and Ito, and with each another dash type, point type and fill.

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
// By the extension; nothing for any other.
std::optional<PictureFormat> picture_format(const std::filesystem::path& file);
inline constexpr std::string_view kPictureEndings = ".svg, .png, .pdf or .eps";

// Pixels of the SVG, in which the other words have 13.
inline constexpr int kSmallFont = 10;
// The plot, as parts of the picture's width; the rest is for labels and legend.
inline constexpr double kPlotLeft = 0.105;
inline constexpr double kPlotRight = 0.8;

// In all its texts except the caption powers are raised: "M = d^2", "10^-3".
struct Picture {
  std::string title;             // none: the plot has its room
  std::string x_label, y_label;  // with their units
  std::string caption;  // under the plot: the command that made it; none: the plot has its room
  // Each a block of data of this name, of lines of numbers: "$columns".
  std::vector<std::pair<std::string, std::string>> data;
  // Gnuplot's commands: what goes beyond the common look, and last the plot. Line type k, from 1
  // on, has the k-th colour, dash type and point type.
  std::string commands;
  bool words_above = false;  // commands set a line of words above the plot
};

// A text in gnuplot's quotes, with powers raised, and else taken as it is.
std::string gnuplot_text(std::string_view text);
// The fill of the k-th area, from 0 on: "fillstyle ... linecolor ...".
std::string gnuplot_fill(std::size_t k);
// What hatched areas lie on: an SVG's let through what is behind them.
inline constexpr std::string_view kGnuplotWhite =
    "fillstyle solid 1 noborder linecolor rgb 'white'";
// 4096 as 4K, 1048576 as 1M, as people give sizes to --M; 5000 as 5,000.
std::string size_text(Index size);

// "set xtics (...)" with the texts of some numbers from `least` to `most`; `axis` is x or y.
// From 0 on, even: 5,000, or 2×10^8.
std::string gnuplot_tics(char axis, Index most);
// On an axis of logarithms: 10^9, or what is between where powers of ten are too far apart.
std::string gnuplot_log_tics(char axis, double least, double most);
// The same for sizes: powers of two, 4K.
std::string gnuplot_size_tics(char axis, double least, double most, std::size_t at_most);
// Characters of the plot's width that a label has room for, over that share of the axis.
std::size_t label_room(double share_of_axis);

// All that gnuplot is told, to draw into that file.
std::string script_of(const Picture& picture, PictureFormat format,
                      const std::filesystem::path& drawn);

struct Drawn {
  std::string bytes;    // of a file of that format
  int interrupted = 0;  // the signal to end by that this process got meanwhile, if any: no bytes
};
// `gnuplot` is the program; `temporary` a directory for what it leaves.
// Throws: std::runtime_error with what gnuplot says, std::system_error.
[[nodiscard]] Drawn draw(const Picture& picture, PictureFormat format,
                         const std::filesystem::path& gnuplot,
                         const std::filesystem::path& temporary);

}  // namespace redblue
