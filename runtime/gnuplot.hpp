#pragma once
// Pictures, drawn by gnuplot, that look alike and can be read in print and by who sees no colours:
// the colours of Okabe and Ito, and with each a dash type, a point type and a fill of its own.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

enum class PictureFormat { svg, png };
// By the extension; nothing for any other.
std::optional<PictureFormat> picture_format(const std::filesystem::path& file);

// Points, beside 12 of other words.
inline constexpr int kSmallFont = 9;

struct Picture {
  std::string title, x_label, y_label;  // labels with their units
  std::string caption;                  // under the plot: the command that made it
  // Each a block of data of this name, of lines of numbers: "$columns".
  std::vector<std::pair<std::string, std::string>> data;
  // Gnuplot's commands: what goes beyond the common look, and last the plot. Line type k, from 1
  // on, has the k-th colour, dash type and point type.
  std::string commands;
};

// A text in gnuplot's quotes, taken as it is.
std::string gnuplot_text(std::string_view text);
// The fill of the k-th area, from 0 on: "fillstyle ... linecolor ...".
std::string gnuplot_fill(std::size_t k);
// "set xtics (...)" from 0 to `most`, with commas between thousands. `axis` is x or y.
std::string gnuplot_tics(char axis, Index most);
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
