#include "runtime/system/npy.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/system/npy_header.hpp"
#include "runtime/system/system_call.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMagicAndVersion = 8;
constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr std::string_view kNativeFloat =
    std::endian::native == std::endian::little ? "<f4" : ">f4";

[[noreturn]] void refuse(const path& file, std::string_view why) {
  throw InputError(fmt::format("{}: {}", file.string(), why));
}

// Fills `out` from `offset` on, and stops short only at the end of the file. Returns the bytes
// read.
std::size_t read_at(int fd, std::span<std::byte> out, std::int64_t offset, const path& file) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = retry([&] {
      return ::pread(fd, out.data() + done, out.size() - done,
                     offset + static_cast<std::int64_t>(done));
    });
    if (got < 0) {
      fail(errno, "read", file);
    }
    if (got == 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::uint32_t byte_swapped(std::uint32_t bits) {
  return __builtin_bswap32(bits);
}
std::uint64_t byte_swapped(std::uint64_t bits) {
  return __builtin_bswap64(bits);
}

std::string numpy_header(const std::vector<Index>& shape) {
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", kNativeFloat,
                  fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // Spaces and a newline bring the data to a multiple of 64 bytes.
  const std::size_t before = kMagicAndVersion + 2;
  const std::size_t total = (before + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - before - 1, ' ');
  dict += '\n';
  std::string header(kMagic);
  header +=
      {'\1', '\0', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8U)};
  return header + dict;
}

// The words of a row: all that share its first coordinate.
Words row_words(const std::vector<Index>& shape) {
  Words words = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    words *= shape[i];
  }
  return words;
}

std::string place_of(Index row, Index col, const std::vector<Index>& shape) {
  return shape.size() == 3 ? fmt::format("head {}, row {}, column {}", row, col / shape.back(),
                                         col % shape.back())
                           : fmt::format("row {}, column {}", row, col);
}

// The negation catches NaN too.
template <class Number>
bool is_number(Number value, bool accept_minus_infinity) {
  return std::abs(value) <= std::numeric_limits<float>::max() ||
         (accept_minus_infinity && value == -std::numeric_limits<Number>::infinity());
}

template <class Number>
[[noreturn]] void refuse_number(const path& file, Number value, const std::string& place) {
  refuse(file, fmt::format("{} at {}; expected finite float32 numbers", value, place));
}

}  // namespace

NpyReader::NpyReader(std::filesystem::path path)
    : path_(std::move(path)),
      // Opening must not wait for the other end of a pipe, which is refused just below.
      file_(retry([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })) {
  struct stat status {};
  if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) {
    fail(errno, "open", path_);
  }
  if (!S_ISREG(status.st_mode)) {
    refuse(path_, "not a regular file; expected a .npy file");
  }

  const NpyHeader header =
      read_npy_header([&](std::span<std::byte> out,
                          std::int64_t offset) { return read_at(file_.get(), out, offset, path_); },
                      path_);
  if (header.descr != "<f4" && header.descr != ">f4" && header.descr != "<f8" &&
      header.descr != ">f8") {
    refuse(path_, fmt::format("elements of dtype {:?}; expected float32 (<f4) or float64 (<f8)",
                              header.descr.substr(0, 40)));
  }
  swapped_ = header.descr[0] != kNativeFloat[0];
  item_bytes_ = header.descr[2] - '0';
  fortran_ = header.fortran;
  data_offset_ = header.bytes;

  shape_ = header.shape;
  if (shape_.empty() || shape_.size() > 3) {
    refuse(path_, fmt::format("{} dimensions; expected 1, 2 or 3", shape_.size()));
  }
  const std::string shape = fmt::format("shape ({})", fmt::join(shape_, ", "));
  if (std::ranges::find(shape_, 0) != shape_.end()) {
    refuse(path_, shape + " is empty; expected one element at least");
  }
  const Words expected = row_words(shape_) * shape_.front() * item_bytes_;
  if (expected.overflowed()) {
    refuse(path_, shape + " passes 63 bits of bytes");
  }
  cols_ = row_words(shape_).value();
  const Index bytes = status.st_size - data_offset_;
  if (bytes != expected.value()) {
    refuse(path_, fmt::format("{}: {} bytes of data; expected {} for {}",
                              bytes < expected.value() ? "truncated" : "trailing bytes", bytes,
                              expected.value(), shape));
  }
}

void NpyReader::read_rows(Range range, std::span<float> out) const {
  const auto [begin, end] = range;
  if (begin < 0 || begin > end || end > rows() ||
      out.size() != static_cast<std::size_t>((end - begin) * cols_)) {
    throw std::invalid_argument(fmt::format("{}: rows [{}, {}) of {} x {} into {} words",
                                            path_.string(), begin, end, rows(), cols_, out.size()));
  }
  if (is_float32()) {
    read_rows_as<std::uint32_t>(begin, out);
  } else {
    read_rows_as<std::uint64_t>(begin, out);
  }
}

template <typename Bits>
void NpyReader::read_rows_as(Index begin, std::span<float> out) const {
  using Number = std::conditional_t<sizeof(Bits) == sizeof(float), float, double>;
  // e counts elements in the file's order. In Fortran order the rows run fastest. Of three
  // dimensions the second then runs faster than the third, which in a row of `out` is the other way
  // round.
  const auto size = static_cast<Index>(out.size());
  const Index count = size / cols_;
  const Index inner = shape_.back();
  const Index middle = shape_.size() == 3 ? shape_[1] : 1;
  const auto in_file = [&](Index e) {
    return fortran_ ? e / count * rows() + begin + e % count : begin * cols_ + e;
  };
  const auto in_out = [&](Index e) {
    const Index column = e / count;
    return fortran_ ? column % middle * inner + column / middle + e % count * cols_ : e;
  };
  // Elements that are adjacent in the file: all, or those of a column where rows are left out.
  const Index run = fortran_ && count < rows() ? count : size;
  std::vector<Bits> buffer(std::min(static_cast<std::size_t>(run), kBufferBytes / sizeof(Bits)));

  for (Index e = 0; e < size;) {
    const auto next = std::min(buffer.size(), static_cast<std::size_t>(run - e % run));
    const auto bytes = std::as_writable_bytes(std::span(buffer).first(next));
    const Index offset = data_offset_ + in_file(e) * static_cast<Index>(sizeof(Bits));
    if (read_at(file_.get(), bytes, offset, path_) < bytes.size()) {
      refuse(path_, fmt::format("truncated while it was read; expected bytes up to {}",
                                offset + static_cast<Index>(bytes.size())));
    }
    for (const Bits bits : std::span(buffer).first(next)) {
      const auto value = std::bit_cast<Number>(swapped_ ? byte_swapped(bits) : bits);
      const Index to = in_out(e);
      // The check precedes the cast, which is undefined beyond the range.
      if (!is_number(value, minus_infinity_)) {
        refuse_number(path_, value, place_of(begin + to / cols_, to % cols_, shape_));
      }
      out[static_cast<std::size_t>(to)] = static_cast<float>(value);
      ++e;
    }
  }
}

void check_numbers(std::span<const float> words, const std::vector<Index>& shape, const path& name,
                   bool accept_minus_infinity) {
  const auto bad = std::ranges::find_if_not(
      words, [&](float value) { return is_number(value, accept_minus_infinity); });
  if (bad != words.end()) {
    const Index at = bad - words.begin(), cols = row_words(shape).value();
    refuse_number(name, *bad, place_of(at / cols, at % cols, shape));
  }
}

// The file and its progress.
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
  const Words words = row_words(shape) * shape.front();
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
