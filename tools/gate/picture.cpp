#include "tools/gate/picture.hpp"

#include <csignal>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/system/environment.hpp"
#include "runtime/system/subprocess.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {

Gnuplot::Gnuplot() {
  const char* search = variable("PATH");
  const auto found = find_program("gnuplot", search == nullptr ? "/usr/bin:/bin" : search);
  if (!found) {
    throw std::runtime_error(
        "gnuplot is unavailable: there is none along PATH: install gnuplot-nox");
  }
  program_ = *found;
}

std::string Gnuplot::draw(const Picture& picture, PictureFormat format) const {
  Drawn drawn = redblue::draw(picture, format, program_, temporary_directory());
  if (drawn.interrupted != 0) {
    std::raise(drawn.interrupted);
    throw std::runtime_error("interrupted");
  }
  return std::move(drawn.bytes);
}

PictureOptions::PictureOptions(CLI::App& app)
    : out(app, "-o,--out",
          fmt::format("write the picture to FILE, {} (-: SVG on standard output)", kPictureEndings),
          "FILE"),
      bare(app, "--bare", "leave out the title and the command") {}

PictureFile::PictureFile(const PictureOptions& asked) : bare_(asked.bare.get()) {
  const auto given = asked.out.get();
  if (!given) {
    throw UsageError(fmt::format("{0} is missing: a file for the picture, for example {0} plot.svg",
                                 asked.out.flag()));
  }
  const auto format =
      given->text == "-" ? std::optional(PictureFormat::svg) : picture_format(given->text);
  if (!format) {
    throw UsageError(fmt::format("{} '{}': expected a name that ends in {}", given->from,
                                 given->text, kPictureEndings));
  }
  format_ = *format;
  gnuplot_.emplace();
  file_.emplace(given->text);
}

void PictureFile::draw(Picture picture, const CLI::App& command) {
  picture.title = bare_ ? "" : picture.title;
  picture.caption = bare_ ? "" : command_line(command);
  file_->append(gnuplot_->draw(picture, format_));
  file_->finish();
  file_->commit();
}

}  // namespace redblue
