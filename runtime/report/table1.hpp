#pragma once
// What `redblue table1` has to say: the cells of the paper's Table 1, each with the power law that
// the exact formulas follow far out in its regime, beside the one that the paper claims.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/exponents.hpp"

namespace redblue {

// Where a law is fitted: the ends and the middle of three ranges, each with each. m = n.
struct Grid {
  struct Octaves {
    int from = 0;
    int to = 0;
  };
  std::string_view name;
  Octaves n, d, M;
  bool M_in_squares = true;  // of d: it is M / d^2 that varies, so that no point leaves the regime

  [[nodiscard]] std::vector<Sample> points() const;  // without words yet
};

// A cell of the table, or a statement behind one.
struct Claim {
  std::string_view pass;   // forward, backward; with "sparse " in front
  std::string_view bound;  // upper, lower
  std::string_view cache;  // large, small
  std::string_view from;   // who says so
  std::string_view says;
  Exponents exponents = {};
};

struct Fit {
  Grid grid;
  PowerLaw law;
  std::optional<double> peak_over_M;  // the largest; over 1 the blocks do not fit. Of kernels
};

struct Row {
  Claim claim;
  std::string by;          // whose words
  std::optional<Fit> fit;  // none where the project has nothing to count

  // Whether each exponent is within kTolerance of the claim's.
  [[nodiscard]] std::optional<bool> holds() const;
  [[nodiscard]] std::string verdict() const;
};

inline constexpr double kTolerance = 0.05;

struct Table1 {
  std::vector<Row> rows;
};

Table1 report_table1();

// "n = 2^26..2^30, d = 2^4..2^6, M = 2^8..2^12 d^2"
std::string to_words(const Grid& grid);
std::string to_table(const Table1& report);
std::string to_json(const Table1& report);
std::string to_csv(const Table1& report);

}  // namespace redblue
