#pragma once
// Hands a kernel the slow matrices for its intermediates (S, f, q ...), which die with the
// kernel's scope. A kernel creates none of them itself, so the same code runs on whatever
// store its caller chose.

#include <memory>
#include <optional>
#include <string>

#include "memsim/slow_matrix.hpp"

namespace redblue {

class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  virtual ~Workspace() = default;

  // `mostly`: the windows that it will be read in; else those that it is written in first.
  virtual SlowMatrix matrix(std::string name, Index rows, Index cols,
                            std::optional<Window> mostly = std::nullopt) = 0;
};

// Intermediates in main memory. It must outlive the matrices that it gave.
class RamWorkspace : public Workspace {
 public:
  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly = std::nullopt) override;

  // Words of the store in use by intermediates: now, and at most so far.
  [[nodiscard]] Index live() const { return live_; }
  [[nodiscard]] Index peak() const { return peak_; }

 private:
  class Metered;
  Index live_ = 0;
  Index peak_ = 0;
};

}  // namespace redblue
