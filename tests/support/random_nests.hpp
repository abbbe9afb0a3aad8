#pragma once
// Random nests as text: loops over extents and over pieces, met-by loops, phases, temps, slices,
// conditions, sums, and block sizes in all forms.

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

class RandomNests {
 public:
  explicit RandomNests(std::uint64_t seed) : random_(seed) {}

  // Returns a nest that parse_nest() mostly accepts. `most_blocks`: the most named block sizes.
  // `fixed`: whether the nest may also give sizes itself.
  std::string nest(int most_loops, Index most_blocks, bool fixed);

  Index any(Index from, Index to) {
    return std::uniform_int_distribution<Index>(from, to)(random_);
  }
  bool chance(Index percent) { return any(1, 100) <= percent; }

 private:
  using Names = std::vector<std::string>;
  struct Matrix {
    std::string name;
    Names extents;
    bool input = false, temp = false, written = false, used = false;
  };
  struct Loop {
    std::string name, range, root, met_by;
  };
  struct Tile {
    std::string name;
    Names indices;
    std::string sum;        // " sum" or nothing
    std::string condition;  // empty: it always lives
    std::string like;       // the matrix whose extents it has
  };

  void line(const std::string& text);
  void body(int items);
  void item();
  void loop();
  void phase();
  void read();
  void make();
  void write();
  void drop();
  void flops();
  void when();
  void either();
  void stays();
  void carried();
  void slices();
  void in_part();
  void finish();

  template <class List>
  auto& one_of(List& list) {
    return list[static_cast<std::size_t>(any(0, std::ssize(list) - 1))];
  }
  std::string index(const std::string& extent, bool plain);
  Names indices(const Names& extents, bool plain);
  std::string part(const std::string& extent);
  std::string sign();
  std::string comparison();
  std::string condition(const Names& indices);
  std::string conditions(const Names& indices);
  std::string size(const std::string& range, const std::string& root);
  std::string block(const std::string& root);
  Names met_sizes() const;
  std::string fresh_variable();
  [[nodiscard]] const Loop* around(const std::string& name) const;
  [[nodiscard]] bool lives(const std::string& name) const;
  [[nodiscard]] bool is_whole(const Names& indices, const Names& extents) const;
  static std::string text(const std::string& name, const Names& indices);

  std::mt19937_64 random_;
  std::string lines_;
  std::string indent_, step_;
  std::deque<Matrix> matrices_;  // stay where they are when more are added
  std::vector<Loop> loops_;
  std::vector<Tile> tiles_;
  std::vector<Tile> hidden_;  // they may live, and nothing uses them
  std::size_t own_ = 0;       // tiles before this one were made outside the loop
  std::vector<std::pair<std::string, std::string>> blocks_;  // names, and what they cut
  std::vector<std::pair<std::string, std::string>> parts_;   // those that may be 0
  Names comparisons_;                                        // for every 'when'
  Names declared_;
  int most_loops_ = 4, left_ = 0, phases_ = 0, locals_ = 0;
  int whens_ = 0, asked_ = 0;  // those around, and those of the size of a block
  Index most_blocks_ = 4;
  bool fixed_ = true;
};

}  // namespace redblue
