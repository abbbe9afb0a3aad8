#include "runtime/system/npy.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/system/npy_header.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMagicAndVersion = 8;
constexpr std::string_view kNativeFloat =
    std::endian::native == std::endian::little ? "<f4" : ">f4";

std::string numpy_header(const std::vector<Index>& shape) {
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", kNativeFloat,
                  fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // Spaces and a newline pad the header, so that the data begin at a multiple of 64 bytes.
  const std::size_t before = kMagicAndVersion + 2;
  const std::size_t total = (before + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - before - 1, ' ');
  dict += '\n';
  std::string header(kMagic);
  header +=
      {'\1', '\0', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8U)};
  return header + dict;
}

// Returns the type and whether it is big-endian. bfloat16 of ml_dtypes names no byte order and is
// read as little-endian.
std::optional<std::pair<ElementType, bool>> element_type(std::string_view descr) {
  constexpr std::pair<std::string_view, ElementType> kKinds[] = {
      {"f2", ElementType::float16}, {"f4", ElementType::float32}, {"f8", ElementType::float64}};
  if (descr == "<V2" || descr == "bfloat16") {
    return std::pair(ElementType::bfloat16, false);
  }
  for (const auto& [kind, type] : kKinds) {
    if (descr.size() == 3 && (descr[0] == '<' || descr[0] == '>') && descr.substr(1) == kind) {
      return std::pair(type, descr[0] == '>');
    }
  }
  return std::nullopt;
}

ArrayReader open_npy(const path& path) {
  InputBytes file(path, "a .npy file");
  NpyHeader header = read_npy_header(
      [&](std::span<std::byte> out, std::int64_t offset) { return file.read(out, offset); }, path);
  const auto type = element_type(header.descr);
  if (!type) {
    throw InputError(fmt::format(
        "{}: elements of dtype {:?}; expected float16 (<f2), bfloat16 (<V2), float32 (<f4) or "
        "float64 (<f8)",
        path.string(), header.descr.substr(0, 40)));
  }
  return {std::move(file), path.string(),
          ArrayLayout{.type = type->first,
                      .big_endian = type->second,
                      .fortran = header.fortran,
                      .shape = std::move(header.shape),
                      .offset = header.bytes}};
}

}  // namespace

NpyReader::NpyReader(const std::filesystem::path& path) : ArrayReader(open_npy(path)) {
  const Index bytes = file().size() - layout().offset;
  if (bytes != data_bytes()) {
    throw InputError(fmt::format("{}: {}: {} bytes of data; expected {} for shape {}",
                                 path.string(),
                                 bytes < data_bytes() ? "truncated" : "trailing bytes", bytes,
                                 data_bytes(), shape_text(shape())));
  }
}

// The file, and the words written so far.
struct NpyWriter::Pending {
  explicit Pending(path target) : file(std::move(target)) {}
  WholeFile file;
  Index words = 0;
  Index done = 0;
};

NpyWriter::NpyWriter(std::filesystem::path path, const std::vector<Index>& shape) {
  if (shape.empty() || std::ranges::any_of(shape, [](Index extent) { return extent < 1; })) {
    throw std::invalid_argument(
        fmt::format("{}: an array of {} to write", path.string(), fmt::join(shape, " x ")));
  }
  pending_ = std::make_unique<Pending>(std::move(path));
  const std::string header = numpy_header(shape);
  Words words = 1;
  for (const Index extent : shape) {
    words *= extent;
  }
  const Words bytes = words * Index{sizeof(float)} + static_cast<Index>(header.size());
  pending_->file.reserve(bytes.value());
  pending_->words = words.value();
  pending_->file.append(std::as_bytes(std::span(header)));
}

NpyWriter::NpyWriter(NpyWriter&&) noexcept = default;
NpyWriter& NpyWriter::operator=(NpyWriter&&) noexcept = default;
NpyWriter::~NpyWriter() = default;

void NpyWriter::append(std::span<const float> values) {
  Pending& p = *pending_;
  const auto count = static_cast<Index>(values.size());
  if (count > p.words - p.done) {
    throw std::invalid_argument(fmt::format("{}: {} words more after {} of {}",
                                            p.file.target().string(), count, p.done, p.words));
  }
  if (count == 0) {
    return;
  }
  p.file.append(std::as_bytes(values));
  p.done += count;
  if (p.done == p.words) {
    p.file.finish();
  }
}

void NpyWriter::commit() {
  pending_->file.commit();
}

}  // namespace redblue
