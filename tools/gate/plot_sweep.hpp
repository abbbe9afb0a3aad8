#pragma once
// The plot command: pictures of a sweep. Each kind of picture is a function that adds its options
// to its subcommand and draws.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/sweep/figures.hpp"
#include "tools/cli/command.hpp"
#include "tools/gate/picture.hpp"
#include "tools/gate/swept.hpp"

namespace redblue {

// The program that made the sweep, and the family of its kernels.
struct SweepDrawn {
  SweepTool tool;
  const Family* family;
};

// Options that name a sweep and choose its points.
class SweepOptions {
 public:
  SweepOptions(CLI::App& app, SweepDrawn drawn);

  [[nodiscard]] const PictureOptions& picture() const { return picture_; }
  [[nodiscard]] Sweep sweep() const { return read_sweep(directory_.get(), drawn_.tool); }
  // Returns the chosen points. Throws: UsageError if no point matches.
  [[nodiscard]] Points points(const Sweep& sweep) const;

 protected:
  [[nodiscard]] const std::string& directory() const { return directory_.get(); }
  [[nodiscard]] std::string where_flag() const { return where_.flag(); }
  [[nodiscard]] const Family& family() const { return *drawn_.family; }

 private:
  // Expands sizes: "8K,64K" becomes "8192,65536".
  [[nodiscard]] std::string sizes_in(const std::string& text) const;

  SweepDrawn drawn_;
  Argument directory_;
  TextOption where_;
  PictureOptions picture_;
};

// Options that choose points and the axis of the picture.
class SliceOptions : public SweepOptions {
 public:
  SliceOptions(CLI::App& app, const SweepDrawn& drawn);
  // Returns all points as one slice. Throws: UsageError if they differ in more than the axis.
  [[nodiscard]] Slice slice(const Points& points) const;

 private:
  // Returns the axes over which these points can be drawn: at least one.
  [[nodiscard]] std::vector<std::string> axes_of(const Points& points) const;

  TextOption over_;
};

// Returns an action that draws `picture(options, sweep)`.
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

// Returns the points of the kernel in --kernel, or of the only kernel. Throws: UsageError.
Points of_one_kernel(const Points& points, const TextOption& kernel);

Action plot_words(CLI::App& app, const SweepDrawn& of);
Action plot_phases(CLI::App& app, const SweepDrawn& of);
Action plot_levels(CLI::App& app, const SweepDrawn& of);

// One kind of picture, which is a subcommand of plot.
struct PictureKind {
  const char* name;
  const char* help;
  std::function<Action(CLI::App&)> make;
};
Action add_pictures(CLI::App& app, const std::vector<PictureKind>& kinds);

}  // namespace redblue
