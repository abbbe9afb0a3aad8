#pragma once
// The file that a picture goes to: what all kinds of `redblue plot` share.

#include <filesystem>
#include <optional>

#include "runtime/gnuplot.hpp"
#include "runtime/whole_file.hpp"
#include "tools/command.hpp"

namespace redblue {

class PictureFile {
 public:
  // Opened before the work is done, so that what is wrong with it is known.
  // Throws: UsageError without a name, or for one that ends neither in .svg nor in .png;
  // std::runtime_error without gnuplot; std::system_error.
  explicit PictureFile(const TextOption& out);
  // Throws: std::runtime_error with what gnuplot says, std::system_error.
  void draw(const Picture& picture);

 private:
  PictureFormat format_ = PictureFormat::svg;
  std::filesystem::path gnuplot_;
  std::optional<WholeFile> file_;
};

}  // namespace redblue
