#include "kernels/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace redblue {
namespace {

char lower(char c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

// Levenshtein's recurrence, one row of its table at a time: after the letters word[0..i),
// row[j] is the distance to name[0..j).
std::size_t distance(std::string_view word, std::string_view name) {
  std::vector<std::size_t> row(name.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < word.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < name.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(word[i]) == lower(name[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest(std::string_view word, std::span<const std::string_view> known) {
  std::vector<std::pair<std::size_t, std::string_view>> ranked;
  ranked.reserve(known.size());
  for (const std::string_view name : known) {
    const bool part =
        std::search(name.begin(), name.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == lower(b); }) != name.end();
    ranked.emplace_back(part ? 0 : distance(word, name), name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  ranked.resize(std::min<std::size_t>(ranked.size(), 3));
  std::vector<std::string> names;
  names.reserve(ranked.size());
  for (const auto& [steps, name] : ranked) {
    names.emplace_back(name);
  }
  return names;
}

std::string near(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 64;  // the distance takes as many steps as both have letters
  std::string_view best;
  std::size_t least = word.size() > kLongest ? 0 : word.size() / 3 + 1;
  for (const std::string_view name : known) {
    const std::size_t longer =
        std::max(name.size(), word.size()) - std::min(name.size(), word.size());
    if (const std::size_t steps = longer < least ? distance(word, name) : least; steps < least) {
      best = name;
      least = steps;
    }
  }
  return std::string(best);
}

}  // namespace redblue
