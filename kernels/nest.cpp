#include "kernels/nest.hpp"

#include <algorithm>
#include <iterator>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

std::string texts(const NestWriter::Tiles& tiles) {
  std::string list;
  for (const NestTile& tile : tiles) {
    list += (list.empty() ? "" : ", ") + tile.text();
  }
  return list;
}

}  // namespace

void NestLine::read(std::string_view matrix, Words words) {
  reads += words;
  moves.push_back({.matrix = std::string(matrix), .reads = words, .writes = 0});
}

void NestLine::write(std::string_view matrix, Words words) {
  writes += words;
  moves.push_back({.matrix = std::string(matrix), .reads = 0, .writes = words});
}

NestLoop::NestLoop(std::string_view its_variable, std::string_view what, Index of_all, Index most)
    : variable(its_variable),
      over(what),
      extent(of_all),
      block(std::min(most, of_all)),
      trips(ceil_div(of_all, most)) {}

NestLoop NestLoop::pieces(std::string_view its_variable, Index piece) const {
  NestLoop loop(its_variable, variable, block, piece);
  loop.extent = extent;
  loop.whole = variable;
  return loop;
}

NestLoop NestLoop::met(std::string_view its_variable, std::string_view what, Index all,
                       Index longest, Index most) const {
  NestLoop loop(its_variable, what, longest, most);
  loop.extent = all;
  loop.whole = variable;
  return loop;
}

NestExtent::NestExtent(const NestLoop& loop)
    : all(loop.extent), largest(loop.block), variable(loop.variable), whole(loop.whole) {}

NestTile NestTile::limited(const NestLoop& loop, Index block, Index trips) const {
  require(rows_.whole != loop.variable && cols_.whole != loop.variable,
          "a piece is limited by the loop over pieces");
  NestTile tile = *this;
  for (NestExtent* extent : {&tile.rows_, &tile.cols_}) {
    if (extent->variable == loop.variable) {
      extent->all = block;
      return tile;
    }
  }
  tile.trips_.emplace_back(loop.variable, trips);
  return tile;
}

NestTile NestTile::once(const NestLoop& loop) const {
  return limited(loop, loop.block, 1);
}

NestTile NestTile::but_once(const NestLoop& loop) const {
  return limited(loop, loop.extent - loop.block, loop.trips - 1);
}

NestTile NestTile::of_words(Words all) const {
  NestTile tile = *this;
  tile.words_ = all;
  return tile;
}

std::string NestTile::text() const {
  const std::string chosen = rows_.variable + cols_.variable;
  return chosen.empty() ? name_ : name_ + "_" + chosen;
}

Words NestTile::moved(const std::vector<NestLoop>& around) const {
  if (words_) {
    return *words_;
  }
  Words words = Words(rows_.all) * cols_.all;
  for (const NestLoop& loop : around) {
    if (rows_.chosen_by(loop) || cols_.chosen_by(loop)) {
      continue;
    }
    require(loop.whole.empty(), "in a loop over pieces, pieces move");
    const auto limit =
        std::ranges::find(trips_, loop.variable, &std::pair<std::string, Index>::first);
    words *= limit == trips_.end() ? loop.trips : limit->second;
  }
  return words;
}

std::vector<NestTile> columns_of(const ColumnNames& names, const NestLoop& rows) {
  std::vector<NestTile> columns;
  for (const std::string_view name : names) {
    if (!name.empty()) {
      columns.emplace_back(name, rows);
    }
  }
  return columns;
}

void NestWriter::phase(std::string_view name, const Body& body) {
  const std::string outer = path_;
  path_ += (path_.empty() ? "" : "/") + std::string(name);
  body();
  path_ = outer;
}

NestLine& NestWriter::add(NestLine::Kind kind, std::string text) {
  NestLine& line = lines_.emplace_back();
  line.phase = path_;
  line.depth = std::ssize(around_);
  line.kind = kind;
  line.text = std::move(text);
  return line;
}

void NestWriter::loop(const NestLoop& over, const Tiles& stays, const Body& body) {
  require(std::ranges::find(around_, over.variable, &NestLoop::variable) == around_.end(),
          "loops around each other have variables of their own");
  if (over.trips == 0) {
    return;
  }
  NestLine& line = add(NestLine::Kind::loop, "for " + over.variable + " in " + over.over);
  line.trips = over.trips;
  line.block = over.block;
  for (const NestTile& tile : stays) {
    if (tile.largest() > Words(0)) {
      line.stays.push_back({tile.text(), tile.largest()});
    }
  }
  around_.push_back(over);
  body();
  around_.pop_back();
}

void NestWriter::step(std::string text, const Tiles& reads, const Tiles& writes) {
  if (text.empty() && reads.empty() && writes.empty()) {
    return;
  }
  NestLine& line = add(NestLine::Kind::step, std::move(text));
  for (const NestTile& tile : reads) {
    line.read(tile.name(), tile.moved(around_));
  }
  for (const NestTile& tile : writes) {
    line.write(tile.name(), tile.moved(around_));
  }
}

namespace {

NestWriter::Tiles that_move(NestWriter::Tiles tiles) {
  std::erase_if(tiles, [](const NestTile& tile) { return tile.none(); });
  return tiles;
}

}  // namespace

void NestWriter::read(const Tiles& tiles) {
  if (const Tiles moved = that_move(tiles); !moved.empty()) {
    step("read " + texts(moved), moved, {});
  }
}

void NestWriter::write(const Tiles& tiles) {
  if (const Tiles moved = that_move(tiles); !moved.empty()) {
    step("write " + texts(moved), {}, moved);
  }
}

}  // namespace redblue
