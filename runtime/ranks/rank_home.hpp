#pragma once
// The home of a rank: its rows of matrices, in main memory or in a store on disk.

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
  // Words are NaN until they are written. Without a store, the home is in main memory. In a store,
  // each matrix is a file, laid out for the kernel. The file has no name and vanishes with the
  // process. The store must outlive the home. Throws: as Store::create().
  explicit RankHome(const RankPart& part, Store* store = nullptr);
  // handed_over() returns the names of the matrices that a run of the part hands over. files()
  // returns the number of files in a home, and how many of them are handed over.
  static std::vector<std::string> handed_over(const RankPart& part);
  struct Files {
    Index home = 0, handed_over = 0;
  };
  static Files files(const RankPart& part);
  // Returns the bytes of the files of `heads` homes, one head after the other. Homes before the
  // last keep only the matrices that are handed over.
  static Words file_bytes(const RankPart& part, const Store& store, Index heads);

  [[nodiscard]] bool in_memory() const { return store_ == nullptr; }
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(std::string_view matrix) const { return held_.contains(matrix); }
  [[nodiscard]] const HomeMatrix& about(std::string_view matrix) const;
  [[nodiscard]] Words words() const;
  // Drops all other matrices.
  void keep(const std::vector<std::string>& matrices);

  // Return ranges of stored rows. here() takes rows numbered in the place, which must be adjacent
  // in the home. own() returns the rank's own rows. lying_rows() returns the number of stored rows.
  [[nodiscard]] Range here(std::string_view matrix, Range rows) const;
  [[nodiscard]] Range own(std::string_view matrix) const;
  [[nodiscard]] Index lying_rows(std::string_view matrix) const;

  // Read and write stored words, row by row, from word `first` on. The words are not counted, like
  // accesses of host programs.
  void get(std::string_view matrix, Index first, std::span<float> words) const;
  void put(std::string_view matrix, Index first, std::span<const float> words);
  // Copies rows of another matrix, of this home or another, to stored rows from `first` on.
  void copy(std::string_view matrix, Index first, const RankHome& from, std::string_view other,
            Range rows);
  // Returns stored words in memory. Requires: in_memory().
  [[nodiscard]] std::span<float> in_memory(std::string_view matrix, Range words);
  // Attributes the words that the store moves from now on to this purpose.
  void begin(Purpose purpose) const;

  // Return a matrix for a kernel, under its name or another: all rows of the place, or the rank's
  // own rows.
  [[nodiscard]] SlowMatrix as_matrix(std::string_view matrix, std::string_view called = {});
  [[nodiscard]] SlowMatrix own_as_matrix(std::string_view matrix);

  // Returns the rows of each matrix that changed since the last call, as sorted, disjoint ranges of
  // stored rows. Requires: note_changes() before they changed.
  std::map<std::string, Ranges> take_changes();
  void note_changes() { noting_ = true; }
  // Notes a change of rows without a kernel's write. The rows are numbered in the place.
  void note(std::string_view matrix, Range rows);

 private:
  struct Held {
    HomeMatrix about;
    std::vector<float> memory;  // for a home in memory
    std::unique_ptr<Backing> lying;
    Ranges changed = {};
  };
  // Returns a matrix of `rows` of the place. The rows `there`, numbered within `rows`, are stored
  // from stored row `first` on.
  SlowMatrix for_kernel(Held& its, std::string name, Range rows, Ranges there, Index first);
  [[nodiscard]] Held& held(std::string_view matrix);
  [[nodiscard]] const Held& held(std::string_view matrix) const;

  Store* store_;
  std::map<std::string, Held, std::less<>> held_;
  bool noting_ = false;
};

}  // namespace redblue
