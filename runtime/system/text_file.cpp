#include "runtime/system/text_file.hpp"

#include <span>
#include <utility>

namespace redblue {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

TextFile::TextFile(std::filesystem::path target) : file_(std::move(target)) {}

void TextFile::replace(std::int64_t offset, std::string_view text) {
  flush();
  file_.replace(offset, bytes_of(text));
}

void TextFile::finish() {
  flush();
  file_.finish();
}

void TextFile::flush() {
  file_.append(bytes_of(chunk_));
  chunk_.clear();
}

}  // namespace redblue
