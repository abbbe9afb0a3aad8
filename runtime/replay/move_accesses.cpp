#include "runtime/replay/move_accesses.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/replay/run_accesses.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Accesses MoveAccesses::take() {
  check();
  return std::move(found_);
}

void MoveAccesses::follow(const Event& event) {
  if (PhasePath::changes(event)) {
    path_.follow(event);
    return;
  }
  if (event.moved == 0) {
    return;
  }
  const ConstBlock& block = *event.block;
  const SlowMatrix& matrix = block.matrix();
  const Index weight = event.moved / block.words();
  const Index most = most_accesses(1);
  if (std::ssize(found_.in_order) + event.moved > most ||
      Words(matrix.rows()) * matrix.cols() * weight > Words(most)) {
    throw InputError(
        fmt::format("a run of more than {} accesses: take smaller extents", grouped(most)));
  }
  if (found_.stretches.empty() || found_.stretches.back().phase != path_.path()) {
    found_.stretches.push_back({found_.in_order.size(), path_.path()});
  }
  const Index words_of_row = matrix.cols() * weight;
  std::vector<std::uint32_t>& units = units_[{matrix.name(), matrix.rows(), words_of_row, weight}];
  units.resize(static_cast<std::size_t>(matrix.rows() * words_of_row), kUnknown);
  const Access::Kind kind =
      event.kind == Event::Kind::read ? Access::Kind::need : Access::Kind::overwrite;
  for (Index row = block.row_range().begin; row < block.row_range().end; ++row) {
    for (const Range columns : block.stored(row)) {
      for (Index word = columns.begin * weight; word < columns.end * weight; ++word) {
        std::uint32_t& unit = units[static_cast<std::size_t>(row * words_of_row + word)];
        if (unit == kUnknown) {
          unit = static_cast<std::uint32_t>(found_.widths.size());
          found_.widths.push_back(1);
        }
        found_.in_order.push_back({kind, unit});
      }
    }
  }
}

}  // namespace redblue
