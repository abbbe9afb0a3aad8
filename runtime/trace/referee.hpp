#pragma once
// Checks that a run uses only words that it has. The tile must be live. The word must have been set
// by a read, an initial value or reported arithmetic. Referee keeps one bit for each word in fast
// memory. It checks words and not the terms of sums, so that it can follow a run of any size.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/trace/follower.hpp"

namespace redblue {

class Referee final : public Follower {
 public:
  // Follows the machine while it lives.
  explicit Referee(Machine& machine) : Follower(machine, Hears::moves_and_arithmetic) {}

  // The number of words used or written before a read, an initial value or a reported operation set
  // them. The kernel set them by hand, or never. Each word counts once in the life of its tile.
  [[nodiscard]] Index by_hand() const { return by_hand_; }
  // The number of violations: operands or results outside a live tile, or shapes that do not fit
  // together.
  [[nodiscard]] Index illegal() const { return illegal_; }
  // Messages about the first word by hand and the first violation; empty if none occurred.
  [[nodiscard]] const std::string& first_by_hand() const { return first_by_hand_; }
  [[nodiscard]] const std::string& first_illegal() const { return first_illegal_; }
  [[nodiscard]] Index operations() const { return operations_; }
  // The multiplications and additions of reported products. If the machine counted more, the others
  // were done by hand.
  [[nodiscard]] Index flops() const { return flops_; }
  // Returns "legal", or one line with the first words by hand or the first violation, such as
  // "legal, 12 words by hand: ..." or "illegal: add takes a tile that is gone".
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
  // Returns null and reports a violation if the tile is gone, or if the part exceeds it.
  Known* tile_of(std::string_view who, const TilePart& part);
  void refuse(std::string what);

  std::unordered_map<std::uint64_t, Known> tiles_;
  Index by_hand_ = 0, illegal_ = 0, operations_ = 0, flops_ = 0;
  std::string first_by_hand_, first_illegal_;
};

}  // namespace redblue
