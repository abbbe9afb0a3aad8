#pragma once
// A part of a suite's points, for one of several machines, and how to merge parts. All types are
// values.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/system/input_error.hpp"

namespace redblue {

// Part `number` of `of` parts, counted from 1. Point k, counted from 0, belongs to part k mod of +
// 1. Neighbouring points take similar time, so they go to different parts.
struct SuitePart {
  std::size_t number = 1, of = 1;

  [[nodiscard]] bool has(std::size_t k) const { return k % of + 1 == number; }
  [[nodiscard]] bool is_whole() const { return of == 1; }
  friend bool operator==(const SuitePart&, const SuitePart&) = default;
};
std::string to_string(const SuitePart& part);  // "2/5"
// Returns the indices below `count` that belong to the part.
std::vector<std::size_t> points_of(const SuitePart& part, std::size_t count);
// Empty for a text that is not i/N with 1 <= i <= N.
std::optional<SuitePart> parse_part(std::string_view text);

// The source of the points of a part. It is the same for all parts of one suite.
struct SuiteOrigin {
  std::string how;
  std::string suite = {};                // text of the suite; empty if the points say all
  std::string program;                   // fingerprint of the command
  std::vector<std::string> points = {};  // names of all points of the suite, in order
  // Fingerprints of input files, by point and argument.
  std::map<std::string, std::map<std::string, std::string>> files = {};
  std::map<std::string, std::string> at_most = {};  // budgets, by point

  friend bool operator==(const SuiteOrigin&, const SuiteOrigin&) = default;
};
// Returns the first member in which two origins differ, such as "suite". Empty if they are equal.
std::string differing(const SuiteOrigin& a, const SuiteOrigin& b);

// A part that exists, with the names of its points.
struct PartThere {
  std::string name;  // name of its file or directory, for messages
  SuitePart part;
  SuiteOrigin origin;
  std::vector<std::string> points;
};

// For each point of the suite, in order, returns the indices of the parts that have it. Throws:
// InputError with the names of two parts from different suites, and the difference.
std::vector<std::vector<std::size_t>> holders_of(const std::vector<PartThere>& parts);

// The points that no part has.
struct MissingPoints {
  std::vector<std::string> names;
  std::string text;  // "2 of 9 points are missing: ...", on one line
};
MissingPoints missing_points(const std::vector<PartThere>& parts,
                             const std::vector<std::vector<std::size_t>>& holders);

}  // namespace redblue
