#pragma once
// Commands that print a report as a table, without gnuplot, and also draw it if a picture file is
// named.

#include <memory>
#include <optional>

#include "runtime/text/description.hpp"
#include "runtime/text/gnuplot.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/picture.hpp"

namespace redblue {

template <class Asked, class Report>
Action tabled(CLI::App& app, Report (*report_of)(const Asked&),
              Picture (*picture_of)(const Report&)) {
  struct Options {
    explicit Options(CLI::App& command)
        : asked(command),
          format(command, "--format", "output format of the table (default: table)",
                 "table|json|csv"),
          picture(command) {}
    Asked asked;
    TextOption format;
    PictureOptions picture;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, &app, report_of, picture_of] {
    const Format format = parse_format(options->format);
    const auto out = options->picture.out.get();
    std::optional<PictureFile> file;
    if (out) {
      file.emplace(options->picture);
    }
    const Report report = report_of(options->asked);
    if (file) {
      file->draw(picture_of(report), app);
    }
    print(report, format, beside(out && out->text == "-"));
    return 0;
  };
}

}  // namespace redblue
