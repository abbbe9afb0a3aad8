#pragma once
// Makes the slow matrices for a kernel's intermediates (S, f, q ...), which die with the kernel's
// scope. Kernels do not create matrices themselves, so they run on any store that the caller
// chooses.

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

  // `mostly`: the windows in which the matrix will be read, for a store that lays it out in such
  // windows. By default such a store uses the windows of the first write.
  virtual SlowMatrix matrix(std::string name, Index rows, Index cols,
                            std::optional<Window> mostly = std::nullopt) = 0;
};

// Intermediates in main memory. Must outlive the matrices that it makes.
class RamWorkspace : public Workspace {
 public:
  explicit RamWorkspace(Unwritten unwritten = Unwritten::nan) : unwritten_(unwritten) {}

  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly = std::nullopt) override;

  // The words of all intermediates: now, and the most so far.
  [[nodiscard]] Index live() const { return live_; }
  [[nodiscard]] Index peak() const { return peak_; }

 private:
  class Metered;
  Unwritten unwritten_;
  Index live_ = 0;
  Index peak_ = 0;
};

}  // namespace redblue
