#pragma once
// The sums that a block of queries makes while its keys stream. Scores exist in strips of
// by.strip() queries, one strip after another. Strips without a live pair are skipped. Requires:
// `by` outlives the sums.

#include <optional>
#include <utility>

#include "kernels/parts/level_costs.hpp"
#include "kernels/parts/online_softmax.hpp"
#include "kernels/parts/rows.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// Z = sum of e_j A3_j, or of f_j A3_j.
class ValueSums {
 public:
  ValueSums(Machine& machine, const RowPlan& by, Index rows);
  // Adds some keys. s_t is S^T of the queries I. Requires: at most Bc keys.
  void add(const KeyTiles& keys, Range I, const Tile& s_t);
  // The sums without the strip.
  struct Sums {
    Tile Z;
    RowNormaliser normaliser;
  };
  [[nodiscard]] Sums take() { return std::move(sums_); }
  // The words held for each query, and the words of strips for a block of r queries.
  static Words of_row(const RowPlan& by);
  static Words strips(const RowPlan& by, Words r);
  static Words words(const RowPlan& by, Words r) { return r * of_row(by) + strips(by, r); }
  // The words at an inner level, for row blocks of at most r rows.
  static LevelSums in_level(const RowPlan& by, Words r);

 private:
  Machine& machine_;
  const RowPlan& by_;
  Begun begun_;
  Sums sums_;
  NearTile strip_, factors_;
};

// W = p A2 if neither O nor L is given. It takes four products of n m d multiply-adds.
class GradientSums {
 public:
  static constexpr Index kProducts = 4;

  GradientSums(Machine& machine, const RowPlan& by, Index rows);
  // The same with g_t, which is G^T of the queries.
  void add(const KeyTiles& keys, Range I, const Tile& s_t, const Tile& g_t);
  // take() returns W, take_all() also L and v. Requires: all keys were added.
  [[nodiscard]] Tile take();
  struct Known {
    Tile W, L, v;
  };
  [[nodiscard]] Known take_all();
  // The sums over the keys so far, without the strips.
  struct Parts {
    Tile U, Z;
    OnlineSoftmax softmax;
    Tile mean;
  };
  [[nodiscard]] Parts take_parts();
  static Words of_row(const RowPlan& by);
  static Words strips(const RowPlan& by, Words r);
  static Words words(const RowPlan& by, Words r) { return r * of_row(by) + strips(by, r); }
  // The words at an inner level, for row blocks of at most r rows.
  static LevelSums in_level(const RowPlan& by, Words r);

 private:
  Machine& machine_;
  const RowPlan& by_;
  Begun begun_;
  Tile U_, Z_;
  OnlineSoftmax softmax_;
  RunningMean mean_;
  NearTile e_strip_, q_strip_, factors_, delta_;
};

// W = p A2 if L and v are given, or if the activation has neither. It takes three products of n m d
// multiply-adds.
class KnownGradientSums {
 public:
  static constexpr Index kProducts = 3;

  KnownGradientSums(Machine& machine, const RowPlan& by, Index rows, Tile L, Tile v);
  void add(const KeyTiles& keys, Range I, const Tile& s_t, const Tile& g_t);
  [[nodiscard]] Tile take() { return std::move(W_); }
  static Words of_row(const RowPlan& by);
  static Words strips(const RowPlan& by, Words r);
  static Words words(const RowPlan& by, Words r) { return r * of_row(by) + strips(by, r); }
  // The words at an inner level, for row blocks of at most r rows.
  static LevelSums in_level(const RowPlan& by, Words r);

 private:
  Machine& machine_;
  const RowPlan& by_;
  Begun begun_;
  Tile L_, v_, W_;
  NearTile strip_;
  NearTile registers_;  // words that a product keeps in registers (kRegisterCharge)
};

// W if neither L nor v is given: GradientSums for a softmax, KnownGradientSums for other
// activations.
class SumsFromNothing {
 public:
  SumsFromNothing(Machine& machine, const RowPlan& by, Index rows);
  void add(const KeyTiles& keys, Range I, const Tile& s_t, const Tile& g_t);
  [[nodiscard]] Tile take();
  static Index products(const Problem& problem) {
    return problem.normalised() ? GradientSums::kProducts : KnownGradientSums::kProducts;
  }
  static Words words(const RowPlan& by, Words r);

 private:
  std::optional<GradientSums> of_softmax_;
  std::optional<KnownGradientSums> of_others_;
};

}  // namespace redblue
