#pragma once
// A part of the points of a suite, for one of several machines, and how parts are put together.
// All types are values.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/system/input_error.hpp"

namespace redblue {

// Part `number` of `of`, from 1. Point k, counted from 0, belongs to part k mod of + 1, so that
// neighbours, which take about as long as each other, are of different parts.
struct SuitePart {
  std::size_t number = 1, of = 1;

  [[nodiscard]] bool has(std::size_t k) const { return k % of + 1 == number; }
  [[nodiscard]] bool is_whole() const { return of == 1; }
  friend bool operator==(const SuitePart&, const SuitePart&) = default;
};
std::string to_string(const SuitePart& part);  // "2/5"
// The points of `count` that belong to the part.
std::vector<std::size_t> points_of(const SuitePart& part, std::size_t count);
// Nothing for a text that is no i/N with 1 <= i <= N.
std::optional<SuitePart> parse_part(std::string_view text);

// What the points of a part come from. It is the same for all parts of one suite.
struct SuiteOrigin {
  std::string how;
  std::string suite = {};                // its text; empty if its points say all
  std::string program;                   // the fingerprint of the command
  std::vector<std::string> points = {};  // the names of all points of the suite, in its order
  // By the names of points and of their arguments: fingerprints of what files say.
  std::map<std::string, std::map<std::string, std::string>> files = {};
  std::map<std::string, std::string> at_most = {};  // budgets, by the names of points that have any

  friend bool operator==(const SuiteOrigin&, const SuiteOrigin&) = default;
};
// The first thing in which two origins differ, such as "suite"; empty if they are equal.
std::string differing(const SuiteOrigin& a, const SuiteOrigin& b);

// A part that is there, with the names of the points that it has.
struct PartThere {
  std::string name;  // of its file or directory, for messages
  SuitePart part;
  SuiteOrigin origin;
  std::vector<std::string> points;
};

// For each point of the suite, in its order, the indices of the parts that have it. Throws:
// InputError with the names of two parts that are not of one suite, and what differs.
std::vector<std::vector<std::size_t>> holders_of(const std::vector<PartThere>& parts);

// The points that no part has.
struct MissingPoints {
  std::vector<std::string> names;
  std::string text;  // "2 of 9 points are missing: ...", on one line
};
MissingPoints missing_points(const std::vector<PartThere>& parts,
                             const std::vector<std::vector<std::size_t>>& holders);

}  // namespace redblue
