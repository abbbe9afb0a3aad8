#pragma once
// How a person names a tensor of a file of tensors: FILE.safetensors:NAME, or the file alone, which
// then has one. The name may hold anything, another colon or a slash too.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace redblue {

struct TensorPath {
  std::filesystem::path file;
  std::optional<std::string> tensor;
};

// Nothing for the path of any other file.
inline std::optional<TensorPath> tensor_path(const std::filesystem::path& path) {
  constexpr std::string_view kEnd = ".safetensors";
  const std::string& text = path.native();
  if (const auto at = text.find(std::string(kEnd) + ':'); at != std::string::npos) {
    const std::size_t end = at + kEnd.size();
    return TensorPath{text.substr(0, end), text.substr(end + 1)};
  }
  return text.ends_with(kEnd) ? std::optional(TensorPath{path, std::nullopt}) : std::nullopt;
}

}  // namespace redblue
