#pragma once
// A view that does not check indices, for the arithmetic of kernels/, which compares shapes once
// per tile. It is not installed: a user's code always checks indices.

#include "memsim/layout.hpp"

namespace redblue {

template <class Word>
class Unchecked {
 public:
  explicit Unchecked(const BasicView<Word>& view) : view_(view) { view_.check_valid(); }

  [[nodiscard]] Word* at(Index i, Index p) const { return view_.first_of(i, p); }
  [[nodiscard]] Index panel_cols(Index p) const { return view_.cols_of(p); }
  [[nodiscard]] Index stride(Index p) const { return view_.stride_of(p); }

 private:
  const BasicView<Word>& view_;
};

}  // namespace redblue
