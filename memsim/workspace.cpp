#include "memsim/workspace.hpp"

#include <algorithm>
#include <utility>

namespace redblue {

class RamWorkspace::Metered final : public RamBacking {
 public:
  Metered(RamWorkspace& owner, Index rows, Index cols)
      : RamBacking(rows, cols, owner.unwritten_), owner_(owner), words_(rows * cols) {
    owner_.live_ += words_;
    owner_.peak_ = std::max(owner_.peak_, owner_.live_);
  }
  Metered(const Metered&) = delete;
  Metered& operator=(const Metered&) = delete;
  ~Metered() override { owner_.live_ -= words_; }

 private:
  RamWorkspace& owner_;
  Index words_;
};

SlowMatrix RamWorkspace::matrix(std::string name, Index rows, Index cols,
                                std::optional<Window> /* mostly */) {
  return {std::move(name), rows, cols, std::make_unique<Metered>(*this, rows, cols)};
}

}  // namespace redblue
