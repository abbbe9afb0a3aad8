#pragma once
// The report of `redblue table1`: each cell of the paper's Table 1, with its power law and the
// power law fitted to exact counts. Dense operands have sizes far inside their regime. Sparse
// operands have random entries.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/exponents.hpp"

namespace redblue {

class Description;

// Sparse operands: A1 and A2 have d columns and s random entries in each row.
struct EntryFamily {
  std::string_view name;
  Index d = 0;
  bool full_X = false;  // false: X is the identity
};

// The points of a fit: all combinations of the ends and middles of three ranges, with m = n. For
// sparse operands s varies, and d is the family's.
struct FitPoints {
  struct Octaves {
    int from = 0;
    int to = 0;
  };
  std::string_view name;
  Octaves n, d, M;
  bool M_in_squares = true;  // `M` holds M / d^2, so that no point leaves the regime
  std::optional<EntryFamily> family = std::nullopt;
  std::array<Index, 3> s = {};

  // Returns the points without their words. With a family, their d is s.
  [[nodiscard]] std::vector<Sample> points() const;
  // Returns the name of the size that is not n or M: d or s.
  [[nodiscard]] std::string_view width() const { return family ? "s" : "d"; }
};

// A cell of the table, or a statement behind a cell. Some rows have no claim of the paper, only a
// law that our kernels are compared with.
struct Claim {
  std::string_view pass;   // forward, backward, sparse
  std::string_view bound;  // upper, lower; none: not a claim of the paper
  std::string_view cache;  // large, small
  std::string_view from;   // the source of the claim
  std::string_view says;
  Exponents exponents = {};
  Exponents tolerance = {.n = kTolerance, .d = kTolerance, .M = kTolerance};

  static constexpr double kTolerance = 0.05;
};

// The kinds of words of sparse operands that are counted.
struct Counted {
  bool index = true;   // also words of indices
  bool before = true;  // also words of phases before the phase `core`
};

struct Fit {
  FitPoints grid;
  PowerLaw law;
  // Least and greatest over all points: the words divided by the claim with constant 1.
  double least_over_claim = 0, most_over_claim = 0;
  // The largest peak / M, for kernels. If it is above 1, the blocks do not fit.
  std::optional<double> peak_over_M = {};
};

struct Row {
  Claim claim;
  std::string by;  // the kernel or the bound that gives the words
  Counted counted = {};
  Fit fit;

  // Returns whether all exponents are within the claim's tolerance.
  [[nodiscard]] bool follows() const;
  // Returns whether the words agree with the claim, or nullopt if they cannot tell. They cannot
  // tell without a claim of the paper. Neither can our proven bound if it does not follow a lower
  // bound of the paper: ours may be too small.
  [[nodiscard]] std::optional<bool> holds() const;
  [[nodiscard]] std::string verdict() const;
};

struct Table1 {
  std::vector<Row> rows;
};

// A kernel of sparse operands or our bound, and the law that its words may follow.
struct SparseLaw {
  Claim claim;
  FitPoints grid;
  std::string_view kernel;  // empty: the largest proven bound
};
// Returns the laws of the table. Computing their rows takes seconds, because all entries are
// generated.
const std::vector<SparseLaw>& sparse_laws();

std::vector<Row> sparse_rows(const std::vector<SparseLaw>& laws);
Table1 report_table1(const std::vector<SparseLaw>& laws = sparse_laws());

// Returns "n = 2^26..2^30, d = 2^4..2^6, M = 2^8..2^12 d^2"; "n = 2^13..2^15, s = 4, 8, 12 of d =
// 16, ...".
std::string to_words(const FitPoints& grid);
Description describe(const Table1& report);

}  // namespace redblue
