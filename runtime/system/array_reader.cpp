#include "runtime/system/array_reader.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/system/float16.hpp"
#include "runtime/system/system_call.hpp"

namespace redblue {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

std::uint16_t byte_swapped(std::uint16_t bits) {
  return __builtin_bswap16(bits);
}
std::uint32_t byte_swapped(std::uint32_t bits) {
  return __builtin_bswap32(bits);
}
std::uint64_t byte_swapped(std::uint64_t bits) {
  return __builtin_bswap64(bits);
}

std::string place_of(Index row, Index col, const std::vector<Index>& shape) {
  return shape.size() == 3 ? fmt::format("head {}, row {}, column {}", row, col / shape.back(),
                                         col % shape.back())
                           : fmt::format("row {}, column {}", row, col);
}

// Returns the number of words that share a first coordinate.
Words row_words(const std::vector<Index>& shape) {
  Words words = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    words *= shape[i];
  }
  return words;
}

// False for NaN too, because every comparison with NaN is false.
template <class Number>
bool is_number(Number value, bool accept_minus_infinity) {
  return std::abs(value) <= std::numeric_limits<float>::max() ||
         (accept_minus_infinity && value == -std::numeric_limits<Number>::infinity());
}

template <class Number>
[[noreturn]] void refuse_number(const std::string& name, Number value, const std::string& place) {
  throw InputError(
      fmt::format("{}: {} at {}; expected finite float32 numbers", name, value, place));
}

}  // namespace

InputBytes::InputBytes(std::filesystem::path path, std::string_view expected)
    : path_(std::move(path)),
      // O_NONBLOCK: opening a pipe must not wait for its other end. Pipes are refused just below.
      file_(retry([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })) {
  struct stat status {};
  if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) {
    fail(errno, "open", path_);
  }
  if (!S_ISREG(status.st_mode)) {
    throw InputError(fmt::format("{}: not a regular file; expected {}", path_.string(), expected));
  }
  size_ = status.st_size;
}

std::size_t InputBytes::read(std::span<std::byte> out, std::int64_t offset) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = retry([&] {
      return ::pread(file_.get(), out.data() + done, out.size() - done,
                     offset + static_cast<std::int64_t>(done));
    });
    if (got < 0) {
      fail(errno, "read", path_);
    }
    if (got == 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::string_view to_string(ElementType type) {
  switch (type) {
    case ElementType::float16:
      return "float16";
    case ElementType::bfloat16:
      return "bfloat16";
    case ElementType::float32:
      return "float32";
    case ElementType::float64:
      break;
  }
  return "float64";
}

Index element_bytes(ElementType type) {
  switch (type) {
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::float32:
      return 4;
    case ElementType::float64:
      break;
  }
  return 8;
}

std::string shape_text(const std::vector<Index>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

void check_shape(const std::vector<Index>& shape, const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("{}: {}", name, why));
  };
  if (shape.empty() || shape.size() > 3) {
    refuse(fmt::format("{} dimensions; expected 1, 2 or 3", shape.size()));
  }
  if (std::ranges::find(shape, 0) != shape.end()) {
    refuse(fmt::format("shape {} is empty; expected one element at least", shape_text(shape)));
  }
}

ArrayReader::ArrayReader(InputBytes file, std::string name, ArrayLayout layout)
    : file_(std::move(file)), name_(std::move(name)), layout_(std::move(layout)) {
  check_shape(shape(), name_);
  const Words row = row_words(shape());
  if ((row * rows() * element_bytes(layout_.type)).overflowed()) {
    throw InputError(
        fmt::format("{}: shape {} passes 63 bits of bytes", name_, shape_text(shape())));
  }
  cols_ = row.value();
}

void ArrayReader::read_rows(Range range, std::span<float> out) const {
  const auto [begin, end] = range;
  if (begin < 0 || begin > end || end > rows() ||
      out.size() != static_cast<std::size_t>((end - begin) * cols_)) {
    throw std::invalid_argument(fmt::format("{}: rows [{}, {}) of {} x {} into {} words", name_,
                                            begin, end, rows(), cols_, out.size()));
  }
  switch (layout_.type) {
    case ElementType::float16:
      return read_rows_as<std::uint16_t>(begin, out, from_float16);
    case ElementType::bfloat16:
      return read_rows_as<std::uint16_t>(begin, out, from_bfloat16);
    case ElementType::float32:
      return read_rows_as<std::uint32_t>(begin, out, std::bit_cast<float, std::uint32_t>);
    case ElementType::float64:
      return read_rows_as<std::uint64_t>(begin, out, std::bit_cast<double, std::uint64_t>);
  }
}

template <typename Bits, class Value>
void ArrayReader::read_rows_as(Index begin, std::span<float> out, const Value& value_of) const {
  // e counts elements in the file's order. In Fortran order the first coordinate runs fastest. In
  // three dimensions the second coordinate then runs faster than the third; a row of `out` has the
  // opposite order.
  const auto size = static_cast<Index>(out.size());
  const Index count = size / cols_;
  const std::vector<Index>& all = layout_.shape;
  const bool fortran = layout_.fortran;
  const bool swapped = layout_.big_endian != (std::endian::native == std::endian::big);
  const Index inner = all.back();
  const Index middle = all.size() == 3 ? all[1] : 1;
  const auto in_file = [&](Index e) {
    return fortran ? e / count * rows() + begin + e % count : begin * cols_ + e;
  };
  const auto in_out = [&](Index e) {
    const Index column = e / count;
    return fortran ? column % middle * inner + column / middle + e % count * cols_ : e;
  };
  // The number of elements that are adjacent in the file: all, or one column if rows are left out.
  const Index run = fortran && count < rows() ? count : size;
  std::vector<Bits> buffer(std::min(static_cast<std::size_t>(run), kBufferBytes / sizeof(Bits)));

  for (Index e = 0; e < size;) {
    const auto next = std::min(buffer.size(), static_cast<std::size_t>(run - e % run));
    const auto bytes = std::as_writable_bytes(std::span(buffer).first(next));
    const Index offset = layout_.offset + in_file(e) * static_cast<Index>(sizeof(Bits));
    if (file_.read(bytes, offset) < bytes.size()) {
      throw InputError(fmt::format("{}: truncated while it was read; expected bytes up to {}",
                                   name_, offset + static_cast<Index>(bytes.size())));
    }
    for (const Bits bits : std::span(buffer).first(next)) {
      const auto value = value_of(swapped ? byte_swapped(bits) : bits);
      const Index to = in_out(e);
      // The check precedes the cast, because a cast of a value beyond float32 is undefined.
      if (!is_number(value, minus_infinity_)) {
        refuse_number(name_, value, place_of(begin + to / cols_, to % cols_, all));
      }
      out[static_cast<std::size_t>(to)] = static_cast<float>(value);
      ++e;
    }
  }
}

void check_numbers(std::span<const float> words, Index first, const std::vector<Index>& shape,
                   const std::string& name, bool accept_minus_infinity) {
  const auto bad = std::ranges::find_if_not(
      words, [&](float value) { return is_number(value, accept_minus_infinity); });
  if (bad != words.end()) {
    const Index at = bad - words.begin(), cols = row_words(shape).value();
    refuse_number(name, *bad, place_of(first + at / cols, at % cols, shape));
  }
}

}  // namespace redblue
