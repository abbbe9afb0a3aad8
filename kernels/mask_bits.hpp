#pragma once
// The live pairs of a mask as bits. Masks of many short ranges use them: 64 keys of a query are one
// word, where ranges would need a search. A value without references; several threads may read it.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/mask_index.hpp"
#include "memsim/range.hpp"

namespace redblue {

struct MaskRun;

class MaskBits {
 public:
  // Requires: runs that cover [0, queries) in order, with keys in [0, keys).
  MaskBits(Index queries, Index keys, std::span<const MaskRun> runs);

  // Returns the bits of 64 keys: bit k is set if the query meets the key first + k. Bits of keys
  // beyond the last one are 0. Requires: 0 <= first < keys.
  [[nodiscard]] std::uint64_t from(Index query, Index first) const {
    const std::uint64_t* const at = row(query) + first / kWord;
    const Index shift = first % kWord;
    return shift == 0 ? at[0] : at[0] >> shift | at[1] << (kWord - shift);
  }
  // The same as the functions of Mask with these names.
  [[nodiscard]] Index pairs(Range queries, Range keys) const;
  [[nodiscard]] Range hull(Range queries, Range keys) const;
  [[nodiscard]] Ranges keys(Range queries) const;

  // Returns the bits with queries and keys swapped.
  [[nodiscard]] MaskBits transposed() const;

 private:
  static constexpr Index kWord = 64;

  MaskBits(Index queries, Index keys);
  // One word more than the keys need, which stays 0, so that from() can read two words.
  [[nodiscard]] static Index words_for(Index keys) { return ceil_div(keys, kWord) + 1; }
  [[nodiscard]] const std::uint64_t* row(Index query) const {
    return words_.data() + query * stride_;
  }
  [[nodiscard]] std::uint64_t* row(Index query) { return words_.data() + query * stride_; }

  Index queries_, keys_, stride_;
  std::vector<std::uint64_t> words_;
};

}  // namespace redblue
