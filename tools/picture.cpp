#include "tools/picture.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/subprocess.hpp"
#include "tools/sizes.hpp"

namespace redblue {

PictureFile::PictureFile(const TextOption& out) {
  const auto given = out.get();
  if (!given) {
    throw UsageError(fmt::format("{0} is missing: a file for the picture, for example {0} plot.svg",
                                 out.flag()));
  }
  const auto format = picture_format(given->text);
  if (!format) {
    throw UsageError(fmt::format("{} '{}': expected a name that ends in .svg or .png", given->from,
                                 given->text));
  }
  format_ = *format;
  const char* search = std::getenv("PATH");
  const auto gnuplot = find_program("gnuplot", search == nullptr ? "/usr/bin:/bin" : search);
  if (!gnuplot) {
    throw std::runtime_error(
        "gnuplot is unavailable: there is none along PATH: install gnuplot-nox");
  }
  gnuplot_ = *gnuplot;
  file_.emplace(given->text);
}

void PictureFile::draw(const Picture& picture) {
  const int interrupted =
      redblue::draw(picture, format_, gnuplot_, std::filesystem::temp_directory_path(), *file_);
  if (interrupted != 0) {
    file_.reset();  // a process that ends by a signal leaves nothing
    std::raise(interrupted);
    throw std::runtime_error("interrupted");
  }
  file_->commit();
}

}  // namespace redblue
