#include "runtime/run/nest_file.hpp"

#include "kernels/nests/nest_kernel.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/read_text.hpp"

namespace redblue {
namespace {

constexpr std::string_view kFile = "file:";
constexpr std::size_t kMostOfNest = std::size_t{1} << 20;

}  // namespace

bool names_nest_file(std::string_view name) {
  return name.starts_with(kFile) || name.ends_with(".nest");
}

std::string load_nest_file(const std::string& name) {
  const std::string path = name.starts_with(kFile) ? name.substr(kFile.size()) : name;
  const std::string text = read_text(path, kMostOfNest);
  try {
    return std::string(load_nest(std::string(kFile) + path, text, input_name(path)).name);
  } catch (const NestError& error) {
    throw InputError(error.what());
  }
}

}  // namespace redblue
