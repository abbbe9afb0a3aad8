#pragma once
// Parses the name of a tensor in a file: FILE.safetensors:NAME, or FILE.safetensors for a file with
// a single tensor. NAME may contain any character, also a colon or a slash.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace redblue {

struct TensorPath {
  std::filesystem::path file;
  std::optional<std::string> tensor;
};

// Returns nullopt for the path of any other file.
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
