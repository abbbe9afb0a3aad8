#include "runtime/run/mask_spec.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

class Parser {
 public:
  // Without `reads_files`, a term with a file stands for all pairs.
  Parser(const std::string& spec, const Shape& shape, const std::string& said,
         const std::filesystem::path& directory, bool reads_files = true)
      : spec_(spec), shape_(shape), said_(said), directory_(directory), reads_files_(reads_files) {}

  Mask whole() {
    const Mask mask = either();
    if (skip_spaces() < spec_.size()) {
      refuse(
          fmt::format("{} is not expected at position {}", shortened(spec_.substr(at_)), at_ + 1));
    }
    return mask;
  }

 private:
  Mask either() {
    Mask mask = both();
    while (take('|')) {
      mask = mask | both();
    }
    return mask;
  }
  Mask both() {
    Mask mask = single();
    while (take('&')) {
      mask = mask & single();
    }
    return mask;
  }
  Mask single() {
    if (take('(')) {
      constexpr int kDeep = 100;
      if (++depth_ > kDeep) {
        refuse("more than 100 brackets in each other");
      }
      const Mask mask = either();
      if (!take(')')) {
        refuse(fmt::format("a ) is missing at position {}", at_ + 1));
      }
      --depth_;
      return mask;
    }
    return primitive();
  }

  Mask primitive() {
    constexpr int kMany = 64;
    if (++terms_ > kMany) {
      throw UsageError(fmt::format("{}: expected at most {} masks in one", said_, kMany));
    }
    const Index n = shape_.n;
    const Index m = shape_.m;
    const std::string name = word([](char c) { return std::isalpha(c) != 0; });
    if (name == "full") {
      return Mask::all(n, m);
    }
    if (name == "causal") {
      return Mask::causal(n, m);
    }
    if (name == "window") {
      need(':', "window:L,R");
      const Index left = reach("L");
      need(',', "window:L,R");
      return Mask::window(n, m, left, reach("R"));
    }
    if (name == "prefix") {
      need(':', "prefix:P");
      return Mask::prefix(n, m, number("P"));
    }
    if (name == "global") {
      need(':', "global:A-B");
      const Index first = number("A");
      need('-', "global:A-B");
      const Index last = number("B");
      if (last < first || first >= std::max(n, m)) {
        throw UsageError(
            fmt::format("{}: global:{}-{}: expected A <= B, and A below {}, the number of {}",
                        said_, first, last, std::max(n, m), n > m ? "queries" : "keys"));
      }
      return Mask::global(n, m, {first, std::min(last, std::max(n, m) - 1) + 1});
    }
    if (name == "documents") {
      need(':', "documents:FILE");
      return documents();
    }
    if (name == "blocks") {
      need(':', "blocks:FILE");
      const std::filesystem::path layout = file(kEnds);
      return reads_files_ ? Mask::layout(read_layout(layout, n, m)) : Mask::all(n, m);
    }
    if (name == "pattern") {
      need(':', "pattern:FILE");
      const std::filesystem::path pattern = file(kEnds);
      return reads_files_ ? Mask::pattern(read_pattern(pattern, n, m)) : Mask::all(n, m);
    }
    refuse(name.empty() ? fmt::format("a mask is missing at position {}", at_ + 1)
                        : fmt::format("{} is no mask", shortened(name)));
  }

  Mask documents() {
    const std::filesystem::path queries_file = file(kEndsOrColon);
    const std::optional<std::filesystem::path> keys_file =
        take(':') ? std::optional(file(kEnds)) : std::nullopt;
    if (!reads_files_) {
      return Mask::all(shape_.n, shape_.m);
    }
    if (!keys_file && shape_.n != shape_.m) {
      throw UsageError(
          fmt::format("{}: documents:FILE is for n = m, and these are {} and {}: expected "
                      "documents:QFILE:KFILE",
                      said_, shape_.n, shape_.m));
    }
    const std::vector<Index> queries = read_offsets(queries_file, shape_.n);
    const std::vector<Index> keys = keys_file ? read_offsets(*keys_file, shape_.m) : queries;
    if (queries.size() != keys.size()) {
      throw InputError(fmt::format("{}: {} documents; expected {}, as {} has", keys_file->string(),
                                   keys.size() - 1, queries.size() - 1, queries_file.string()));
    }
    return Mask::documents(queries, keys);
  }

  // Reads the name of a file, which ends before one of `ends` or is in quotes.
  std::filesystem::path file(std::string_view ends) {
    std::size_t begin = skip_spaces();
    std::size_t end = 0;
    if (take('"')) {
      begin = at_;
      end = spec_.find('"', begin);
      if (end == std::string::npos) {
        refuse(fmt::format("a \" is missing after position {}", begin));
      }
      at_ = end + 1;
    } else {
      at_ = std::min(spec_.find_first_of(ends, begin), spec_.size());
      end = spec_.find_last_not_of(' ', at_ - 1) + 1;
    }
    if (end <= begin) {
      throw UsageError(
          fmt::format("{}: the name of a file is missing at position {}", said_, begin + 1));
    }
    return directory_ / spec_.substr(begin, end - begin);
  }

  // Reads a number of keys. inf means no limit.
  Index reach(const char* name) {
    const std::size_t before = skip_spaces();
    if (spec_.compare(at_, 3, "inf") == 0) {
      at_ += 3;
      return shape_.n + shape_.m;
    }
    if (spec_.compare(at_, 2, "-1") == 0) {
      at_ += 2;
      return shape_.n + shape_.m;
    }
    at_ = before;
    return number(name);
  }
  Index number(const char* name) {
    skip_spaces();
    const std::size_t first = at_;
    const auto value = whole_number(
        word([](char c) { return std::isdigit(c) != 0 || c == 'K' || c == 'M' || c == 'G'; }));
    if (!value || *value > kMost) {
      throw UsageError(fmt::format("{}: {} at position {}: expected a number up to {}", said_, name,
                                   first + 1, kMost));
    }
    return *value;
  }

  std::size_t skip_spaces() {
    while (at_ < spec_.size() && spec_[at_] == ' ') {
      ++at_;
    }
    return at_;
  }
  bool take(char c) {
    if (skip_spaces() < spec_.size() && spec_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  void need(char c, const char* form) {
    if (!take(c)) {
      throw UsageError(fmt::format("{}: expected {} at position {}", said_, form, at_ + 1));
    }
  }
  template <class Is>
  std::string word(const Is& is) {
    skip_spaces();
    const std::size_t first = at_;
    while (at_ < spec_.size() && static_cast<unsigned char>(spec_[at_]) < 0x80 && is(spec_[at_])) {
      ++at_;
    }
    return spec_.substr(first, at_ - first);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("{}: {}: expected {}", said_, why, kMaskSyntax));
  }

  static constexpr Index kMost = Index{1} << 62;    // the sum of two is representable
  static constexpr std::string_view kEnds = "&|)";  // ends of a file's name
  static constexpr std::string_view kEndsOrColon = "&|):";

  const std::string& spec_;
  const Shape& shape_;
  const std::string& said_;
  const std::filesystem::path& directory_;
  const bool reads_files_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int terms_ = 0;
};

}  // namespace

void check_live_sums(const Problem& problem, Index first_row, std::span<const float> L,
                     const std::string& who) {
  for (std::size_t k = 0; k < L.size(); ++k) {
    const Index row = first_row + static_cast<Index>(k);
    if (std::isinf(L[k]) && meets_a_key(problem, row)) {
      throw InputError(fmt::format(
          "{} is -inf at row {}, where a query meets keys: O and L are of another mask", who, row));
    }
  }
}

std::vector<std::string> files_of_mask(const std::string& spec) {
  std::vector<std::string> files;
  std::size_t at = 0;
  // If `c` comes next, after spaces, skips it and returns true.
  const auto comes = [&](char c) {
    const std::size_t next = spec.find_first_not_of(' ', at);
    const bool here = next != std::string::npos && spec[next] == c;
    at = here ? next + 1 : at;
    return here;
  };
  const auto take_file = [&](std::string_view ends) {
    if (comes('"')) {
      const std::size_t end = std::min(spec.find('"', at), spec.size());
      files.push_back(spec.substr(at, end - at));
      at = std::min(end + 1, spec.size());
    } else {
      const std::size_t begin = std::min(spec.find_first_not_of(' ', at), spec.size());
      at = std::min(spec.find_first_of(ends, begin), spec.size());
      const std::string name = spec.substr(begin, at - begin);
      files.push_back(name.substr(0, name.find_last_not_of(' ') + 1));
    }
  };
  while (at < spec.size()) {
    const auto begins = [&](std::string_view name) {
      return spec.compare(at, name.size(), name) == 0;
    };
    const bool documents = begins("documents");
    if (!documents && !begins("blocks") && !begins("pattern")) {
      ++at;
      continue;
    }
    at += documents ? 9 : begins("blocks") ? 6 : 7;
    if (comes(':')) {
      take_file(documents ? "&|):" : "&|)");
      if (documents && comes(':')) {
        take_file("&|)");
      }
    }
  }
  return files;
}

Mask parse_mask(const std::string& spec, const Shape& shape, const std::string& said,
                const std::filesystem::path& directory) {
  constexpr Index kMost = Index{1} << 60;
  if (shape.n > kMost || shape.m > kMost) {
    throw UsageError(fmt::format("{}: n and m are at most 2^60 under a mask", said));
  }
  return Parser(spec, shape, said, directory).whole().called(spec);
}

void check_mask(const std::string& spec, const std::string& said) {
  constexpr Index kLarge = Index{1} << 40;  // global:A-B is right for a large enough n
  static_cast<void>(Parser(spec, {kLarge, kLarge, 1, 1}, said, {}, false).whole());
}

std::string fingerprint_of(const Mask& mask, const Shape& shape) {
  return fmt::format("{:016x}", (mask.full() ? Mask::all(shape.n, shape.m) : mask).fingerprint());
}

}  // namespace redblue
