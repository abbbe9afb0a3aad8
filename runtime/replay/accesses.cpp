#include "runtime/replay/accesses.hpp"

#include <charconv>
#include <unordered_map>

#include <fmt/format.h>

#include "runtime/system/input_error.hpp"
#include "runtime/text/lines.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

std::uint64_t parse_address(std::string_view text, const Lines& lines) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
  }
  std::uint64_t address = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, address, 16);
  if (digits.empty() || end != last || error != std::errc()) {
    lines.refuse(text.empty() ? "the address is missing"
                              : fmt::format("'{}' is no address of 64 bits in hexadecimal",
                                            shortened(text)));
  }
  return address;
}

}  // namespace

Accesses parse_dinero(std::string_view text, const std::filesystem::path& file) {
  constexpr std::uint64_t kBytes = 4;
  constexpr std::size_t kMost = std::size_t{1} << 28;
  Accesses found;
  std::unordered_map<std::uint64_t, std::uint32_t> number;
  for (Lines lines(text, file); lines.next();) {
    if (lines.at_end()) {
      continue;
    }
    const std::string_view label = lines.word();
    if (label != "0" && label != "1") {
      lines.refuse(fmt::format("label '{}': expected 0 (read) or 1 (write); leave others out",
                               shortened(label)));
    }
    const std::uint64_t address = parse_address(lines.word(), lines);
    if (found.in_order.size() == kMost) {
      lines.refuse(fmt::format("more than {} accesses: take a shorter trace", kMost));
    }
    const auto word =
        number.try_emplace(address / kBytes, static_cast<std::uint32_t>(number.size()))
            .first->second;
    found.in_order.push_back({label == "0" ? Access::Kind::need : Access::Kind::overwrite, word});
  }
  found.widths.assign(number.size(), 1);
  if (number.empty()) {
    throw InputError(
        fmt::format("{}: no accesses: each is a line such as '0 1f40'", file.string()));
  }
  return found;
}

std::string to_cachesim(const Accesses& accesses) {
  std::string text;
  for (const auto& [kind, unit] : accesses.in_order) {
    if (kind != Access::Kind::dead) {
      text += std::to_string(Index{unit} + 1);
      text += '\n';
    }
  }
  return text;
}

}  // namespace redblue
