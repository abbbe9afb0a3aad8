#pragma once
// plot: pictures of a sweep. A kind of picture is one function, which adds its options to its
// subcommand and draws.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/sweep/figures.hpp"
#include "tools/cli/command.hpp"
#include "tools/gate/picture.hpp"
#include "tools/gate/swept.hpp"

namespace redblue {

// What the pictures are of.
struct SweepDrawn {
  SweepTool tool;
  const Family* family;
};

// A sweep, and the choice of its points.
class SweepOptions {
 public:
  SweepOptions(CLI::App& app, SweepDrawn drawn);

  [[nodiscard]] const PictureOptions& picture() const { return picture_; }
  [[nodiscard]] Sweep sweep() const { return read_sweep(directory_.get(), drawn_.tool); }
  // Throws: UsageError if no point matches.
  [[nodiscard]] Points points(const Sweep& sweep) const;

 protected:
  [[nodiscard]] const std::string& directory() const { return directory_.get(); }
  [[nodiscard]] std::string where_flag() const { return where_.flag(); }
  [[nodiscard]] const Family& family() const { return *drawn_.family; }

 private:
  // "8K,64K", of levels, is 8192,65536.
  [[nodiscard]] std::string sizes_in(const std::string& text) const;

  SweepDrawn drawn_;
  Argument directory_;
  TextOption where_;
  PictureOptions picture_;
};

// The choice of points and of the axis to draw them over.
class SliceOptions : public SweepOptions {
 public:
  SliceOptions(CLI::App& app, const SweepDrawn& drawn);
  // All of these points. Throws: UsageError if they differ in more than the axis.
  [[nodiscard]] Slice slice(const Points& points) const;

 private:
  // The axes over which points that differ so can be drawn: at least one.
  [[nodiscard]] std::vector<std::string> axes_of(const Points& points) const;

  TextOption over_;
};

// Draws the picture that `picture` makes of the options and the sweep.
template <class Options, class Make>
Action drawn(CLI::App& app, const SweepDrawn& of, Make picture) {
  const auto options = std::make_shared<Options>(app, of);
  return [options, picture, &app] {
    const Sweep sweep = options->sweep();
    PictureFile file(options->picture());
    file.draw(picture(*options, sweep), app);
    return 0;
  };
}

// The subject of --kernel, or the only one. Throws: UsageError.
Points of_one_kernel(const Points& points, const TextOption& kernel);

Action plot_words(CLI::App& app, const SweepDrawn& of);
Action plot_phases(CLI::App& app, const SweepDrawn& of);
Action plot_levels(CLI::App& app, const SweepDrawn& of);

// The subcommands of plot, of which one is required.
struct PictureKind {
  const char* name;
  const char* help;
  std::function<Action(CLI::App&)> make;
};
Action add_pictures(CLI::App& app, const std::vector<PictureKind>& kinds);

}  // namespace redblue
