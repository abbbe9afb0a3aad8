#pragma once
// What is in fast memory in the course of a run: the live words of each tile name over the words
// moved so far, in no more columns than a picture has.
//
// A column stands for equally many words moved (the last may be cut short), and holds the state in
// which most words were live meanwhile; so no peak is lost, however narrow. What is free takes no
// words: it belongs to the move before. A tile is live from the beginning of its read on.

#include <string>
#include <vector>

#include "runtime/observe/follower.hpp"
#include "runtime/observe/phase_path.hpp"

namespace redblue {

class Occupancy final : public Follower {
 public:
  struct Column {
    Index live = 0;
    std::vector<Index> words;  // by name, as far as there were names; their sum is `live`
  };
  // A phase while it is the innermost one, in words moved.
  struct Span {
    std::string path;  // "" outside of all
    Index begin = 0;
    Index end = 0;
  };

  // Listens while it lives. The machine has moved nothing yet. Requires: most >= 1.
  Occupancy(Machine& machine, Index most_columns);

  // In the order in which they first appeared.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Column k is about the words from k * width() to (k + 1) * width().
  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] Index width() const { return width_; }
  [[nodiscard]] Index moved() const { return moved_; }
  [[nodiscard]] Index peak() const { return peak_; }
  // In order, without those in which nothing moved; neighbours are of different paths.
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }

 private:
  void follow(const Event& event) override;
  void change(const Event& event, Index words);
  void move(Index words);
  void note(std::size_t column);
  void halve();  // the columns

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
