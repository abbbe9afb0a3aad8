#include "runtime/system/npy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kBeforeLength = 8;       // bytes of the magic and the version
constexpr std::size_t kLongestHeader = 65535;  // the limit of format 1.0

[[noreturn]] void refuse_header(const path& file, std::string_view why) {
  throw InputError(fmt::format("{}: {}", file.string(), why));
}

// Parses the Python literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), } in one
// pass. Keys come in any order, each once. Spaces may be anywhere. Quotes may be single or double.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const path& file) : text_(text), file_(file) {}

  NpyHeader parse() {
    std::optional<std::string_view> descr;
    std::optional<bool> fortran;
    std::optional<std::vector<Index>> shape;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = dtype();
      } else if (key == "fortran_order" && !fortran) {
        fortran = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        malformed("each of 'descr', 'fortran_order' and 'shape' once");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) {
      malformed("nothing after '}'");
    }
    if (!descr || !fortran || !shape) {
      malformed("all of 'descr', 'fortran_order' and 'shape'");
    }
    return {0, std::string(*descr), *fortran, std::move(*shape)};
  }

 private:
  [[noreturn]] void malformed(std::string_view expected) const {
    refuse_header(file_,
                  fmt::format("malformed header at its byte {}; expected {}", at_, expected));
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  // accept() and expect() skip spaces first.
  bool accept(char c) {
    skip_space();
    const bool found = at_ < text_.size() && text_[at_] == c;
    at_ += found ? 1 : 0;
    return found;
  }
  bool accept(std::string_view word) {
    skip_space();
    const bool found = text_.substr(at_).starts_with(word);
    at_ += found ? word.size() : 0;
    return found;
  }
  void expect(char c) {
    if (!accept(c)) {
      malformed(fmt::format("'{}'", c));
    }
  }

  std::string_view quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') {
      expect(quote);
    }
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) {
      malformed("a closing quote");
    }
    const std::string_view inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  std::string_view dtype() {
    if (accept('[')) {
      refuse_header(file_, "a structured dtype; expected numbers of one type");
    }
    return quoted();
  }

  bool boolean() {
    if (accept("True")) {
      return true;
    }
    if (!accept("False")) {
      malformed("True or False");
    }
    return false;
  }

  std::vector<Index> tuple() {
    std::vector<Index> sizes;
    expect('(');
    while (!accept(')')) {
      sizes.push_back(size());
      // In Python (3) is not a tuple, and NumPy refuses it too.
      if (!accept(',')) {
        if (sizes.size() == 1) {
          malformed("','");
        }
        expect(')');
        break;
      }
    }
    return sizes;
  }

  Index size() {
    skip_space();
    if (text_.substr(at_).starts_with('-')) {
      malformed("sizes that are not negative");
    }
    Index value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) {
      malformed("sizes of at most 63 bits");
    }
    if (error != std::errc()) {
      malformed("a size");
    }
    at_ += static_cast<std::size_t>(end - begin);
    if (text_.substr(at_).starts_with('L')) {  // a long integer of Python 2
      ++at_;
    }
    return value;
  }

  std::string_view text_;
  const path& file_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(const ReadAt& read, const path& file) {
  std::array<std::byte, kBeforeLength + 4> start{};
  const std::size_t found = read(start, 0);
  if (std::memcmp(start.data(), kNpyMagic.data(), std::min(found, kNpyMagic.size())) != 0) {
    refuse_header(file, "a foreign file; expected a .npy file, which begins with \\x93NUMPY");
  }
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(start[i]); };
  const std::size_t major = byte(6);
  const std::size_t minor = byte(7);
  if (found >= kBeforeLength && (major < 1 || major > 3 || minor != 0)) {
    refuse_header(file, fmt::format(".npy format {}.{}; expected 1.0, 2.0 or 3.0", major, minor));
  }
  const std::size_t preamble = kBeforeLength + (major == 1 ? 2 : 4);
  if (found < preamble) {
    refuse_header(file,
                  fmt::format("truncated header: {} bytes; expected {} and more", found, preamble));
  }
  std::size_t length = byte(8) | byte(9) << 8U;
  if (major > 1) {
    length |= byte(10) << 16U | byte(11) << 24U;
  }
  if (length > kLongestHeader) {
    refuse_header(file,
                  fmt::format("a header of {} bytes; expected at most {}", length, kLongestHeader));
  }
  std::string text(length, '\0');
  const std::size_t got =
      read(std::as_writable_bytes(std::span(text)), static_cast<std::int64_t>(preamble));
  if (got < length) {
    refuse_header(file, fmt::format("truncated header: {} bytes of it; expected {}", got, length));
  }
  NpyHeader header = HeaderParser(text, file).parse();
  header.bytes = static_cast<std::int64_t>(preamble + length);
  return header;
}

}  // namespace redblue
