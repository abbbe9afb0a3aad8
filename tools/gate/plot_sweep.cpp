#include "tools/gate/plot_sweep.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/text/sizes.hpp"

namespace redblue {
namespace {

// Returns the first few values: "64, 128, 256, ...".
std::string some_of(std::vector<std::string> values) {
  constexpr std::size_t kSome = 3;
  if (values.size() > kSome) {
    values.resize(kSome);
    values.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

// Returns the axes as a type for the help: "n|d|M", or SIZE if the points decide.
std::string axes_text(const std::vector<std::string>& axes) {
  return axes.size() > 1 ? fmt::format("{}", fmt::join(axes, "|")) : "SIZE";
}

}  // namespace

SweepOptions::SweepOptions(CLI::App& app, SweepDrawn drawn)
    : drawn_(std::move(drawn)),
      directory_(app, "directory", "directory of a sweep"),
      where_(app, "--where", "only points with these arguments, comma-separated", "NAME=VALUE"),
      picture_(app) {}

Points SweepOptions::points(const Sweep& sweep) const {
  std::map<std::string, std::string> where;
  std::string* last = nullptr;  // the previous value; it may contain commas: mask=window:4,0
  for (const Given& given : where_.items()) {
    const std::size_t equals = given.text.find('=');
    if (equals == std::string::npos && last != nullptr && !given.text.empty()) {
      *last += "," + given.text;
      continue;
    }
    if (equals == std::string::npos || equals + 1 == given.text.size()) {
      throw UsageError(
          fmt::format("{} '{}': expected NAME=VALUE, for example d=64", given.from, given.text));
    }
    last = &(where[given.text.substr(0, equals)] = given.text.substr(equals + 1));
  }
  for (auto& [name, value] : where) {
    const bool known = std::ranges::any_of(sweep.points, [&name = name](const Swept& swept) {
      return swept.point.arguments.contains(name);
    });
    if (!known) {
      throw UsageError(fmt::format("{}: no point has a '{}'", where_.flag(), name));
    }
    if (std::isdigit(static_cast<unsigned char>(value.front())) != 0) {
      value = sizes_in(value);
    }
  }
  Points found = points_of(sweep, where);
  if (found.empty()) {
    throw UsageError(fmt::format("{}: {} has no such points", where_.flag(), directory_.get()));
  }
  return found;
}

std::string SweepOptions::sizes_in(const std::string& text) const {
  std::vector<Index> sizes;
  std::size_t begin = 0;
  for (std::size_t comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = text.find(',', begin);
    sizes.push_back(parse_size(
        text.substr(begin, comma == std::string::npos ? comma : comma - begin), where_.flag()));
  }
  return fmt::format("{}", fmt::join(sizes, ","));
}

SliceOptions::SliceOptions(CLI::App& app, const SweepDrawn& drawn)
    : SweepOptions(app, drawn),
      over_(app, "--over", "axis (default: the argument that varies)",
            axes_text(drawn.family->axes({}))) {}

Slice SliceOptions::slice(const Points& points) const {
  const std::vector<Differing> all = differing(points, family());
  const std::vector<std::string> axes = axes_of(points);
  std::string varying, ways;
  for (const auto& [name, values] : all) {
    varying += fmt::format("{}{} ({})", varying.empty() ? "" : ", ", name, some_of(values));
  }
  for (const std::string& axis : axes) {
    const std::vector<Slice> found = slices(points, axis, family());
    if (found.size() <= 1) {
      return found.empty() ? Slice{.over = axis, .family = &family()} : found.front();
    }
    // The example in the message names a slice with the most points.
    const Slice& most = *std::ranges::max_element(
        found, {}, [](const Slice& slice) { return slice.points.size(); });
    std::string fixed;
    for (const auto& [name, values] : all) {
      const Arguments& arguments = most.points.front()->point.arguments;
      if (name != axis && arguments.contains(name)) {
        fixed += fmt::format("{}{}={}", fixed.empty() ? "" : ",", name,
                             to_string(arguments.value(name)));
      }
    }
    ways +=
        fmt::format("{}{} {} draws over {}", ways.empty() ? "" : ", ", where_flag(), fixed, axis);
  }
  throw UsageError(fmt::format("{} varies in {}: {}", directory(), varying, ways));
}

std::vector<std::string> SliceOptions::axes_of(const Points& points) const {
  const std::vector<std::string> known = family().axes(points);
  if (const auto over = over_.get()) {
    if (std::ranges::find(known, over->text) == known.end()) {
      throw UsageError(
          fmt::format("{} '{}': expected {}", over->from, over->text, fmt::join(known, "|")));
    }
    return {over->text};
  }
  const std::vector<Differing> all = differing(points, family());
  std::vector<std::string> axes;
  for (const std::string& axis : known) {
    if (std::ranges::find(all, axis, &Differing::name) != all.end()) {
      axes.push_back(axis);
    }
  }
  return axes.empty() ? std::vector{known.front()} : axes;
}

Points of_one_kernel(const Points& points, const TextOption& kernel) {
  if (const auto asked = kernel.get()) {
    Points found = only(points, asked->text);
    if (found.empty()) {
      throw UsageError(fmt::format("{} '{}': the sweep has {}", asked->from, asked->text,
                                   fmt::join(subjects_of(points), ", ")));
    }
    return found;
  }
  if (subjects_of(points).size() > 1) {
    throw UsageError(fmt::format("{} is missing: the sweep has {}", kernel.flag(),
                                 fmt::join(subjects_of(points), ", ")));
  }
  return points;
}

Action plot_words(CLI::App& app, const SweepDrawn& of) {
  return drawn<SliceOptions>(app, of, [](const SliceOptions& options, const Sweep& sweep) {
    return words_picture(options.slice(options.points(sweep)));
  });
}

Action plot_phases(CLI::App& app, const SweepDrawn& of) {
  struct Options : SliceOptions {
    Options(CLI::App& command, const SweepDrawn& drawn)
        : SliceOptions(command, drawn), kernel(command, "--kernel", "kernel to draw", "KERNEL") {}
    TextOption kernel;
  };
  return drawn<Options>(app, of, [](const Options& options, const Sweep& sweep) {
    return phases_picture(options.slice(of_one_kernel(options.points(sweep), options.kernel)));
  });
}

Action plot_levels(CLI::App& app, const SweepDrawn& of) {
  struct Options : SweepOptions {
    Options(CLI::App& command, const SweepDrawn& drawn)
        : SweepOptions(command, drawn), kernel(command, "--kernel", "kernel to draw", "KERNEL") {}
    // Throws: UsageError if points differ in more than M and the inner levels.
    [[nodiscard]] Slice slice(const Sweep& sweep) const {
      const std::vector<Slice> found = level_slices(of_one_kernel(points(sweep), kernel), family());
      if (found.empty()) {
        throw UsageError(directory() +
                         " has no such points of several levels: a suite with \"M\": "
                         "\"8K,256K\" makes them");
      }
      if (found.size() > 1) {
        std::string varying;
        for (const auto& [name, values] : differing(points(sweep), family())) {
          if (name != "M" && name != kInner) {
            varying += fmt::format("{}{} ({})", varying.empty() ? "" : ", ", name, some_of(values));
          }
        }
        throw UsageError(
            fmt::format("{} varies in {}: name one with {}", directory(), varying, where_flag()));
      }
      return found.front();
    }
    TextOption kernel;
  };
  return drawn<Options>(app, of, [](const Options& options, const Sweep& sweep) {
    return levels_picture(options.slice(sweep));
  });
}

Action add_pictures(CLI::App& app, const std::vector<PictureKind>& kinds) {
  const auto chosen = std::make_shared<Action>();
  app.require_subcommand(1);
  for (const PictureKind& kind : kinds) {
    CLI::App& command = add_subcommand(app, kind.name, kind.help);
    command.final_callback([chosen, action = kind.make(command)] { *chosen = action; });
  }
  return [chosen] { return (*chosen)(); };
}

}  // namespace redblue
