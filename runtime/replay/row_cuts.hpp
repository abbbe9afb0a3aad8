#pragma once
// Where the blocks of a run cut rows of slow matrices, so that each block has whole pieces of rows.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/trace/follower.hpp"

namespace redblue {

// Words one after the other, in pieces, or each by itself.
class CutRow {
 public:
  // Each by itself.
  explicit CutRow(Index words = 0) : count_(words) {}
  // From each of `begins`, which begins with 0, to before the next one.
  CutRow(std::vector<Index> begins, Index words);

  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] bool by_word() const { return pieces_.empty(); }
  [[nodiscard]] Index of(Index word) const { return pieces_.empty() ? word : pieces_[at(word)]; }
  // Of the piece that is `count`: the number of words.
  [[nodiscard]] Index begin(Index piece) const {
    return pieces_.empty() ? piece : begins_[at(piece)];
  }
  friend bool operator==(const CutRow&, const CutRow&) = default;

 private:
  static std::size_t at(Index index) { return static_cast<std::size_t>(index); }

  Index count_;
  std::vector<Index> begins_, pieces_;
};

// Blocks of one matrix are cut at the same columns, so that two have a piece in common, or none of
// its words.
struct RowCuts {
  Index longest = 1;                                    // words of a piece
  std::map<std::string, std::set<Index>> columns = {};  // where pieces begin, by matrix
  // Where tiles that are not read are written first.
  struct Written {
    std::string matrix;
    Index column;
    Orientation orientation;
  };
  std::unordered_map<std::uint64_t, Written> tiles = {};

  // Of words from a column on of a matrix.
  [[nodiscard]] CutRow pieces(const std::string& matrix, Index column, Index words) const;
  // Of words of a tile that is neither read nor written.
  [[nodiscard]] CutRow pieces(Index words) const;
};

// Listens while it lives. Another, equal run has the same cuts.
class RowCutter final : public Follower {
 public:
  RowCutter(Machine& machine, Index longest) : Follower(machine), cuts_{.longest = longest} {}
  // Once, after the run. Throws: what check() throws.
  [[nodiscard]] RowCuts take();

 private:
  void follow(const Event& event) override;

  RowCuts cuts_;
};

}  // namespace redblue
