#pragma once
// The words that a run moves, where nobody hears its arithmetic: a cache that takes the place of
// the slow store's side. A word that is read is needed, a word that is written is overwritten, row
// by row of their blocks. Words of slow matrices of one name and shape are the same. An element of
// weight w (Machine::weigh) is w words. Moved with another weight, it is other words.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/replay/accesses.hpp"
#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

class MoveAccesses final : public Follower {
 public:
  // Listens while it lives.
  explicit MoveAccesses(Machine& machine) : Follower(machine) {}

  // Once, after the run. Throws: InputError beyond the most accesses to words.
  [[nodiscard]] Accesses take();

 private:
  void follow(const Event& event) override;

  Accesses found_;
  PhasePath path_;
  // The units of the words of a matrix, by name, rows, words of a row, and weight.
  std::map<std::tuple<std::string, Index, Index, Index>, std::vector<std::uint32_t>> units_;
};

}  // namespace redblue
