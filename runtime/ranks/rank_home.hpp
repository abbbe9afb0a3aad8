#pragma once
// The home of a rank: the rows of its matrices, in main memory or in a store on disk.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/mask_index.hpp"
#include "memsim/backing.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/store/store.hpp"
#include "runtime/ranks/grid.hpp"
#include "runtime/ranks/rank_cost.hpp"

namespace redblue {

class RankHome {
 public:
  // Words are NaN until they are written. In a store, which must outlive the home, each matrix is a
  // file, laid out for the kernel, that has no name and vanishes with the process. Throws: as
  // Store::create().
  explicit RankHome(const RankPart& part, Store* store = nullptr);
  // The matrices that a run of a part hands over; and how many these are, or all of a home.
  static std::vector<std::string> handed_over(const RankPart& part);
  struct Files {
    Index home = 0, handed_over = 0;
  };
  static Files files(const RankPart& part);
  // The bytes of such files in the homes of so many heads, one after the other, of which those
  // before the last keep what is handed over.
  static Words file_bytes(const RankPart& part, const Store& store, Index heads);

  [[nodiscard]] bool in_memory() const { return store_ == nullptr; }
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(std::string_view matrix) const { return held_.contains(matrix); }
  [[nodiscard]] const HomeMatrix& about(std::string_view matrix) const;
  [[nodiscard]] Words words() const;
  // Drops all other matrices.
  void keep(const std::vector<std::string>& matrices);

  // Rows of a matrix by their numbers among those that lie here: of rows by their numbers in the
  // place, which lie here next to each other; of those that the rank begins with, or ends with; and
  // how many there are.
  [[nodiscard]] Range here(std::string_view matrix, Range rows) const;
  [[nodiscard]] Range own(std::string_view matrix) const;
  [[nodiscard]] Index lying_rows(std::string_view matrix) const;

  // Words of what lies here, row by row, from word `first` on: uncounted, as host programs have
  // them.
  void get(std::string_view matrix, Index first, std::span<float> words) const;
  void put(std::string_view matrix, Index first, std::span<const float> words);
  // Rows of another matrix, of this home or another, to rows from `first` on.
  void copy(std::string_view matrix, Index first, const RankHome& from, std::string_view other,
            Range rows);
  // Some of these words. Requires: in_memory().
  [[nodiscard]] std::span<float> in_memory(std::string_view matrix, Range words);
  // What a store moves from now on is for this.
  void begin(Purpose purpose) const;

  // A matrix of them for a kernel, under its name or another; and those of its rows that the rank
  // begins with, or ends with.
  [[nodiscard]] SlowMatrix as_matrix(std::string_view matrix, std::string_view called = {});
  [[nodiscard]] SlowMatrix own_as_matrix(std::string_view matrix);

  // The rows that changed since the last call, of each matrix, in order and apart from each other:
  // by their numbers among those that lie here. Requires: note_changes() before they changed.
  std::map<std::string, Ranges> take_changes();
  void note_changes() { noting_ = true; }
  // Notes rows that no kernel wrote, by their numbers in the place.
  void note(std::string_view matrix, Range rows);

 private:
  struct Held {
    HomeMatrix about;
    std::vector<float> memory;  // of a home in memory
    std::unique_ptr<Backing> lying;
    Ranges changed = {};
  };
  // Those rows of the place, of which `there` lie from `first` on.
  SlowMatrix for_kernel(Held& its, std::string name, Range rows, Ranges there, Index first);
  [[nodiscard]] Held& held(std::string_view matrix);
  [[nodiscard]] const Held& held(std::string_view matrix) const;

  Store* store_;
  std::map<std::string, Held, std::less<>> held_;
  bool noting_ = false;
};

}  // namespace redblue
