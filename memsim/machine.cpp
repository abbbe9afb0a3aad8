#include "memsim/machine.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

namespace redblue {
namespace {

std::string text(Index rows, Index cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

// A list of indices without stored values: the caller knows the indices, and the machine only
// counts them.
class ListedIndices final : public Backing {
 public:
  void read(Range, Range, std::span<float>) const override {}
  void write(Range, Range, std::span<const float>) override {}
};

SlowMatrix list_of_indices(Index words) {
  return SlowMatrix("index", words, 1, std::make_unique<ListedIndices>()).holding(Holds::indices);
}

// Calls visit(rows, columns, words of the tile) for each part of a block that its tile stores
// between two cuts. The cuts are `cut` columns of the tile apart.
template <class Visit>
void each_between_cuts(Range rows, Range columns, Orientation orientation, Index cut,
                       const Visit& visit) {
  const bool straight = orientation == Orientation::straight;
  const Range along = straight ? columns : rows;  // the columns of the tile
  const Index height = straight ? rows.size() : columns.size();
  for (const Range part : blocks(along.size(), std::min(cut, along.size()))) {
    const Range between = part_of(along, part);
    visit(straight ? rows : between, straight ? between : columns,
          Range{part.begin * height, part.end * height});
  }
}

template <class Word>
std::span<Word> some_of(std::span<Word> words, Range part) {
  return words.subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.size()));
}

}  // namespace

Machine::Machine(Index M, const std::vector<Index>& inner)
    : Machine(M, inner, Arena::Tiles::slide) {}

Machine::Machine(Index M, Arena::Tiles tiles) : Machine(M, {}, tiles) {}

Machine::Machine(Index M, const std::vector<Index>& inner, Arena::Tiles tiles)
    : capacity_((require(M >= 1, "M is at least one word"), M)), arena_(M, tiles) {
  for (auto words = inner.rbegin(); words != inner.rend(); ++words) {
    inner_.emplace_front(*words, inner_.empty() ? nullptr : &inner_.front());
  }
}

void Machine::weigh(Holds holds, Index words) {
  require(words >= 1, "a word weighs at least one word");
  require(words == 1 || inner_.empty(), "a machine of one level");
  require(live() == 0 && total(phases()).io == IoCount(), "a machine that has not worked yet");
  weights_[holds] = words;
}

Machine::~Machine() {
  for (Fetch* fetch : fetches_) {
    fetch->wait();
  }
  for (Stream* stream : streams_) {
    stream->machine_ = nullptr;
  }
  for (Phase* phase : open_) {
    phase->machine_ = nullptr;
  }
  for (const Arena::Slot* slot : arena_.living()) {
    slot->tile->let_go();
  }
}

Tile Machine::initialize(std::string_view name, Index rows, Index cols, float value, Holds holds,
                         CutEvery cut) {
  Tile tile = charge(place(name, rows, cols, holds), rows, cols, cut);
  std::fill_n(address(*tile.slot_), tile.words(), value);
  if (!listeners_.empty()) {
    Event begun = event(Event::Kind::initialize, tile);
    begun.value = value;
    tell(begun);
  }
  return tile;
}

Tile Machine::initialize(std::string_view name, Index rows, Index cols, Unset, Holds holds) {
  Tile tile = charge(place(name, rows, cols, holds), rows, cols, {});
#ifndef NDEBUG
  std::fill_n(address(*tile.slot_), tile.words(), std::numeric_limits<float>::quiet_NaN());
#endif
  if (!listeners_.empty()) {
    Event unset = event(Event::Kind::initialize, tile);
    unset.unset = true;
    tell(unset);
  }
  return tile;
}

Tile Machine::read(const ConstBlock& block, CutEvery cut) {
  return read(block, Orientation::straight, cut);
}

Tile Machine::read(const Transposed<ConstBlock>& block, CutEvery cut) {
  return read(block.of, Orientation::transposed, cut);
}

Tile Machine::read_indices(Index words, Index live) {
  if (words == 0) {
    return {};
  }
  ask();
  const SlowMatrix list = list_of_indices(words);
  Tile tile = charge(place(list.name(), live, 1, list.holds()), live, 1, {});
  std::fill_n(address(*tile.slot_), live, 0.0F);
  count_read(tile, list.whole(), Orientation::straight);
  return tile;
}

void Machine::write_indices(const Tile& tile, Index words) {
  if (words == 0) {
    return;
  }
  require(tile.words() > 0 && &tile.machine() == this, "a tile that is written is this machine's");
  ask();
  const SlowMatrix list = list_of_indices(words);
  count_write(tile, list.whole(), Orientation::straight);
}

Tile Machine::read(const ConstBlock& block, Orientation orientation, CutEvery cut) {
  const Range rows = block.row_range(), columns = block.column_range();
  const Backing& store = *block.matrix().backing_;
  Tile tile = tile_of(block, orientation, cut, [&](std::span<float> to) {
    each_between_cuts(rows, columns, orientation, cut.columns, [&](Range R, Range C, Range words) {
      store.read_tile(R, C, orientation, some_of(to, words));
    });
  });
  count_read(tile, block, orientation);
  return tile;
}

void Machine::begin_read(Stream::Held& held, Orientation orientation, bool ahead) {
  const ConstBlock& block = held.block;
  if (!ahead) {
    held.tile = read(block, orientation, {});
    return;
  }
  fetches_.reserve(fetches_.size() + 1);  // nothing may fail once the read is in flight
  held.tile = tile_of(block, orientation, {}, [&](std::span<float> to) {
    const Backing& store = *block.matrix().backing_;
    held.fetch = store.fetch_tile(block.row_range(), block.column_range(), orientation, to);
    if (held.fetch == nullptr) {
      store.read_tile(block.row_range(), block.column_range(), orientation, to);
    }
  });
  if (held.fetch != nullptr) {
    fetches_.push_back(held.fetch.get());
  } else {
    count_read(held.tile, block, orientation);
  }
}

void Machine::end_read(Stream::Held& held, Orientation orientation) {
  if (held.fetch == nullptr) {
    return;
  }
  const std::unique_ptr<Fetch> fetch = std::move(held.fetch);
  std::erase(fetches_, fetch.get());
  try {
    fetch->finish();
  } catch (...) {
    forget(held.tile);
    throw;
  }
  count_read(held.tile, held.block, orientation);
}

void Machine::count_read(const Tile& tile, const ConstBlock& block, Orientation orientation) {
  const Index words = weight_of(block);
  meter_.read(words, block.holds());
  tell(Event::Kind::read, tile, block, orientation, words);
}

template <class Fill>
Tile Machine::tile_of(const ConstBlock& block, Orientation orientation, CutEvery cut,
                      const Fill& fill) {
  ask();
  const bool straight = orientation == Orientation::straight;
  const Index rows = straight ? block.rows() : block.cols();
  const Index cols = straight ? block.cols() : block.rows();
  Arena::Slot* slot = place(block.matrix().name(), rows, cols, block.holds());
  try {
    fill(std::span(address(*slot), static_cast<std::size_t>(slot->words)));
  } catch (...) {
    arena_.release(slot);
    throw;
  }
  return charge(slot, rows, cols, cut);
}

void Machine::write(const Tile& tile, const Block& block) {
  write(tile, block, Orientation::straight);
}

void Machine::write(const Tile& tile, const Transposed<Block>& block) {
  write(tile, block.of, Orientation::transposed);
}

void Machine::write(const Tile& tile, const Block& block, Orientation orientation) {
  const ConstBlock to = block;
  const bool straight = orientation == Orientation::straight;
  require(tile.words() > 0 && &tile.machine() == this, "a tile that is written is this machine's");
  require(tile.rows() == (straight ? to.rows() : to.cols()) &&
              tile.cols() == (straight ? to.cols() : to.rows()),
          "a tile is written to a block of its own shape");
  ask();
  const std::span<const float> words(address(*tile.slot_), static_cast<std::size_t>(tile.words()));
  each_between_cuts(to.row_range(), to.column_range(), orientation, tile.cut(),
                    [&](Range R, Range C, Range part) {
                      block.matrix_->backing_->write_tile(R, C, orientation, some_of(words, part));
                    });
  count_write(tile, to, orientation);
}

void Machine::count_write(const Tile& tile, const ConstBlock& block, Orientation orientation) {
  const Index words = weight_of(block);
  meter_.write(words, block.holds());
  tell(Event::Kind::write, tile, block, orientation, words);
}

template <class V>
V Tile::view(Range rows, Range columns) const {
  const auto within = [](Range range, Index extent) {
    return 0 <= range.begin && range.begin < range.end && range.end <= extent;
  };
  require(within(rows, rows_) && within(columns, cols_), "a part lies inside its tile");
  // The first column of the cut block. The test avoids a slow division in the usual case, 0.
  const Index first = columns.begin < cut_ ? 0 : columns.begin / cut_ * cut_;
  const Index width = std::min(cut_, cols_ - first);
  const Index begin = columns.begin - first, panel = begin / kPanel * kPanel;
  require(columns.end <= first + width, "a part has no cut of its tile between its columns");
  require(begin == panel || columns.end - first <= panel + kPanel,
          "a part begins with a panel of its tile, or lies within one");
  return {*machine_,
          machine_->tiles_made(),
          machine_->address(*slot_) + (first + panel) * rows_ + begin - panel,
          rows_,
          width - panel,
          rows.begin,
          rows.size(),
          columns.size()};
}

View Tile::part(Range rows, Range columns) {
  return view<View>(rows, columns);
}

ConstView Tile::part(Range rows, Range columns) const {
  return view<ConstView>(rows, columns);
}

void Tile::refuse(Index i, Index j) const {
  if (slot_ == nullptr) {
    refuse_nothing();
  }
  throw ShapeMismatch(slot_->name + "(" + std::to_string(i) + ", " + std::to_string(j) +
                      ") leaves " + slot_->name + ", which is " + text(rows_, cols_));
}

void Tile::refuse_whole() const {
  if (slot_ == nullptr) {
    refuse_nothing();
  }
  throw ShapeMismatch(slot_->name + " is cut: arithmetic takes a part between two cuts");
}

void Tile::refuse_nothing() {
  throw ShapeMismatch(
      "a tile of 0 x 0 has no words: it was reset, moved, never made, or its "
      "machine is gone");
}

template <class Word>
void BasicView<Word>::refuse_if_old() const {
  if (tiles_made_ != machine_->tiles_made()) {
    throw ShapeMismatch(
        "a view is used after a new tile was made, which may have moved its words: take the view "
        "from its tile again");
  }
}
template void BasicView<float>::refuse_if_old() const;
template void BasicView<const float>::refuse_if_old() const;

template <class Word>
void BasicView<Word>::refuse(const char* what, Index which) const {
  throw ShapeMismatch(std::string(what) + " " + std::to_string(which) + " leaves a view of " +
                      machine_->name_at(panels_) + ", which is " + text(rows_, cols_));
}
template void BasicView<float>::refuse(const char*, Index) const;
template void BasicView<const float>::refuse(const char*, Index) const;

Stream Machine::stream(const BlockSequence& blocks, Index depth) {
  return {*this, blocks, Orientation::straight, depth};
}

Stream Machine::stream(const Transposed<BlockSequence>& blocks, Index depth) {
  return {*this, blocks.of, Orientation::transposed, depth};
}

Arena::Slot* Machine::place(std::string_view name, Index rows, Index cols, Holds holds) {
  require(rows > 0 && cols > 0, "a tile has at least one row and one column");
  const Words words = Words(rows) * cols;
  const Index weight = (words * weights_[holds]).value();
  const Index missing = weight - (capacity_ - live());
  if (missing > 0) {
    throw FastMemoryOverflow(meter_.refusal(name, weight, capacity_, contents()), missing);
  }
  if (!fetches_.empty() && arena_.slides_for(words.value())) {
    for (Fetch* fetch : fetches_) {
      fetch->wait();
    }
  }
  Arena::Slot* const slot = arena_.place(name, words.value());
  slot->holds = holds;
  return slot;
}

Tile Machine::charge(Arena::Slot* slot, Index rows, Index cols, CutEvery cut) {
  require(cut.columns > 0, "a tile has at least one column between two cuts");
  meter_.charge(weight_of(*slot), slot->holds);
  return {*this, slot, rows, cols, cut};
}

void Machine::discharge(const Arena::Slot& slot) noexcept {
  meter_.discharge(weight_of(slot), slot.holds);
}

void Machine::remove(Tile& tile) noexcept {
  discharge(*tile.slot_);
  tell(Event::Kind::remove, tile);
  arena_.release(tile.slot_);
}

void Machine::forget(Tile& tile) noexcept {
  discharge(*tile.slot_);
  arena_.release(tile.slot_);
  tile.let_go();
}

void Machine::enter(Phase& phase, std::string_view name) {
  open_.reserve(open_.size() + 1);  // nothing may fail once the phase is entered
  meter_.enter(name);
  for (Level& level : inner_) {
    level.meter_.enter(name);
  }
  open_.push_back(&phase);
  tell({.kind = Event::Kind::enter_phase, .name = meter_.phase().name, .live = live()});
}

void Machine::leave(Phase& phase) noexcept {
  std::erase(open_, &phase);
  tell({.kind = Event::Kind::leave_phase, .name = meter_.phase().name, .live = live()});
  meter_.leave();
  for (Level& level : inner_) {
    level.meter_.leave();
  }
}

std::string Machine::contents() const {
  std::string all;
  for (const Arena::Slot* slot : arena_.living()) {
    all += (all.empty() ? "" : ", ") + slot->name + " " + std::to_string(weight_of(*slot));
  }
  return all;
}

const Arena::Slot* Machine::slot_at(const float* word) const {
  for (const Arena::Slot* slot : arena_.living()) {
    const float* const first = address(*slot);
    if (first <= word && word < first + slot->words) {
      return slot;
    }
  }
  return nullptr;
}

std::string Machine::name_at(const float* word) const {
  const Arena::Slot* const slot = slot_at(word);
  return slot != nullptr ? slot->name : "a tile that is gone";
}

TilePart Machine::part_of(const ConstView& view) const {
  const Arena::Slot* const slot = slot_at(view.panels_);
  require(slot != nullptr, "an operand is of a tile that lives");
  // Invert the layout: subtract the cut blocks before the view's, then the whole panels before its
  // panel. The remaining words are columns of the same panel before the view.
  const Index all = view.panels_ - address(*slot);
  const Index first = all / (slot->tile->cut() * view.height_) * slot->tile->cut();
  const Index before = all - first * view.height_;
  const Index panel = before / (kPanel * view.height_) * kPanel;
  return {.tile = slot->id,
          .row = view.row_,
          .column = first + panel + before - panel * view.height_,
          .rows = view.rows_,
          .columns = view.cols_};
}

TilePart Machine::part_of(const float* word) const {
  const Arena::Slot* const slot = slot_at(word);
  require(slot != nullptr, "a word is of a tile that lives");
  const Tile& tile = *slot->tile;
  const Index rows = tile.rows(), of_panel = kPanel * rows, all = word - address(*slot);
  const Index first = all / (tile.cut() * rows) * tile.cut(), at = all - first * rows;
  const Index panel = at / of_panel * kPanel;
  const Index width = std::min(kPanel, std::min(tile.cut(), tile.cols() - first) - panel);
  return {.tile = slot->id,
          .row = at % of_panel / width,
          .column = first + panel + at % of_panel % width,
          .rows = 1,
          .columns = 1};
}

}  // namespace redblue
