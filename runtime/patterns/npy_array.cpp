#include "runtime/patterns/npy_array.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/system/input_error.hpp"
#include "runtime/system/npy_header.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// Returns the bytes of an element; 0 if the dtype states no bytes.
std::size_t bytes_of(std::string_view descr) {
  std::size_t bytes = 0;
  if (descr.size() > 2) {
    const char* const end = descr.data() + descr.size();
    if (std::from_chars(descr.data() + 2, end, bytes).ptr != end) {
      return 0;
    }
  }
  constexpr std::size_t kBytesOfALetter = 4;
  return std::min<std::size_t>(bytes, 1 << 20) *
         (descr.size() > 1 && descr[1] == 'U' ? kBytesOfALetter : 1);
}

}  // namespace

std::string read_whole(const std::filesystem::path& file) {
  const auto status = std::filesystem::status(file);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw InputError(fmt::format("{}: not a regular file", file.string()));
  }
  // "-" alone would be standard input.
  return read_text(file == "-" ? "./-" : file.string(), kNoLimit);
}

std::string in_words(const std::vector<Index>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

NpyArray::NpyArray(std::string content, std::filesystem::path name)
    : content_(std::move(content)), name_(std::move(name)) {
  const NpyHeader header = read_npy_header(
      [this](std::span<std::byte> out, std::int64_t offset) {
        const std::size_t from = std::min(static_cast<std::size_t>(offset), content_.size());
        const std::size_t count = std::min(out.size(), content_.size() - from);
        std::memcpy(out.data(), content_.data() + from, count);
        return count;
      },
      name_);
  data_offset_ = static_cast<std::size_t>(header.bytes);
  shape_ = header.shape;
  descr_ = header.descr;
  fortran_ = header.fortran;
  item_bytes_ = bytes_of(descr_);
  Words expected = static_cast<Index>(item_bytes_);
  for (const Index extent : shape_) {
    expected *= extent;
  }
  if (item_bytes_ == 0) {
    refuse(fmt::format("elements of dtype {:?}; expected numbers", shortened(descr_)));
  }
  if (expected.overflowed() || data().size() != static_cast<std::size_t>(expected.value())) {
    refuse(fmt::format("{} bytes of data; expected {} for shape ({})", data().size(),
                       expected.overflowed() ? "2^63 or more" : std::to_string(expected.value()),
                       fmt::join(shape_, ", ")));
  }
}

std::vector<Index> NpyArray::integers() const {
  const bool is_signed = descr_[1] == 'i';
  if ((!is_signed && descr_[1] != 'u') || item_bytes_ > sizeof(Index)) {
    refuse(fmt::format("elements of dtype {:?}; expected integers", shortened(descr_)));
  }
  if (shape_.size() != 1) {
    refuse(fmt::format("{} dimensions; expected 1", shape_.size()));
  }
  std::vector<Index> numbers;
  numbers.reserve(static_cast<std::size_t>(shape_.front()));
  const std::uint64_t sign = std::uint64_t{1} << (8 * item_bytes_ - 1);
  each_element([&](std::uint64_t bits) {
    if (!is_signed && bits > std::uint64_t{INT64_MAX}) {
      refuse(fmt::format("{} is there; expected numbers below 2^63", bits));
    }
    numbers.push_back(static_cast<Index>(is_signed ? (bits ^ sign) - sign : bits));
  });
  return numbers;
}

std::vector<double> NpyArray::numbers() const {
  if (descr_[1] != 'f' || (item_bytes_ != sizeof(float) && item_bytes_ != sizeof(double))) {
    refuse(fmt::format("elements of dtype {:?}; expected float32 or float64", shortened(descr_)));
  }
  if (fortran_ && shape_.size() > 1) {
    refuse("Fortran order; expected C order");
  }
  std::vector<double> numbers;
  each_element([&](std::uint64_t bits) {
    numbers.push_back(item_bytes_ == sizeof(float)
                          ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                          : std::bit_cast<double>(bits));
  });
  return numbers;
}

template <class Visit>
void NpyArray::each_element(const Visit& visit) const {
  const bool big = descr_[0] == '>';
  for (std::string_view rest = data(); !rest.empty(); rest.remove_prefix(item_bytes_)) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < item_bytes_; ++k) {
      const std::size_t place = big ? item_bytes_ - 1 - k : k;
      bits |= std::uint64_t{static_cast<unsigned char>(rest[k])} << (8 * place);
    }
    visit(bits);
  }
}

std::vector<bool> NpyArray::marks() const {
  if (descr_ != "|b1" && descr_ != "|u1") {
    refuse(fmt::format("elements of dtype {:?}; expected bool or uint8", shortened(descr_)));
  }
  if (shape_.size() != 2) {
    refuse(fmt::format("{} dimensions; expected 2", shape_.size()));
  }
  const auto rows = static_cast<std::size_t>(shape_.front());
  const auto cols = static_cast<std::size_t>(shape_.back());
  std::vector<bool> marked(rows * cols);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t col = 0; col < cols; ++col) {
      marked[row * cols + col] = data()[fortran_ ? col * rows + row : row * cols + col] != 0;
    }
  }
  return marked;
}

std::string NpyArray::text() const {
  const bool wide = descr_[1] == 'U';
  if ((!wide && descr_[1] != 'S') || !shape_.empty()) {
    refuse("no text; expected one");
  }
  std::string letters;
  for (std::size_t k = 0; k < data().size(); ++k) {
    if (data()[k] != '\0') {  // the other bytes of a wide letter are 0
      letters += data()[k];
    }
  }
  return letters;
}

void NpyArray::refuse(const std::string& why) const {
  throw InputError(fmt::format("{}: {}", name_.string(), why));
}

}  // namespace redblue
