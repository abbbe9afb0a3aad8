#pragma once
// The report of `redblue table1`: the cells of the paper's Table 1, each with the paper's power law
// and with the one that exact formulas follow: of dense operands far out in its regime, of sparse
// ones where entries have been made.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/exponents.hpp"

namespace redblue {

class Description;

// Sparse operands: s random entries in each row of A1 and A2, of d columns.
struct EntryFamily {
  std::string_view name;
  Index d = 0;
  bool full_X = false;  // else X is the identity
};

// The points of a fit: all combinations of the ends and middles of three ranges. m = n. Of sparse
// operands it is s that varies, and d is the family's.
struct FitPoints {
  struct Octaves {
    int from = 0;
    int to = 0;
  };
  std::string_view name;
  Octaves n, d, M;
  bool M_in_squares = true;  // M is a range of M / d^2, so that no point leaves the regime
  std::optional<EntryFamily> family = std::nullopt;
  std::array<Index, 3> s = {};

  // Without their words; with s for d where there is a family.
  [[nodiscard]] std::vector<Sample> points() const;
  // Of the size that is not n or M: d or s.
  [[nodiscard]] std::string_view width() const { return family ? "s" : "d"; }
};

// A cell of the table, a statement that it rests on, or a law to which our kernels are compared
// where the paper claims nothing.
struct Claim {
  std::string_view pass;   // forward, backward, sparse
  std::string_view bound;  // upper, lower; none: no claim of the paper
  std::string_view cache;  // large, small
  std::string_view from;   // the source of the claim
  std::string_view says;
  Exponents exponents = {};
  Exponents tolerance = {.n = kTolerance, .d = kTolerance, .M = kTolerance};

  static constexpr double kTolerance = 0.05;
};

// Which words: indices move, too, of sparse operands, and what is made before scores are.
struct Counted {
  bool index = true;   // also the words that are no values
  bool before = true;  // also those of phases before the core
};

struct Fit {
  FitPoints grid;
  PowerLaw law;
  // Of all points: the words over what the claim says without its constant.
  double least_over_claim = 0, most_over_claim = 0;
  // The largest, of a kernel; above 1 the blocks do not fit.
  std::optional<double> peak_over_M = {};
};

struct Row {
  Claim claim;
  std::string by;  // the kernel or the bound that has the words
  Counted counted = {};
  Fit fit;

  // Whether all exponents are within the claim's tolerance.
  [[nodiscard]] bool follows() const;
  // Whether the claim holds so far as words can tell. Nothing where the paper claims nothing, and
  // where our proven bound, which may be too small, does not follow the paper's.
  [[nodiscard]] std::optional<bool> holds() const;
  [[nodiscard]] std::string verdict() const;
};

struct Table1 {
  std::vector<Row> rows;
};

// A kernel of sparse operands, or our bound, and the law that its words may follow.
struct SparseLaw {
  Claim claim;
  FitPoints grid;
  std::string_view kernel;  // empty: the largest proven bound
};
// Those of the table; they take seconds, for entries are made and met one by one.
const std::vector<SparseLaw>& sparse_laws();

std::vector<Row> sparse_rows(const std::vector<SparseLaw>& laws);
Table1 report_table1(const std::vector<SparseLaw>& laws = sparse_laws());

// "n = 2^26..2^30, d = 2^4..2^6, M = 2^8..2^12 d^2"; "n = 2^13..2^15, s = 4, 8, 12 of d = 16, ..."
std::string to_words(const FitPoints& grid);
Description describe(const Table1& report);

}  // namespace redblue
