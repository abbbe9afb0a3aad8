#pragma once
// Finds where the blocks of a run cut the rows of slow matrices. Each block then consists of whole
// pieces of rows.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/trace/follower.hpp"

namespace redblue {

// A sequence of words, cut into pieces or into single words.
class CutRow {
 public:
  // Cuts into single words.
  explicit CutRow(Index words = 0) : count_(words) {}
  // Cuts into pieces. Each piece begins at one of `begins`; the first is 0.
  CutRow(std::vector<Index> begins, Index words);

  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] bool by_word() const { return pieces_.empty(); }
  [[nodiscard]] Index of(Index word) const { return pieces_.empty() ? word : pieces_[at(word)]; }
  // Returns the first word of a piece. begin(count()) is the number of words.
  [[nodiscard]] Index begin(Index piece) const {
    return pieces_.empty() ? piece : begins_[at(piece)];
  }
  friend bool operator==(const CutRow&, const CutRow&) = default;

 private:
  static std::size_t at(Index index) { return static_cast<std::size_t>(index); }

  Index count_;
  std::vector<Index> begins_, pieces_;
};

// The cuts of all matrices of a run. All blocks of one matrix are cut at the same columns, so that
// two blocks share whole pieces.
struct RowCuts {
  Index longest = 1;                                    // most words of a piece
  std::map<std::string, std::set<Index>> columns = {};  // columns where pieces begin, by matrix
  // The place of a tile's first write. It gives the cuts of tiles that are not read.
  struct Written {
    std::string matrix;
    Index column;
    Orientation orientation;
  };
  std::unordered_map<std::uint64_t, Written> tiles = {};

  // Cuts `words` words of a row of the matrix, from `column` on.
  [[nodiscard]] CutRow pieces(const std::string& matrix, Index column, Index words) const;
  // Cuts `words` words of a tile that is neither read nor written.
  [[nodiscard]] CutRow pieces(Index words) const;
};

// Collects the cuts of a run while it lives. Another, equal run has the same cuts.
class RowCutter final : public Follower {
 public:
  RowCutter(Machine& machine, Index longest) : Follower(machine), cuts_{.longest = longest} {}
  // Returns the cuts. Call it once, after the run. Throws: as check().
  [[nodiscard]] RowCuts take();

 private:
  void follow(const Event& event) override;

  RowCuts cuts_;
};

}  // namespace redblue
