#pragma once
// The report of `redblue table1`: the cells of the paper's Table 1, each with the paper's power law
// and with the one that exact formulas follow far out in its regime.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/exponents.hpp"

namespace redblue {

// The points of a fit: all combinations of the ends and middles of three ranges. m = n.
struct Grid {
  struct Octaves {
    int from = 0;
    int to = 0;
  };
  std::string_view name;
  Octaves n, d, M;
  bool M_in_squares = true;  // M is a range of M / d^2, so that no point leaves the regime

  [[nodiscard]] std::vector<Sample> points() const;  // without their words
};

// A cell of the table, or a statement that it rests on.
struct Claim {
  std::string_view pass;   // forward, backward; with "sparse " in front
  std::string_view bound;  // upper, lower
  std::string_view cache;  // large, small
  std::string_view from;   // the source of the claim
  std::string_view says;
  Exponents exponents = {};
};

struct Fit {
  Grid grid;
  PowerLaw law;
  std::optional<double> peak_over_M;  // the largest, of a kernel; above 1 the blocks do not fit
};

struct Row {
  Claim claim;
  std::string by;          // the kernel or the bound that has the words
  std::optional<Fit> fit;  // none if the project has nothing to count

  // Whether all exponents are within kTolerance of the claim's. Nothing without a fit.
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
