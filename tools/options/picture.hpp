#pragma once
// Pictures, and the files that they go to: what all kinds of `redblue plot` share.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/system/whole_file.hpp"
#include "runtime/text/gnuplot.hpp"
#include "tools/cli/command.hpp"

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

// What every kind of picture is asked.
struct PictureOptions {
  explicit PictureOptions(CLI::App& app);
  TextOption out;
  Switch bare;
};

class PictureFile {
 public:
  // Opened before the work is done, so that what is wrong with it is known.
  // Throws: UsageError without a name, or for one that does not end as a picture's;
  // std::runtime_error without gnuplot; std::system_error.
  explicit PictureFile(const PictureOptions& asked);
  // Below it is the command that made it; bare, there is neither that nor a title.
  // Throws: as Gnuplot::draw().
  void draw(Picture picture, const CLI::App& command);

 private:
  bool bare_ = false;
  PictureFormat format_ = PictureFormat::svg;
  std::optional<Gnuplot> gnuplot_;
  std::optional<WholeFile> file_;
};

}  // namespace redblue
