#pragma once
// Records the content of fast memory during a run: the live words of each tile name over the words
// moved. The number of columns is limited, for pictures.
//
// All columns cover equally many words moved; the last may be shorter. A column holds the state
// with the most live words, so that no peak is lost. Free operations move no words and belong to
// the move before them. A tile is live from the beginning of its read.

#include <string>
#include <vector>

#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

class Occupancy final : public Follower {
 public:
  struct Column {
    Index live = 0;
    std::vector<Index> words;  // in the order of names(), for the names so far; the sum is `live`
  };
  // A range of words moved with the same innermost phase.
  struct Span {
    std::string path;  // "" outside all phases
    Index begin = 0;
    Index end = 0;
  };

  // Follows the machine while it lives. Requires: the machine has moved no words yet, and
  // most_columns >= 1.
  Occupancy(Machine& machine, Index most_columns);

  // Tile names in the order of their first appearance.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Column k covers the words from k * width() to (k + 1) * width().
  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] Index width() const { return width_; }
  [[nodiscard]] Index moved() const { return moved_; }
  [[nodiscard]] Index peak() const { return peak_; }
  // In order, without empty spans; adjacent spans have different paths.
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }

 private:
  void follow(const Event& event) override;
  void change(const Event& event, Index words);
  void move(Index words);
  void note(std::size_t column);
  void halve();  // merges pairs of columns

  std::size_t most_;
  Index width_ = 1;
  Index moved_ = 0;
  Index peak_ = 0;
  std::vector<std::string> names_;
  Column now_;
  std::vector<Column> columns_;
  PhasePath path_;
  std::vector<Span> spans_;
};

}  // namespace redblue
