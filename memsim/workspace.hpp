#pragma once
// A source of slow matrices for a kernel's intermediates (S, f, q ...), which die with the kernel's
// scope. A kernel creates none itself, so that it runs on any store that its caller chooses.

#include <memory>
#include <optional>
#include <string>

#include "memsim/backing.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  virtual ~Workspace() = default;

  // `mostly`: the windows in which it will be read, for a store that lays it out by them. Without
  // it such a store takes the windows of the first write.
  virtual SlowMatrix matrix(std::string name, Index rows, Index cols,
                            std::optional<Window> mostly = std::nullopt) = 0;
};

// Intermediates in main memory. Must outlive the matrices that it makes.
class RamWorkspace : public Workspace {
 public:
  explicit RamWorkspace(Unwritten unwritten = Unwritten::nan) : unwritten_(unwritten) {}

  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly = std::nullopt) override;

  // Words that intermediates take: now, and the most so far.
  [[nodiscard]] Index live() const { return live_; }
  [[nodiscard]] Index peak() const { return peak_; }

 private:
  class Metered;
  Unwritten unwritten_;
  Index live_ = 0;
  Index peak_ = 0;
};

}  // namespace redblue
