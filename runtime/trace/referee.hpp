#pragma once
// Whether a run uses only words that it has: of tiles that live, and set before they are used, by a
// read, by an initial value or by arithmetic. It keeps a bit a word in fast memory, and looks at
// words, not at terms of sums, so that it follows a run of any size.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/trace/follower.hpp"

namespace redblue {

class Referee final : public Follower {
 public:
  // Listens while it lives.
  explicit Referee(Machine& machine) : Follower(machine, Hears::moves_and_arithmetic) {}

  // Words that were used, or written, before anybody was told that they were set: by hand, or
  // never. Each counts once, until its tile dies.
  [[nodiscard]] Index by_hand() const { return by_hand_; }
  // Operands and results outside a tile that lives, or of shapes that do not fit together.
  [[nodiscard]] Index illegal() const { return illegal_; }
  // The first word by hand, and the first that is illegal, as messages; empty if there is none.
  [[nodiscard]] const std::string& first_by_hand() const { return first_by_hand_; }
  [[nodiscard]] const std::string& first_illegal() const { return first_illegal_; }
  [[nodiscard]] Index operations() const { return operations_; }
  // The multiplications and additions of products that were told. Fewer than the machine counted:
  // the others are by hand, too.
  [[nodiscard]] Index flops() const { return flops_; }
  // On one line: "legal", "legal, 12 words by hand: product takes c(0, 3), which nobody set" or
  // "illegal: add takes a tile that is gone".
  [[nodiscard]] std::string verdict() const;

 private:
  struct Known {
    std::string name;
    Index rows, columns;
    std::vector<bool> set;
  };
  void follow(const Event& event) override;
  void follow(const Operation& operation) override;
  void write(const Event& event);
  void use(std::string_view who, Known& tile, Index row, Index column);
  void use(std::string_view who, const TilePart& part);
  void set(const TilePart& part);
  // Null, and told, where the part leaves its tile, or that is dead.
  Known* tile_of(std::string_view who, const TilePart& part);
  void refuse(std::string what);

  std::unordered_map<std::uint64_t, Known> tiles_;
  Index by_hand_ = 0, illegal_ = 0, operations_ = 0, flops_ = 0;
  std::string first_by_hand_, first_illegal_;
};

}  // namespace redblue
