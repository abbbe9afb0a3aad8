#pragma once
// Pictures, and the files that they go to: what all kinds of `redblue plot` share.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/gnuplot.hpp"
#include "runtime/whole_file.hpp"
#include "tools/command.hpp"

namespace redblue {

// The gnuplot that a shell would take.
class Gnuplot {
 public:
  // Throws: std::runtime_error where there is none.
  Gnuplot();
  // The bytes of the picture. A signal meanwhile ends the process, after `before` that: who ends so
  // leaves nothing. Throws: std::runtime_error with what gnuplot says, std::system_error.
  [[nodiscard]] std::string draw(const Picture& picture, PictureFormat format,
                                 const std::function<void()>& before) const;

 private:
  std::filesystem::path program_;
};

class PictureFile {
 public:
  // Opened before the work is done, so that what is wrong with it is known.
  // Throws: UsageError without a name, or for one that ends neither in .svg nor in .png;
  // std::runtime_error without gnuplot; std::system_error.
  explicit PictureFile(const TextOption& out);
  // Throws: as Gnuplot::draw().
  void draw(const Picture& picture);

 private:
  PictureFormat format_ = PictureFormat::svg;
  std::optional<Gnuplot> gnuplot_;
  std::optional<WholeFile> file_;
};

}  // namespace redblue
