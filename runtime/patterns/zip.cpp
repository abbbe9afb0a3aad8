#include "runtime/patterns/zip.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

constexpr std::uint32_t kMemberHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kPlaceOfEnd64 = 0x07064b50;
constexpr std::uint64_t kEndBytes = 22;
// These values mean that a zip64 record has the field.
constexpr std::uint64_t kElsewhere16 = 0xffff, kElsewhere32 = 0xffffffff;

// Returns the inflated bytes of raw deflate data. Empty if they are not exactly `size` bytes.
std::string inflated(std::string_view packed, std::uint64_t size) {
  constexpr std::uint64_t kMostRatio = 1032;
  if (size / kMostRatio > packed.size()) {
    return {};
  }
  std::string bytes(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    throw std::bad_alloc();
  }
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  std::size_t in = 0, out = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const auto give = static_cast<uInt>(std::min(packed.size() - in, kMost));
    const auto room = static_cast<uInt>(std::min(bytes.size() - out, kMost));
    // zlib only reads this data, but its type is not const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
    stream.avail_in = give;
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + out);
    stream.avail_out = room;
    state = inflate(&stream, Z_NO_FLUSH);  // Z_BUF_ERROR if no data is left
    in += give - stream.avail_in;
    out += room - stream.avail_out;
  }
  inflateEnd(&stream);
  return state == Z_STREAM_END && in == packed.size() && out == size ? bytes : std::string();
}

}  // namespace

ZipFile::ZipFile(std::string content, std::filesystem::path name)
    : content_(std::move(content)), name_(std::move(name)) {
  const Directory all = directory();
  std::uint64_t at = all.begin;
  for (std::uint64_t k = 0; k < all.count; ++k) {
    at = add_member(at);
  }
  if (at != all.begin + all.size) {
    refuse("a damaged .zip directory");
  }
}

std::string ZipFile::member(std::string_view name) const {
  constexpr std::uint64_t kBytes = 30;
  const auto found = members_.find(name);
  if (found == members_.end()) {
    refuse(fmt::format("no member {}", name));
  }
  const Member& of = found->second;
  if (!has(of.offset, kMemberHeader)) {
    refuse(fmt::format("member {} is not where the .zip directory has it", name));
  }
  const std::uint64_t letters = number(of.offset + 26, 2);
  const std::uint64_t begin = of.offset + kBytes + letters + number(of.offset + 28, 2);
  if (begin > content_.size() || of.packed > content_.size() - begin ||
      std::string_view(content_).substr(of.offset + kBytes, letters) != name) {
    refuse(fmt::format("member {} is not where the .zip directory has it", name));
  }
  if ((of.flags & 1U) != 0) {
    refuse(fmt::format("member {} is encrypted", name));
  }
  const std::string_view packed = std::string_view(content_).substr(begin, of.packed);
  std::string bytes;
  if (of.method == Z_DEFLATED) {
    bytes = inflated(packed, of.size);
  } else if (of.method == 0) {
    bytes = packed;
  } else {
    refuse(fmt::format("member {} is compressed by method {}; expected stored or deflated", name,
                       of.method));
  }
  const auto checksum =
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size()));
  if (bytes.size() != of.size || checksum != of.checksum) {
    refuse(fmt::format("member {} is damaged: its checksum is another", name));
  }
  return bytes;
}

std::uint64_t ZipFile::number(std::uint64_t at, unsigned bytes) const {
  if (at > content_.size() || bytes > content_.size() - at) {
    refuse("a truncated .zip file");
  }
  std::uint64_t value = 0;
  for (unsigned k = 0; k < bytes; ++k) {
    value |= std::uint64_t{static_cast<unsigned char>(content_[at + k])} << (8 * k);
  }
  return value;
}

bool ZipFile::has(std::uint64_t at, std::uint32_t signature) const {
  return at <= content_.size() && content_.size() - at >= 4 && number(at, 4) == signature;
}

ZipFile::Directory ZipFile::directory() const {
  const std::uint64_t size = content_.size();
  std::uint64_t end = size;  // start of the last record, which may have a comment
  for (std::uint64_t back = kEndBytes; back <= std::min(size, kEndBytes + 0xffff); ++back) {
    if (has(size - back, kEnd) && number(size - back + 20, 2) == back - kEndBytes) {
      end = size - back;
      break;
    }
  }
  if (end == size) {
    refuse("no .zip file, or a truncated one; expected an .npz of scipy.sparse.save_npz");
  }
  Directory all{number(end + 16, 4), number(end + 12, 4), number(end + 10, 2)};
  if (all.begin == kElsewhere32 || all.size == kElsewhere32 || all.count == kElsewhere16) {
    if (end < 20 || !has(end - 20, kPlaceOfEnd64) || !has(number(end - 12, 8), kEnd64)) {
      refuse("a damaged .zip directory");
    }
    const std::uint64_t end64 = number(end - 12, 8);
    all = {number(end64 + 48, 8), number(end64 + 40, 8), number(end64 + 32, 8)};
    end = end64;
  }
  if (all.begin > end || all.size != end - all.begin) {
    refuse("a damaged .zip directory");
  }
  return all;
}

// Adds the member at `at`. Returns the place of the next member.
std::uint64_t ZipFile::add_member(std::uint64_t at) {
  constexpr std::uint64_t kBytes = 46;
  if (!has(at, kDirectoryEntry)) {
    refuse("a damaged .zip directory");
  }
  Member member{.offset = number(at + 42, 4),
                .packed = number(at + 20, 4),
                .size = number(at + 24, 4),
                .checksum = static_cast<std::uint32_t>(number(at + 16, 4)),
                .method = static_cast<unsigned>(number(at + 10, 2)),
                .flags = static_cast<unsigned>(number(at + 8, 2))};
  const std::uint64_t letters = number(at + 28, 2);
  const std::uint64_t more = at + kBytes + letters;
  const std::uint64_t end_of_more = more + number(at + 30, 2);
  const std::uint64_t end = end_of_more + number(at + 32, 2);
  if (end > content_.size()) {
    refuse("a truncated .zip directory");
  }
  for (std::uint64_t field = more; field + 4 <= end_of_more;) {
    const std::uint64_t first = field + 4;
    const std::uint64_t last = first + number(field + 2, 2);
    if (number(field, 2) == 1) {  // zip64: values that do not fit 32 bits
      std::uint64_t from = first;
      for (std::uint64_t* value : {&member.size, &member.packed, &member.offset}) {
        if (*value == kElsewhere32 && from + 8 <= std::min(last, end_of_more)) {
          *value = number(from, 8);
          from += 8;
        }
      }
    }
    field = last;
  }
  const std::string name = content_.substr(at + kBytes, letters);
  if (!members_.emplace(name, member).second) {
    refuse(fmt::format("member {} is there twice", shortened(name)));
  }
  return end;
}

void ZipFile::refuse(const std::string& why) const {
  throw InputError(fmt::format("{}: {}", name_.string(), why));
}

}  // namespace redblue
