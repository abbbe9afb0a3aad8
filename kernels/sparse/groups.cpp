// Handles several keys together. Their scores with the chunk are a tile, key by key. Each entry of
// a key adds to the key's scores with the rows that have an entry in the same column. The positions
// of these entries decide which pairs are live.

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/sparse/live_products.hpp"
#include "kernels/sparse/scores.hpp"
#include "kernels/sparse/sums.hpp"
#include "memsim/errors.hpp"
#include "memsim/unchecked.hpp"

namespace redblue {
namespace {

// The entries of a chunk by columns: for each entry its row in the chunk and its number in the
// chunk.
class ChunkColumns {
 public:
  ChunkColumns(const BlockPattern& of, Range I)
      : words_(LiveTile::words(I.size())), rows_(static_cast<std::size_t>(of.cols * words_)) {
    constexpr Index kMost = std::numeric_limits<std::int32_t>::max();
    require(stored_in(of, I) <= kMost && I.size() <= kMost / kKeysTogether,
            "a chunk whose entries and scores with the keys of a group 31 bits count");
    const ByColumns columns(of, I);
    const Index first = entries_of(of, I).begin;
    entries_.reserve(static_cast<std::size_t>(stored_in(of, I)));
    for (Index column = 0; column < of.cols; ++column) {
      for (const ByColumns::Entry& entry : columns[column]) {
        const Index i = entry.row - I.begin;
        entries_.push_back(
            {static_cast<std::int32_t>(i), static_cast<std::int32_t>(entry.entry - first)});
        rows_[static_cast<std::size_t>(column * words_ + i / 64)] |= std::uint64_t{1} << (i % 64);
      }
      offsets_.push_back(entries_.size());
    }
  }

  struct Entry {
    std::int32_t row, at;
  };
  [[nodiscard]] std::span<const Entry> operator[](Index column) const {
    const auto at = static_cast<std::size_t>(column);
    return std::span(entries_).subspan(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }
  // Returns the rows with an entry in the column, as bits.
  [[nodiscard]] std::span<const std::uint64_t> rows(Index column) const {
    return std::span(rows_).subspan(static_cast<std::size_t>(column * words_),
                                    static_cast<std::size_t>(words_));
  }

 private:
  Index words_;
  std::vector<std::uint64_t> rows_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> offsets_ = {0};
};

// The tile of scores with the present keys.
class GroupScores {
 public:
  GroupScores(Machine& machine, const SparseChunk& chunk, Index most)
      : chunk_(chunk),
        columns_(chunk.by.rows, chunk.I),
        live_(chunk.I.size()),
        s_(machine.initialize("s", most, chunk.I.size(), kUnset, Holds::scores)),
        stored_(static_cast<std::size_t>(chunk.by.d), -1) {}

  [[nodiscard]] const LiveTile& live() const { return live_; }
  [[nodiscard]] View scores() { return s_.part({0, live_.keys()}); }

  void make(Machine& machine, Range keys, const CsrEntries& a2) {
    const SparseRows& by = chunk_.by;
    constexpr float kDead = -std::numeric_limits<float>::infinity();
    find_columns(keys);
    live_.begin(keys.size());
    for (Index j = 0; j < keys.size(); ++j) {
      for (const Index column : columns_of(j)) {
        live_.add(j, columns_.rows(column));
      }
    }
    live_.end();
    Tile y = chunk_.beside.columns ? machine.initialize("y", by.d) : Tile();
    fill_pairs(live_, 0, by.softmax ? kDead : 0, scores());
    place_rows();
    for (Index j = 0; j < keys.size(); ++j) {
      if (y.words() > 0) {
        add_key_times_X(machine, {by.of.A2(), *chunk_.beside.columns, chunk_.beside.x}, a2,
                        keys.begin + j, y, [](Index) {});
        for (const Index column : columns_of(j)) {
          float* const word = View(y).at(0, 0) + column;
          add(machine, j, column, word);
          fill_word(machine, word, 0);
        }
        continue;
      }
      const float* word = a2.word(entries_of(by.of.A2(), keys.begin + j).begin);
      for (const Index column : columns_of(j)) {
        add(machine, j, column, word++);
      }
    }
  }

 private:
  // Finds the columns of each key, or of its y.
  void find_columns(Range keys) {
    of_keys_.clear();
    ends_ = {0};
    for (Index key = keys.begin; key < keys.end; ++key) {
      for (const Index l : chunk_.by.of.A2().row(key)) {
        if (!chunk_.beside.columns) {
          of_keys_.push_back(l);
          continue;
        }
        for (const ByColumns::Entry& at : (*chunk_.beside.columns)[l]) {
          if (std::exchange(stored_[static_cast<std::size_t>(at.row)], key) != key) {
            of_keys_.push_back(at.row);
          }
        }
      }
      ends_.push_back(of_keys_.size());
    }
    std::ranges::fill(stored_, -1);
  }
  [[nodiscard]] std::span<const Index> columns_of(Index j) const {
    const auto at = static_cast<std::size_t>(j);
    return std::span(of_keys_).subspan(ends_[at], ends_[at + 1] - ends_[at]);
  }

  // The offset of each row's first word in the tile of scores, and the distance between its words.
  struct Place {
    std::int32_t first, step;
  };
  void place_rows() {
    const View s = scores();
    const float* const begin = Unchecked(s).at(0, 0);
    places_.clear();
    for (Index i = 0; i < s.cols(); ++i) {
      places_.push_back(
          {static_cast<std::int32_t>(Unchecked(s).at(0, i / kPanel) - begin + i % kPanel),
           static_cast<std::int32_t>(Unchecked(s).stride(i / kPanel))});
    }
    begin_ = Unchecked(s).at(0, 0);
    values_ = chunk_.rows.values.words() > 0 ? ConstView(chunk_.rows.values).at(0, 0) : nullptr;
  }

  // s_ij += factor times the entry of row i in the column.
  void add(Machine& machine, Index j, Index column, const float* factor) {
    const auto key = static_cast<std::int32_t>(j);
    const float by = *factor;
    for (const ChunkColumns::Entry& entry : columns_[column]) {
      const Place& place = places_[static_cast<std::size_t>(entry.row)];
      begin_[place.first + key * place.step] += by * values_[entry.at];
    }
    if (machine.is_heard()) [[unlikely]] {
      for (const ChunkColumns::Entry& entry : columns_[column]) {
        const Place& place = places_[static_cast<std::size_t>(entry.row)];
        tell_term(machine, factor, values_ + entry.at, begin_ + place.first + key * place.step);
      }
    }
    machine.computed(Operations{.flops = 2 * std::ssize(columns_[column])});
  }

  const SparseChunk& chunk_;
  ChunkColumns columns_;
  LiveTile live_;
  Tile s_;
  std::vector<Index> stored_;  // for each column, the last key with an entry of y there
  std::vector<Index> of_keys_;
  std::vector<std::size_t> ends_;
  std::vector<Place> places_;
  float* begin_ = nullptr;
  const float* values_ = nullptr;
};

class GroupSums {
 public:
  GroupSums(Machine& machine, const SparseChunk& chunk, Index, SparseSums& sums)
      : by_(chunk.by),
        sums_(sums),
        rescale_(by_.softmax ? machine.initialize("rescale", chunk.I.size()) : Tile()) {}

  void add(GroupScores& scores, std::span<const SparseRow>, const Tile& a3) {
    const View s = scores.scores();
    if (by_.softmax) {
      raise_maximum(transposed(ConstView(s)), sums_.maximum, rescale_);
      if (rescales()) {
        scale_rows(sums_.sum, rescale_);
        if (by_.dense) {
          scale_rows(sums_.Z, rescale_);
        }
      }
      exponentiate(transposed(s), sums_.maximum, sums_.sum);
    } else {
      activate(by_.activation, s, s);
    }
    if (by_.dense) {
      add_live_rows(scores.live(), s, a3, sums_.Z);
      a3.machine().computed(Operations{.flops = 2 * scores.live().pairs() * by_.d});
    }
  }

 private:
  [[nodiscard]] bool rescales() const {
    const float* const factors = ConstView(rescale_).at(0, 0);
    return std::any_of(factors, factors + rescale_.words(), [](float x) { return x != 1; });
  }

  const SparseRows& by_;
  SparseSums& sums_;
  Tile rescale_;
};

class GroupGradients {
 public:
  GroupGradients(Machine& machine, const SparseChunk& chunk, Index most, SparseGradients& sums)
      : by_(chunk.by),
        sums_(sums),
        q_(machine.initialize("q", most, chunk.I.size(), kUnset, Holds::scores)) {}

  void add(GroupScores& scores, std::span<const SparseRow> keys, const Tile& a3) {
    const View s = scores.scores();
    const View q = q_.part({0, s.rows()});
    live_products(scores.live(), std::as_const(sums_.G), a3, q);
    Operations done{.flops = 2 * scores.live().pairs() * by_.d};
    if (by_.softmax) {
      exponential_gradient(s, std::as_const(sums_.L), std::as_const(sums_.v), q);
      done.elementwise = 4 * q.words();
    } else {
      activation_gradient(by_.activation, s, q, q);
    }
    add_sparse_products(q, keys, sums_.W);
    for (const SparseRow& key : keys) {
      done.flops += 2 * q.cols() * key.size();
    }
    a3.machine().computed(done);
  }

 private:
  const SparseRows& by_;
  SparseGradients& sums_;
  Tile q_;
};

template <class Of, class Sums>
void over_groups(Machine& machine, const SparseChunk& chunk, Sums& sums) {
  const SparseRows& by = chunk.by;
  const SlowCsr A2{by.of.A2(), chunk.io.in("A2")};
  const MetKeys met = by.met(chunk.I);
  std::optional<GroupScores> scores;
  std::optional<Of> of;
  if (met.number > 0) {
    scores.emplace(machine, chunk, met.together);
    of.emplace(machine, chunk, met.together, sums);
  }
  each_met_keys(machine, A2, met, by.together, [&](Range keys, const CsrEntries& a2) {
    const Tile a3 = by.dense ? machine.read(chunk.io.in("A3").row_block(keys)) : Tile();
    scores->make(machine, keys, a2);
    std::vector<SparseRow> rows;
    for (Index key = keys.begin; key < keys.end; ++key) {
      rows.push_back({by.of.A2().row(key), a2.word(entries_of(by.of.A2(), key).begin)});
    }
    of->add(*scores, rows, a3);
  });
}

}  // namespace

void add_groups(Machine& machine, const SparseChunk& chunk, SparseSums& sums) {
  over_groups<GroupSums>(machine, chunk, sums);
}

void add_groups(Machine& machine, const SparseChunk& chunk, SparseGradients& sums) {
  over_groups<GroupGradients>(machine, chunk, sums);
  sums.G.reset();
  sums.v.reset();
  sums.L.reset();
  const Tile W_t = std::move(sums.W);
  sums.W = machine.initialize("W", W_t.words());
  const ConstView from(W_t);
  float* const to = View(sums.W).at(0, 0);
  for (Index p = 0; p < from.panels(); ++p) {
    for (Index k = 0; k < from.rows(); ++k) {
      for (Index i = 0; i < from.panel_cols(p); ++i) {
        to[(p * kPanel + i) * from.rows() + k] = Unchecked(from).at(k, p)[i];
      }
    }
  }
  if (machine.is_heard()) [[unlikely]] {
    for (Index i = 0; i < from.cols(); ++i) {
      const Range row = {i * from.rows(), (i + 1) * from.rows()};
      tell(ToldStep{Operation::Form::map,
                    "copy",
                    {ConstView(sums.W), row, {0, 1}},
                    Old::overwritten,
                    {{from, {0, from.rows()}, {i, i + 1}}}});
    }
  }
}

}  // namespace redblue
