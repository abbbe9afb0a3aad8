#include "runtime/run/nest_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nearest.hpp"
#include "kernels/nests/nest_kernel.hpp"
#include "kernels/registry.hpp"
#include "runtime/run/options.hpp"
#include "runtime/system/read_text.hpp"

namespace redblue {
namespace {

constexpr std::string_view kFile = "file:", kNest = "nest:", kEnding = ".nest";
constexpr std::string_view kLoaded = "loaded:";  // a nest that the program loaded, by its name
constexpr std::size_t kMostOfNest = std::size_t{1} << 20;

std::string load(const std::string& name, std::string_view text, std::string_view file) {
  try {
    return std::string(load_nest(name, text, file).name);
  } catch (const NestError& error) {
    throw UsageError(error.what());
  }
}

std::string load_known(const std::string& name) {
  std::vector<std::string_view> names;
  for (const KnownFile& known : known_nests()) {
    names.push_back(std::string_view(known.name)
                        .substr(0, std::string_view(known.name).size() - kEnding.size()));
    if (names.back() == name.substr(kNest.size())) {
      return load(name, known.text, known.name);
    }
  }
  throw UsageError(
      fmt::format("no schedule is called '{}': did you mean {}{}? (redblue list --nests)", name,
                  kNest, fmt::join(nearest(name.substr(kNest.size()), names), " or nest:")));
}

}  // namespace

bool names_nest(std::string_view name) {
  return name.starts_with(kFile) || name.starts_with(kNest) || name.starts_with(kLoaded) ||
         name.ends_with(kEnding);
}

std::string named_nest(const std::string& text) {
  return text.starts_with(kNest) || text.starts_with(kFile) || text.starts_with(kLoaded)
             ? text
             : std::string(kFile) + text;
}

std::string nest_in(const std::filesystem::path& directory, const std::string& text) {
  const std::string named = named_nest(text);
  return !named.starts_with(kFile) || named == "file:-"
             ? named
             : std::string(kFile) + (directory / named.substr(kFile.size())).string();
}

std::string load_nest_named(const std::string& name) {
  if (name.starts_with(kLoaded)) {
    const std::string its = name.substr(kLoaded.size());
    if (find_loaded(its) == nullptr) {
      throw UsageError(fmt::format("no nest was loaded as '{}': give its file", its));
    }
    return its;
  }
  if (name.starts_with(kNest)) {
    return load_known(name);
  }
  const std::string path = name.starts_with(kFile) ? name.substr(kFile.size()) : name;
  return load(std::string(kFile) + path, read_text(path, kMostOfNest), input_name(path));
}

}  // namespace redblue
