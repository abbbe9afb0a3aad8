#pragma once
// Draws pictures with gnuplot and writes them to files, for all kinds of `redblue plot`.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/system/whole_file.hpp"
#include "runtime/text/gnuplot.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// The gnuplot program on the PATH.
class Gnuplot {
 public:
  // Throws: std::runtime_error if gnuplot is not on the PATH.
  Gnuplot();
  // Returns the bytes of the picture. A signal during the drawing ends the process. Throws:
  // std::runtime_error with gnuplot's message; std::system_error.
  [[nodiscard]] std::string draw(const Picture& picture, PictureFormat format) const;

 private:
  std::filesystem::path program_;
};

// The options of every kind of picture.
struct PictureOptions {
  explicit PictureOptions(CLI::App& app);
  TextOption out;
  Switch bare;
};

class PictureFile {
 public:
  // Opens the file before the work, so that a bad name fails early. Throws: UsageError if the name
  // is missing or its ending is not a picture format. Throws: std::runtime_error without gnuplot;
  // std::system_error.
  explicit PictureFile(const PictureOptions& asked);
  // Draws the picture, with the command that made it below. A bare picture has no title and no
  // command. Throws: as Gnuplot::draw().
  void draw(Picture picture, const CLI::App& command);

 private:
  bool bare_ = false;
  PictureFormat format_ = PictureFormat::svg;
  std::optional<Gnuplot> gnuplot_;
  std::optional<WholeFile> file_;
};

}  // namespace redblue
