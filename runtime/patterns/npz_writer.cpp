#include "runtime/patterns/npz_writer.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

// Returns the number as bytes, least significant byte first.
std::string number(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned k = 0; k < bytes; ++k) {
    text += static_cast<char>(value >> (8 * k) & 0xff);
  }
  return text;
}

std::string integers(std::span<const Index> values, unsigned bytes) {
  std::string text;
  text.reserve(values.size() * bytes);
  for (const Index value : values) {
    text += number(static_cast<std::uint64_t>(value), bytes);
  }
  return text;
}

// Returns the start of a .npy file, as long as a multiple of 64 bytes.
std::string npy_header_of(std::string_view type, std::string_view shape) {
  constexpr std::size_t kBefore = 10, kStep = 64;
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
  text.resize((kBefore + text.size() + 1 + kStep - 1) / kStep * kStep - kBefore - 1, ' ');
  text += '\n';
  return "\x93NUMPY\x01" + std::string(1, '\0') + number(text.size(), 2) + text;
}

std::uint32_t checksum_with(std::uint32_t before, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

// The file and its members so far. The checksum of the last member is written at the end.
struct NpzWriter::Pending {
  struct Member {
    std::string name;
    std::uint64_t at, size;
    std::uint32_t checksum;

    // Returns the fields that a local header and an entry in the directory share.
    [[nodiscard]] std::string said() const {
      const std::uint64_t version = 20;
      return number(version, 2) + number(0, 2) + number(0, 2) + number(0, 2) + number(0x21, 2) +
             number(checksum, 4) + number(size, 4) + number(size, 4) + number(name.size(), 2);
    }
  };

  Pending(std::filesystem::path target, Index stored) : file(std::move(target)), left(stored) {}

  void begin(const std::string& name, std::uint64_t size, std::uint32_t checksum) {
    members.push_back({name + ".npy", offset, size, checksum});
    const Member& member = members.back();
    put(number(0x04034b50, 4) + member.said() + number(0, 2) + member.name);
  }
  void add(const std::string& name, std::string_view header, std::string_view data) {
    const std::string bytes = std::string(header) + std::string(data);
    begin(name, bytes.size(), checksum_with(0, std::as_bytes(std::span(bytes))));
    put(bytes);
  }
  void put(std::string_view bytes) {
    file.append(bytes);
    offset += bytes.size();
  }
  [[nodiscard]] std::string directory() const {
    std::string entries;
    for (const Member& member : members) {
      entries += number(0x02014b50, 4) + number(20, 2) + member.said() + number(0, 2) +
                 number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) + number(member.at, 4) +
                 member.name;
    }
    return entries + number(0x06054b50, 4) + number(0, 4) + number(members.size(), 2) +
           number(members.size(), 2) + number(entries.size(), 4) + number(offset, 4) + number(0, 2);
  }
  void finish() {
    constexpr std::int64_t kBeforeChecksum = 14;
    const Member& last = members.back();
    const std::string checksum = number(last.checksum, 4);
    file.replace(static_cast<std::int64_t>(last.at) + kBeforeChecksum,
                 std::as_bytes(std::span(checksum)));
    put(directory());
    file.finish();
  }

  WholeFile file;
  std::vector<Member> members;
  std::uint64_t offset = 0;
  Index left;
  bool finished = false;
};

NpzWriter::NpzWriter(std::filesystem::path path, const BlockPattern& pattern) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const auto stored = static_cast<std::uint64_t>(pattern.stored());
  const std::uint64_t bytes = 8 * stored + 4 * static_cast<std::uint64_t>(pattern.rows) + 4096;
  if (bytes > kMost || pattern.cols > std::numeric_limits<std::int32_t>::max()) {
    throw InputError(fmt::format("{}: {} entries of {} columns pass what an .npz without zip64 has",
                                 path.string(), stored, pattern.cols));
  }
  pending_ = std::make_unique<Pending>(std::move(path), pattern.stored());
  Pending& p = *pending_;
  const auto vector = [](std::size_t size) { return fmt::format("({},)", size); };
  const std::vector<Index> shape = {pattern.rows, pattern.cols};
  p.add("format", npy_header_of("|S3", "()"), "csr");
  p.add("shape", npy_header_of("<i8", "(2,)"), integers(shape, 8));
  p.add("indptr", npy_header_of("<i4", vector(pattern.offsets.size())),
        integers(pattern.offsets, 4));
  p.add("indices", npy_header_of("<i4", vector(stored)), integers(pattern.columns, 4));
  const std::string header = npy_header_of("<f4", vector(stored));
  p.begin("data", header.size() + 4 * stored, checksum_with(0, std::as_bytes(std::span(header))));
  p.put(header);
  p.file.reserve(static_cast<std::int64_t>(p.offset + 4 * stored + p.directory().size()));
}

NpzWriter::NpzWriter(NpzWriter&&) noexcept = default;
NpzWriter& NpzWriter::operator=(NpzWriter&&) noexcept = default;
NpzWriter::~NpzWriter() = default;

void NpzWriter::append(std::span<const float> values) {
  Pending& p = *pending_;
  const auto some = values.first(std::min(values.size(), static_cast<std::size_t>(p.left)));
  const auto bytes = std::as_bytes(some);
  p.file.append(bytes);
  p.offset += bytes.size();
  p.members.back().checksum = checksum_with(p.members.back().checksum, bytes);
  p.left -= std::ssize(some);
  if (p.left == 0 && !std::exchange(p.finished, true)) {
    p.finish();
  }
}

void NpzWriter::commit() {
  pending_->file.commit();
}

}  // namespace redblue
