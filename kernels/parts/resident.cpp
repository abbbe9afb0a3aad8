#include "kernels/parts/resident.hpp"

#include <algorithm>
#include <string_view>

#include "kernels/arithmetic/arithmetic.hpp"

namespace redblue {

Index ResidentPlan::key_blocks() const {
  return problem.mask.full() ? ceil_div(resident, keys) + ceil_div(problem.shape.m - resident, keys)
                             : problem.shape.m;
}

Words ResidentPlan::resident_words() const {
  const Index d = problem.shape.d;
  const Index matrices = problem.inputs == Inputs::weighted ? 2 : 0;
  return Words(matrices) * d * d + problem.key_words() * resident;
}

Index ResidentPlan::first_resident() const {
  const Units all = units();
  return std::min(resident, size_of(all.met(0)));
}

// The keys that the units meet, less the keys that are resident when they meet them.
Words ResidentPlan::passing_keys() const {
  if (resident == problem.shape.m) {
    return resident - size_of(last) - first_resident();
  }
  const Units all = units();
  const Words met = all.sum().met;
  return met.overflowed() ? met
                          : Words(met.value() - all.shared(resident).value() - first_resident());
}

Words ResidentPlan::block_words() const {
  const Index longest = problem.mask.full() ? problem.shape.m - resident : units().sum().longest;
  return problem.key_words() * std::min(keys, longest);
}

Words ResidentPlan::last_block_words() const {
  Index longest = 0;
  for (const Range range : last) {
    longest = std::max(longest, range.size());
  }
  return problem.key_words() * std::min(keys, longest);
}

Resident::Resident(Machine& machine, const ResidentPlan& by, const Operands& io)
    : machine_(machine), by_(by), io_(io), units_(by.units()) {
  if (by.problem.staying > 0) {
    unmet_ = by.problem.keys(by.problem.staying_queries());
  }
  const Phase phase(machine, "resident");
  const Ranges first = units_.met(0);
  const Tile index = units_.read_index(machine, units_[0]);
  if (by.problem.inputs == Inputs::weighted) {
    X_ = machine.read(io.in("X").whole());
    Y_ = machine.read(io.in("Y").whole());
  }
  if (first.front().size() >= by.resident) {
    const Range J{first.front().begin, first.front().begin + by.resident};
    A2_ = machine.read(io.in(input_names(by.problem).keys).row_block(J));
    A3_ = own_values(J);
    held_ = {{J, 0}};
    return;
  }
  const auto room = [&](std::string_view name, Index width) {
    return machine.initialize(name, by.resident, width, Holds::operands);
  };
  A2_ = room(input_names(by.problem).keys, by.problem.shape.d);
  if (by.problem.sharing == Sharing::none) {
    A3_ = room(input_names(by.problem).values, by.problem.shape.dv);
  }
  Index left = by.resident;
  for (const Range range : first) {
    for (const Range part : blocks(std::min(range.size(), left), by.keys)) {
      const Range J = part_of(range, part);
      const Tile a2 = machine.read(io.in(input_names(by.problem).keys).row_block(J));
      hold(J, a2, own_values(J));
    }
    left -= std::min(range.size(), left);
  }
}

std::optional<Tile> Resident::own_values(Range J) const {
  if (by_.problem.sharing != Sharing::none) {
    return std::nullopt;
  }
  return machine_.read(io_.in(input_names(by_.problem).values).row_block(J));
}

std::vector<Resident::Passing> Resident::passing(Index unit) {
  Ranges here;
  for (const Held& held : held_) {
    here.push_back(held.keys);
  }
  const Ranges others = without(units_.met(unit), here);
  // With room for all keys no key is dropped.
  const Ranges next =
      by_.resident == by_.problem.shape.m ? Ranges{{0, by_.resident}} : units_.met(unit + 1);

  std::vector<Held> still;
  for (const auto& [keys, slot] : held_) {
    for (const Range both : common(Ranges{keys}, next)) {
      still.push_back({both, slot + both.begin - keys.begin});
    }
  }
  held_ = std::move(still);
  Index room = size_of(free_slots());
  Ranges staying;  // as many of the others as fit
  for (const Range range : common(others, next)) {
    if (const Index size = std::min(range.size(), room); size > 0) {
      staying.push_back({range.begin, range.begin + size});
      room -= size;
    }
  }
  std::vector<Passing> all;
  for (const bool stays : {false, true}) {
    const Pieces pieces(stays ? staying : without(others, staying), by_.keys);
    for (Index k = 0; k < pieces.size(); ++k) {
      all.push_back({pieces[k], stays});
    }
  }
  return all;
}

// The rows of the tiles that hold no key.
Ranges Resident::free_slots() const {
  Ranges taken;
  for (const auto& [keys, slot] : held_) {
    taken.push_back({slot, slot + keys.size()});
  }
  std::ranges::sort(taken, {}, &Range::begin);
  return without({{0, by_.resident}}, taken);
}

void Resident::hold(Range J, const Tile& a2, const std::optional<Tile>& a3) {
  Index done = 0;
  for (const Range slots : free_slots()) {
    const Index size = std::min(slots.size(), J.size() - done);
    if (size == 0) {
      break;
    }
    const Range from{done, done + size};
    const Range to{slots.begin, slots.begin + size};
    copy(a2.part(from), A2_.part(to));
    if (a3) {
      copy(a3->part(from), A3_->part(to));
    }
    held_.push_back({part_of(J, from), to.begin});
    done += size;
  }
  std::ranges::sort(held_, {}, [](const Held& held) { return held.keys.begin; });
  std::vector<Held> joined;  // joins neighbours that have neighbouring slots
  for (const Held& held : held_) {
    if (!joined.empty() && joined.back().keys.end == held.keys.begin &&
        joined.back().slot + joined.back().keys.size() == held.slot) {
      joined.back().keys.end = held.keys.end;
    } else {
      joined.push_back(held);
    }
  }
  held_ = std::move(joined);
}

PhaseCost resident_cost(const ResidentPlan& by) {
  const Index d = by.problem.shape.d;
  const Words keys = by.problem.key_words() * by.first_resident();
  const Words weights = by.problem.inputs == Inputs::weighted ? Words(2) * d * d : Words(0);
  const Words passing = by.problem.mask.full() ? Words(0) : by.block_words();
  Units::Sum first = by.units().sum({0, 1});
  first.regrouped = false;  // the phase `core` counts it, and reads the index again
  return with_index({.path = "resident",
                     .reads = weights + keys,
                     .writes = 0,
                     .peak = by.resident_words() + passing + first.index_live,
                     .flops = 0},
                    first);
}

NestWriter::Tiles resident_tiles(const ResidentPlan& by) {
  const Index d = by.problem.shape.d;
  NestWriter::Tiles tiles = key_tiles(by.problem, by.first_resident());
  if (by.problem.inputs == Inputs::weighted) {
    tiles.insert(tiles.begin(), {{"X", d, d}, {"Y", d, d}});
  }
  return tiles;
}

void resident_nest(NestWriter& nest, const ResidentPlan& by) {
  nest.phase("resident", [&] {
    index_nest(nest, by.units().sum({0, 1}));
    nest.read(resident_tiles(by));
  });
}

std::string text_of(std::string text, const NestLoop& I) {
  for (std::size_t at = text.find("_I"); at != std::string::npos; at = text.find("_I", at)) {
    text.replace(at, 2, "_" + I.variable);
    at += 1 + I.variable.size();
  }
  return text;
}

void each_row_block_nest(NestWriter& nest, const ResidentPlan& by, const NestWriter::Tiles& stays,
                         const RowsNest& rows) {
  const Problem& problem = by.problem;
  const NestLoop I("I", "queries", problem.passing_queries().size(), by.rows);
  const NestLoop R("R", "queries that stay", problem.staying, std::max<Index>(problem.staying, 1));
  const NestLoop resident("J", "resident keys", by.resident, by.keys);
  const NestLoop passing =
      problem.mask.full() ? NestLoop("J", "keys that pass", problem.shape.m - by.resident, by.keys)
                          : I.met("J", "keys that pass", by.passing_keys().value(),
                                  by.units().sum().longest, by.keys);
  const auto meet = [&](const NestWriter::Tiles& reads) {
    nest.step(rows.meet, reads);
    if (problem.staying > 0) {
      nest.step(text_of(rows.meet, R) + ", of keys that are new to them");
    }
  };
  const auto all_blocks = [&](const NestWriter::Tiles& beside) {
    nest.loop(I, beside, [&] {
      rows.begin(nest, I);
      nest.phase("core", [&] {
        index_nest(nest, by.units().sum());
        nest.loop(resident, rows.stays(I), [&] { meet({}); });
        nest.loop(passing, rows.stays(I), [&] { meet(key_tiles(problem, passing)); });
      });
      rows.end(nest, I);
    });
  };
  if (problem.staying == 0) {
    return all_blocks(stays);
  }
  nest.loop(R, stays, [&] {
    rows.begin(nest, R);
    nest.phase("core", [&] { index_nest(nest, by.units().staying()); });
    all_blocks(rows.stays(R));
    nest.phase("core", [&] {
      const NestLoop last("J", "keys that no others meet", size_of(by.last), by.keys);
      nest.loop(last, [&] { nest.step(text_of(rows.meet, R), key_tiles(problem, last)); });
    });
    rows.end(nest, R);
  });
}

// Tries row blocks of each size with the most keys that fit with them and with the streaming block
// of keys. With smaller row blocks fewer keys stream, but more often.
Blocks most_resident(const Problem& problem, Index M, Objective objective,
                     const CostOfBlocks& cost_of) {
  constexpr Index kBusyRows = 3 * kPanel;
  constexpr Index kStripKeys = 96;
  const Index n = problem.passing_queries().size();
  const Index m = problem.shape.m;
  const auto blocks_of = [](Index r, Index c, Index k) {
    return Blocks{{"Br", r}, {"Bc", c}, {"resident", k}};
  };
  const auto fits = [&](Index r, Index c, Index k) {
    return total(cost_of(problem, blocks_of(r, c, k))).peak <= Words(M);
  };
  const auto most_rows = [&](Index c, Index k) {
    return even(n, largest(std::min(n, M), [&](Index tried) { return fits(tried, c, k); }));
  };
  const auto most_keys = [&](Index r) {
    const Index c = problem.mask.full() ? busy_keys(problem) : 1;
    return largest(std::min(m, M), [&](Index tried) { return fits(r, c, tried); });
  };
  const auto words = [&](Index r, Index k) {
    const PhaseCost all = total(cost_of(problem, blocks_of(r, 1, k)));
    return all.reads + all.writes;
  };

  // Whole strips of queries and of keys, if they fit: 48 queries times a power of two, with as many
  // resident keys as fit. The fewest words win, and among equals the most queries.
  const auto wide_rows = [&] {
    Index c = std::min(m, kStripKeys);
    while (c > busy_keys(problem) && !fits(kBusyRows, c, 1)) {
      c = std::max(c / 2, busy_keys(problem));
    }
    RowsBeside wide{std::min(most_rows(1, 1), kPanel), 1};
    for (Index r = kBusyRows; r <= n && fits(r, c, 1); r *= 2) {
      const Index k = largest(std::min(m, M), [&](Index tried) { return fits(r, c, tried); });
      if (r == kBusyRows || words(r, k) <= words(wide.rows, wide.other)) {
        wide = {r, k};
      }
    }
    return wide;
  };

  RowsBeside best{most_rows(1, 1), 1};
  const bool in_time = objective == Objective::time;
  const Index least_rows = in_time ? std::min(n, kBusyRows) : 1;
  const Index least_keys = in_time ? busy_keys(problem) : 1;
  if (best.rows < n && fits(least_rows, least_keys, m)) {
    Index c = std::min(m, kStripKeys);
    while (c > 1 && !fits(std::min(n, kBusyRows), c, m)) {
      c /= 2;
    }
    best = {most_rows(c, m), m};
  } else if (best.rows < n && in_time) {
    best = wide_rows();
  } else if (best.rows < n) {
    best = fewest_words_beside(n, best.rows, most_keys(1), most_keys, words, sizes_tried(problem));
    if (!problem.mask.full()) {  // no more room than the resident keys need
      const Words fewest = words(best.rows, best.other);
      best.other =
          best.other -
          largest(best.other,
                  [&](Index less) { return words(best.rows, best.other - less + 1) == fewest; }) +
          1;
    }
  }
  const Index c =
      largest(std::min(m, M), [&](Index tried) { return fits(best.rows, tried, best.other); });
  return blocks_of(best.rows, even(std::max(best.other, m - best.other), c), best.other);
}

}  // namespace redblue
