#pragma once
// Pictures and their files, shared by all kinds of `redblue plot`.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "runtime/system/whole_file.hpp"
#include "runtime/text/gnuplot.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// The gnuplot that a shell would run.
class Gnuplot {
 public:
  // Throws: std::runtime_error if the PATH has none.
  Gnuplot();
  // The bytes of the picture. A signal meanwhile ends the process. Throws: std::runtime_error with
  // gnuplot's message; std::system_error.
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
  // Opens the file before the work is done, so that a bad file is known early. Throws: UsageError
  // without a name, or for one that does not end as a picture's; std::runtime_error without
  // gnuplot; std::system_error.
  explicit PictureFile(const PictureOptions& asked);
  // Below the picture is the command that made it; a bare picture has neither that nor a title.
  // Throws: as Gnuplot::draw().
  void draw(Picture picture, const CLI::App& command);

 private:
  bool bare_ = false;
  PictureFormat format_ = PictureFormat::svg;
  std::optional<Gnuplot> gnuplot_;
  std::optional<WholeFile> file_;
};

}  // namespace redblue
