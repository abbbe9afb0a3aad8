#include "tests/support/random_nests.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace redblue {

std::string RandomNests::nest(int most_loops, Index most_blocks, bool fixed) {
  lines_.clear();
  indent_.clear();
  matrices_.clear();
  loops_.clear();
  tiles_.clear();
  blocks_.clear();
  declared_.clear();
  hidden_.clear();
  parts_.clear();
  comparisons_.clear();
  own_ = 0;
  phases_ = locals_ = whens_ = asked_ = 0;
  most_loops_ = most_loops;
  most_blocks_ = most_blocks;
  fixed_ = fixed;
  step_ = std::string(static_cast<std::size_t>(any(1, 4)), ' ');
  left_ = static_cast<int>(any(4, fixed ? 22 : 12));

  std::string head = chance(10) ? "# a comment\n\nkernel random/nest-1.2\n" : "kernel random\n";
  if (chance(20)) {
    head += "problem gradients\ntwo-step\nonce\n";
  }
  if (chance(20)) {
    static const Names kSizes = {"d", "max(d, dv)", "n * group", "128", "ceil(m / 3)"};
    static const Names kSigns = {"<", "<=", "==", "!=", ">=", ">"};
    head.append("takes ").append(one_of(kSizes)).append(" ").append(one_of(kSigns));
    head.append(" ").append(one_of(kSizes)).append("\n");
  }
  static const std::vector<std::pair<std::string, Names>> kPool = {
      {"Q", {"n", "d"}},  {"K", {"m", "d"}}, {"V", {"m", "dv"}}, {"L", {"n"}},
      {"W", {"d", "dv"}}, {"A", {"n", "m"}}, {"G", {"4", "d"}},  {"b", {"m"}}};
  static const std::vector<std::pair<std::string, Names>> kResults = {
      {"O", {"n", "dv"}}, {"dQ", {"n", "d"}}, {"dK", {"m", "d"}}, {"g", {"d", "d"}}, {"y", {"n"}}};
  std::string inputs, results, temps;
  const auto declare = [&](const auto& pool, Index most, bool input, bool temp,
                           const std::string& prefix) {
    std::string declared;
    for (Index k = any(1, most); k > 0; --k) {
      const auto& [name, extents] = one_of(pool);
      const std::string its = prefix + name;
      if (std::ranges::find(matrices_, its, &Matrix::name) == matrices_.end()) {
        matrices_.push_back({its, extents, input, temp});
        declared += " " + text(its, extents);
      }
    }
    return declared;
  };
  inputs = declare(kPool, 4, true, false, "");
  results = declare(kResults, 3, false, false, "");
  head += "matrix" + inputs + " ->" + results + "\n";
  if (chance(60)) {
    temps = declare(chance(50) ? kPool : kResults, 2, false, true, "t");
    head += "temp" + temps + "\n";
  }
  if (chance(60)) {
    for (Index k = any(1, std::min<Index>(3, most_blocks)); k > 0; --k) {
      static const std::vector<std::string> kCut = {"n", "m", "d", "n", "m"};
      const std::string name = "B" + std::to_string(k);
      const std::string of = one_of(kCut);
      head.append("block ").append(name).append(" of ").append(of);
      if (fixed && chance(50)) {
        const std::string other = declared_.empty() ? "7" : one_of(declared_);
        const std::vector<std::string> formulas = {
            std::to_string(any(1, 30)), std::string("ceil(").append(of).append(" / 2)"),
            "max(1, M / (4 * d + 1))", "min(" + other + ", 5)", "1 + " + other + " * 2 - " + other};
        head += " = " + one_of(formulas);
      }
      head += "\n";
      blocks_.emplace_back(name, of);
      declared_.push_back(name);
    }
  }
  if (chance(fixed ? 35 : 50)) {  // parts that stay, of sizes that may be 0
    const bool two = fixed && chance(30);
    for (Index k = 0; k < (two ? 2 : 1) && std::ssize(blocks_) < most_blocks_; ++k) {
      static const Names kCut = {"n", "m", "d", "m", "n"};
      const std::string of = one_of(kCut), name = "kept" + std::to_string(k);
      head.append("block ").append(name).append(" of ").append(of);
      if (fixed && chance(40)) {
        static const Names kSizes = {"0", "2", "7", "M / (8 * d)", "if(n < m, 3, 0)"};
        head.append(" = ").append(one_of(kSizes));
      }
      head += "\n";
      parts_.emplace_back(name, of);
      declared_.push_back(name);
    }
    most_blocks_ = std::max<Index>(1, most_blocks_ - std::ssize(parts_));
  }
  if (fixed && chance(50)) {
    for (Index k = any(1, 3); k > 0; --k) {
      comparisons_.push_back(comparison());
    }
  }
  while (left_ > 0) {
    if (!parts_.empty() && chance(40)) {
      stays();
    }
    if (chance(25)) {
      in_part();
    }
    body(3);
  }
  finish();
  for (const Matrix& matrix : matrices_) {
    if (matrix.name.starts_with("part")) {
      head += "temp " + text(matrix.name, matrix.extents) + "\n";
    }
  }
  return head + lines_;
}

void RandomNests::line(const std::string& text) {
  lines_ += indent_ + text + (chance(5) ? "   # why" : "") + (chance(3) ? "\r\n" : "\n") +
            (chance(3) ? "\n" : "");
}

std::string RandomNests::text(const std::string& name, const Names& indices) {
  std::string text = name + "[";
  for (const std::string& index : indices) {
    text += (text.back() == '[' ? "" : ",") + index;
  }
  return text + "]";
}

const RandomNests::Loop* RandomNests::around(const std::string& name) const {
  const auto found = std::ranges::find(loops_, name, &Loop::name);
  return found == loops_.end() ? nullptr : &*found;
}
bool RandomNests::lives(const std::string& name) const {
  return std::ranges::find(tiles_, name, &Tile::name) != tiles_.end() ||
         std::ranges::find(hidden_, name, &Tile::name) != hidden_.end();
}
bool RandomNests::is_whole(const Names& indices, const Names& extents) const {
  return std::ranges::equal(indices, extents, [&](const std::string& a, const std::string& b) {
    const Loop* loop = around(a);
    return a == b || (loop != nullptr && loop->root == b);
  });
}

// ------------------------------------------------------------------------------------- parts

std::string RandomNests::fresh_variable() {
  static const std::vector<std::string> kNames = {"I", "J", "R", "C", "S", "X", "Y", "Z"};
  std::string name = one_of(kNames);
  while (around(name) != nullptr) {
    name = one_of(kNames);
  }
  return name;
}

std::string RandomNests::index(const std::string& extent, bool plain) {
  if (std::isdigit(static_cast<unsigned char>(extent.front())) != 0) {
    return plain || chance(60) ? extent : std::to_string(any(1, std::stol(extent)));
  }
  Names fitting;
  for (const Loop& loop : loops_) {
    if (loop.root == extent) {
      fitting.push_back(loop.name);
    }
  }
  if (!plain && chance(6)) {
    return "1";
  }
  if (!plain && fixed_ && chance(10)) {
    return part(extent);
  }
  if (!plain && !fixed_ && chance(15)) {
    for (const auto& [name, of] : parts_) {
      if (of == extent) {
        return name;
      }
    }
  }
  if (fitting.empty() || chance(15)) {
    return extent;
  }
  const std::string chosen = chance(50) ? fitting.back() : one_of(fitting);
  return !plain && chance(6) ? "each " + chosen : chosen;
}
RandomNests::Names RandomNests::indices(const Names& extents, bool plain) {
  Names list;
  for (const std::string& extent : extents) {
    list.push_back(index(extent, plain));
  }
  return list;
}

// A number of elements of an extent, mostly at most all of them.
std::string RandomNests::part(const std::string& extent) {
  Names names = {extent, "d", "4"};
  for (const auto& [name, of] : parts_) {
    names.insert(names.end(), 3, name);
    if (of == extent && chance(50)) {
      return name;
    }
  }
  names.insert(names.end(), declared_.begin(), declared_.end());
  for (const Loop& loop : loops_) {
    names.push_back(loop.name);
  }
  const Names met = met_sizes();
  names.insert(names.end(), met.begin(), met.end());
  const std::string& one = one_of(names);
  const std::string& other = one_of(names);
  switch (any(0, 7)) {
    case 0:
      return "min(" + one + ", " + extent + ")";
    case 1:
      return extent + " / " + std::to_string(any(1, 4));
    case 2:
      return "ceil(" + extent + " / 3)";
    case 3:
      return "if(" + one + " " + sign() + " " + other + ", " + extent + ", " +
             std::to_string(any(0, 2)) + ")";
    case 4:
      return extent + " - min(" + one + ", " + extent + ")";
    case 5:
      return "min(" + extent + ", if(" + one + " + 1 " + sign() + " 2 * " + other + ", " + other +
             " / 2, " + one + "))";
    case 6:
      return "max(0, min(" + one + " - " + other + ", " + extent + "))";
    default:
      return "min((" + one + " + 1) / 2, " + extent + ")";
  }
}
// The numbers of queries or keys that the blocks of loops meet.
RandomNests::Names RandomNests::met_sizes() const {
  Names sizes;
  for (const Loop& loop : loops_) {
    if (loop.root == "n" || loop.root == "m") {
      sizes.push_back("met(" + loop.name + ")");
    }
  }
  return sizes;
}
std::string RandomNests::sign() {
  static const Names kSigns = {"<", "<=", "==", "!=", ">=", ">"};
  return one_of(kSigns);
}
// The head of a 'when' that needs no loop around it.
std::string RandomNests::comparison() {
  Names names = {"n", "m", "d", "dv", "M / 8", "9", "2", "masked", "masked", "softmax"};
  names.insert(names.end(), declared_.begin(), declared_.end());
  names.insert(names.end(), declared_.begin(), declared_.end());
  return one_of(names) + " " + sign() + " " + one_of(names);
}

// Returns a condition for a tile with these indices, preferably one that holds row by row. The page
// does not define a tile with two indices that are met by one loop, or with `each` of one.
std::string RandomNests::condition(const Names& indices) {
  const auto met_by = [&](const std::string& name) {
    Names outer;
    for (const Loop* loop = around(name); loop != nullptr; loop = around(loop->range)) {
      if (!loop->met_by.empty()) {
        outer.push_back(loop->met_by);
      }
    }
    return outer;
  };
  Names candidates, rows;
  for (const Loop& loop : loops_) {
    int plain = 0, each = 0;
    for (const std::string& index : indices) {
      const bool is_each = index.starts_with("each ");
      const Names outer = met_by(is_each ? index.substr(5) : index);
      if (std::ranges::find(outer, loop.name) != outer.end()) {
        ++(is_each ? each : plain);
      }
    }
    if (each == 0 && plain <= 1) {
      (plain == 1 ? rows : candidates).push_back(loop.name);
    }
  }
  if (candidates.empty() && rows.empty()) {
    return "";
  }
  const bool by_rows = candidates.empty() || (!rows.empty() && chance(75));
  return std::string(chance(50) ? "first " : "last ") + one_of(by_rows ? rows : candidates);
}
// The same, or its negation, and possibly more conditions.
std::string RandomNests::conditions(const Names& indices) {
  std::string all = condition(indices);
  if (all.empty()) {
    return "";
  }
  all = chance(50) ? all : "unless " + all;
  while (fixed_ && chance(25)) {
    all += std::string(" and ") + (chance(50) ? "" : "unless ") +
           (chance(50) ? "first " : "last ") + one_of(loops_).name;
  }
  return all;
}

std::string RandomNests::block(const std::string& root) {
  Names fitting;
  for (const auto& [name, of] : blocks_) {
    if (fixed_ || of == root) {
      fitting.push_back(name);
    }
  }
  const bool full = std::ssize(blocks_) >= most_blocks_;
  if (full && fitting.empty()) {
    return "3";
  }
  if (!fitting.empty() && (full || chance(40))) {
    return one_of(fitting);
  }
  blocks_.emplace_back("B" + std::to_string(blocks_.size() + 4), root);
  return blocks_.back().first;
}

std::string RandomNests::size(const std::string& range, const std::string& root) {
  const Names met = met_sizes();
  if (fixed_ && !met.empty() && chance(4)) {
    return "max(1, " + one_of(met) + " / 2)";
  }
  switch (any(0, fixed_ ? 15 : 10)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return block(root);
    case 6:
      return std::to_string(any(1, fixed_ ? 12 : 5));
    case 7:
      return std::to_string(any(1, 45));
    case 8:
      return "ceil(" + range + " / " + std::to_string(any(1, 5)) + ")";
    case 9:
      return "min(" + block(root) + ", " + std::to_string(any(1, 9)) + ")";
    case 10:
      return chance(30) ? range + " - " + range + " / 2"
                        : "max(" + std::to_string(any(1, 3)) + ", " + block(root) + " / 2)";
    case 11:
      return "max(1, " + range + " - 5)";
    case 12:
      return "(" + range + " + 3) / 4";
    case 13:
      return "max(1, min(M / (d + 1), " + range + "))";
    case 14:
      return "if(" + range + " " + sign() + " " + std::to_string(any(1, 20)) + ", " + block(root) +
             ", " + std::to_string(any(1, 9)) + ")";
    default:
      return "2 * " + block(root) + " + 1";
  }
}

// -------------------------------------------------------------------------------- statements

void RandomNests::body(int items) {
  const std::size_t before = lines_.size();
  for (Index k = any(1, items); k > 0; --k) {
    item();
  }
  if (lines_.size() == before) {
    flops();
  }
}

void RandomNests::item() {
  --left_;
  const bool deeper = std::ssize(loops_) < most_loops_ && left_ > 0;
  const Index kind = any(0, 99);
  if (deeper && (kind < 30 || loops_.empty())) {
    loop();
  } else if (kind < 38) {
    phases_<6 && left_> 0 ? phase() : flops();
  } else if (kind < 52) {
    read();
  } else if (kind < 63) {
    make();
  } else if (kind < 77) {
    write();
  } else if (kind < 82) {
    drop();
  } else if (kind < 87) {
    flops();
  } else if (kind < 92) {
    carried();
  } else if (kind < 94) {
    in_part();
  } else if (kind < 98) {
    comparisons_.empty() || whens_ > 5 ? carried() : chance(60) ? when() : either();
  } else {
    slices();
  }
}

void RandomNests::loop() {
  static const Names kRanges = {"n", "m", "n", "m", "n", "m", "d", "dv"};
  Loop loop{fresh_variable(), one_of(kRanges), "", ""};
  loop.root = loop.range;
  if (!loops_.empty() && chance(25)) {
    const Loop& outer = one_of(loops_);
    loop.range = outer.name;
    loop.root = outer.root;
  }
  std::string text = "for " + loop.name + " in " + loop.range;
  const bool leaves_out = fixed_ && chance(12);
  if (leaves_out) {
    text += " from " + part(loop.range);
  }
  text += " by " + size(loop.range, loop.root);
  if ((loop.root == "n" || loop.root == "m") && chance(70)) {
    Names others;
    for (const Loop& outer : loops_) {
      if (outer.root == (loop.root == "n" ? "m" : "n")) {
        others.push_back(outer.name);
      }
    }
    if (!others.empty()) {
      loop.met_by = one_of(others);
      text += " met by " + loop.met_by;
      text += loop.range == loop.root && !leaves_out && chance(30) ? " whole" : "";
    }
  }
  line(text);
  loops_.push_back(loop);
  indent_ += step_;
  const std::size_t tiles = tiles_.size(), own = own_, hidden = hidden_.size();
  own_ = tiles;
  if (!loop.met_by.empty() && chance(60)) {
    carried();
  }
  body(5);
  own_ = own;
  tiles_.resize(tiles);
  hidden_.resize(hidden);
  indent_.resize(indent_.size() - step_.size());
  loops_.pop_back();
}

void RandomNests::phase() {
  ++phases_;
  line("phase " + std::string(1, static_cast<char>('a' + any(0, 3))));
  indent_ += step_;
  body(3);
  indent_.resize(indent_.size() - step_.size());
}

void RandomNests::read() {
  std::string tiles;
  std::vector<Tile> read;
  for (Index k = any(1, 2); k > 0; --k) {
    Matrix& matrix = one_of(matrices_);
    const bool renamed = chance(15);
    const std::string name = renamed ? "c" + std::to_string(++locals_) : matrix.name;
    if (matrix.name.starts_with("part") || (!matrix.input && !matrix.written) || lives(name) ||
        std::ranges::find(read, name, &Tile::name) != read.end()) {
      continue;
    }
    read.push_back(
        {name, indices(matrix.extents, false), chance(15) ? " sum" : "", "", matrix.name});
    tiles += " " + text(matrix.name, read.back().indices) + read.back().sum;
    tiles += renamed ? " as " + name : "";
    tiles += renamed && chance(20) ? text("", read.back().indices) : "";
  }
  if (read.empty()) {
    return;
  }
  std::string under;
  if (read.size() == 1 && fixed_ && chance(20)) {
    under = conditions(read[0].indices);
  }
  line("read" + tiles + (under.empty() ? "" : " " + under));
  for (Tile& tile : read) {
    tile.condition = under;
    tiles_.push_back(tile);
  }
}

void RandomNests::make() {
  Tile tile;
  const Matrix& matrix = one_of(matrices_);
  if (chance(60) && !matrix.name.starts_with("part")) {
    tile.like = matrix.name;
    tile.indices = indices(matrix.extents, false);
    tile.name = chance(30) ? "c" + std::to_string(++locals_) : matrix.name;
  } else {
    static const Names kExtents = {"n", "m", "d", "dv", "8"};
    tile.name = "c" + std::to_string(++locals_);
    for (Index k = any(1, 3); k > 0; --k) {
      tile.indices.push_back(index(one_of(kExtents), false));
    }
  }
  if (lives(tile.name)) {
    return;
  }
  tile.sum = chance(25) ? " sum" : "";
  if (fixed_ && chance(15)) {
    tile.condition = conditions(tile.indices);
  }
  line("new " + text(tile.name, tile.indices) + tile.sum +
       (tile.condition.empty() ? "" : " " + tile.condition));
  tiles_.push_back(tile);
}

void RandomNests::write() {
  if (tiles_.empty()) {
    return;
  }
  const Tile& tile = chance(50) ? tiles_.back() : one_of(tiles_);
  const auto like = std::ranges::find(matrices_, tile.like, &Matrix::name);
  if (like == matrices_.end()) {
    return;
  }
  std::vector<Matrix*> targets;
  for (Matrix& matrix : matrices_) {
    if (!matrix.input && matrix.extents == like->extents) {
      targets.push_back(&matrix);
    }
  }
  if (targets.empty()) {
    return;
  }
  Matrix& target = *one_of(targets);
  Names indices = tile.indices;
  for (std::string& index : indices) {
    for (const Loop& loop : loops_) {  // a piece of it
      if ((loop.range == index || (loop.root == index && around(index) == nullptr)) && chance(40)) {
        index = loop.name;
      }
    }
  }
  std::string under = tile.condition;
  if (under.empty() && chance(20)) {
    under = conditions(indices);
  }
  line("write " + text(tile.name, indices) + (chance(97) ? tile.sum : " sum") +
       (tile.name == target.name ? "" : " as " + target.name) +
       (!chance(5) || tile.name == target.name ? "" : text("", indices)) +
       (under.empty() ? "" : " " + under));
  target.written |= under.empty() && whens_ == 0;
  target.used |= is_whole(indices, target.extents);
}

void RandomNests::drop() {
  if (tiles_.size() > own_ && tiles_.back().condition.empty()) {
    if (fixed_ && chance(35)) {
      const std::string under = conditions({});
      if (!under.empty()) {
        line("drop " + tiles_.back().name + " " + under);
        hidden_.push_back(tiles_.back());
        tiles_.pop_back();
        return;
      }
    }
    line("drop " + tiles_.back().name);
    tiles_.pop_back();
  }
}

void RandomNests::flops() {
  if (chance(5)) {
    line("do \"S_I = # A1_I X; p > 0\"");
    return;
  }
  Names factors = {"d", "n", "3", "m", "dv"};
  for (const Loop& loop : loops_) {
    factors.insert(factors.end(), 2, loop.name);
  }
  factors.insert(factors.end(), declared_.begin(), declared_.end());
  const Names met = met_sizes();
  factors.insert(factors.end(), met.begin(), met.end());
  std::string text = "flops " + one_of(factors);
  for (Index k = any(0, 3); k > 0; --k) {
    const std::string& factor = one_of(factors);
    text += chance(60)   ? " * " + factor
            : chance(30) ? " * if(" + factor + " " + sign() + " 5, d, 2)"
            : chance(50) ? " + " + factor + " / 2"
                         : " * max(0, " + factor + " - 2)";
  }
  line(text);
}

// Lines under a comparison, and under its opposite. Only these lines use the tiles that they make.
void RandomNests::when() {
  ++whens_;
  const std::size_t tiles = tiles_.size(), own = own_, hidden = hidden_.size();
  own_ = tiles;  // no tile from above is dropped in one case alone
  std::string text = one_of(comparisons_);
  if (!loops_.empty() && asked_ < 3 && chance(20)) {
    ++asked_;
    text = loops_.back().name + " " + sign() + " " + std::to_string(any(1, 9));
  }
  line("when " + text);
  indent_ += step_;
  body(3);
  std::vector<Tile> made(hidden_.begin() + static_cast<std::ptrdiff_t>(hidden), hidden_.end());
  made.insert(made.end(), tiles_.begin() + static_cast<std::ptrdiff_t>(tiles), tiles_.end());
  tiles_.resize(tiles);
  hidden_.resize(hidden);
  indent_.resize(indent_.size() - step_.size());
  if (chance(50)) {
    line("otherwise");
    indent_ += step_;
    body(3);
    made.insert(made.end(), hidden_.begin() + static_cast<std::ptrdiff_t>(hidden), hidden_.end());
    made.insert(made.end(), tiles_.begin() + static_cast<std::ptrdiff_t>(tiles), tiles_.end());
    tiles_.resize(tiles);
    hidden_.resize(hidden);
    indent_.resize(indent_.size() - step_.size());
  }
  if (!made.empty() && chance(50)) {  // a tile that lives on in this case
    line("when " + text);
    indent_ += step_;
    flops();
    indent_.resize(indent_.size() - step_.size());
  }
  hidden_.insert(hidden_.end(), made.begin(), made.end());
  own_ = own;
  --whens_;
}

// A tile that is read in one case and made in the other.
void RandomNests::either() {
  const Matrix& matrix = one_of(matrices_);
  if (matrix.name.starts_with("part") || (!matrix.input && !matrix.written) || lives(matrix.name)) {
    return;
  }
  const Tile tile{matrix.name, indices(matrix.extents, false), chance(30) ? " sum" : "", "",
                  matrix.name};
  const std::string its = text(tile.name, tile.indices) + tile.sum;
  const bool reads = chance(50);
  line("when " + one_of(comparisons_));
  lines_ += indent_ + step_ + (reads ? "read " : "new ") + its + "\n" + indent_ + "otherwise\n" +
            indent_ + step_ + (reads ? "new " : "read ") + its + "\n";
  tiles_.push_back(tile);
}

// A part of a matrix stays, and a loop visits the rest.
void RandomNests::stays() {
  const auto& [kept, of] = one_of(parts_);
  for (Matrix& matrix : matrices_) {
    if (!matrix.input || lives(matrix.name) || matrix.extents[0] != of) {
      continue;
    }
    Names indices = matrix.extents;
    indices[0] = kept;
    const std::string tile = "c" + std::to_string(++locals_);
    line("read " + text(matrix.name, indices) + " as " + tile);
    tiles_.push_back({tile, indices, "", "", matrix.name});
    std::string head;
    const Loop outer{fresh_variable(), of == "n" ? "m" : "n", of == "n" ? "m" : "n", ""};
    const bool nested = chance(70);
    const std::size_t tiles = tiles_.size();
    if (nested) {
      line("for " + outer.name + " in " + outer.range + " by " + size(outer.range, outer.root));
      loops_.push_back(outer);
      indent_ += step_;
    }
    Loop loop{fresh_variable(), of, of, ""};
    head = "for " + loop.name + " in " + of + " from " + kept + " by " + size(of, of);
    if (nested && of != "d" && chance(50)) {
      loop.met_by = outer.name;
      head += " met by " + outer.name;
    }
    line(head);
    loops_.push_back(loop);
    indent_ += step_;
    indices[0] = loop.name;
    line("read " + text(matrix.name, indices));
    tiles_.push_back({matrix.name, indices, "", "", matrix.name});
    if (chance(50)) {
      body(2);
    }
    tiles_.resize(tiles);
    loops_.pop_back();
    indent_.resize(indent_.size() - step_.size());
    if (nested) {
      loops_.pop_back();
      indent_.resize(indent_.size() - step_.size());
    }
    matrix.used = true;
    return;
  }
}

// A tile that is made in the first passes of a loop, and read in the others; or the like.
void RandomNests::carried() {
  Matrix& matrix = one_of(matrices_);
  if (loops_.empty() || matrix.name.starts_with("part") || lives(matrix.name)) {
    return;
  }
  Tile tile{matrix.name, indices(matrix.extents, true), chance(30) ? " sum" : "", "", matrix.name};
  const std::string under = condition(tile.indices);
  if (under.empty()) {
    return;
  }
  const bool is_first = matrix.input || matrix.written ? chance(50) : under.starts_with("first");
  const std::string its = text(tile.name, tile.indices) + tile.sum;
  line("new " + its + (is_first ? " " : " unless ") + under);
  if (chance(40)) {
    flops();
  }
  line("read " + its + (is_first ? " unless " : " ") + under);
  tiles_.push_back(tile);
  matrix.used |= matrix.input;
  body(3);
  if (!matrix.input && lives(tile.name)) {
    line("write " + its +
         (chance(70) ? ""
                     : (chance(50) ? " unless last " : " unless first ") +
                           under.substr(under.find(' ') + 1)));
    matrix.written |= whens_ == 0;
    matrix.used |= is_whole(tile.indices, matrix.extents);
  }
}

// One slice of a temp for each block of a loop.
void RandomNests::slices() {
  std::vector<const Matrix*> results;
  for (const Matrix& matrix : matrices_) {
    if (!matrix.input && !matrix.temp && !lives(matrix.name)) {
      results.push_back(&matrix);
    }
  }
  if (results.empty()) {
    return;
  }
  const Names extents = one_of(results)->extents;
  const std::string id = std::to_string(++locals_);
  const std::string part = "part" + id, variable = "P" + id;
  Loop loop{variable, chance(50) ? "n" : "m", "", ""};
  loop.root = loop.range;
  std::string text_of_loop = " in " + loop.range + " by " + size(loop.range, loop.root);
  for (const Loop& outer : loops_) {
    if (outer.root == (loop.root == "n" ? "m" : "n") && loop.met_by.empty()) {
      loop.met_by = outer.name;
      text_of_loop += " met by " + outer.name;
    }
  }
  matrices_.push_back({part, extents, false, true});
  matrices_.back().extents.insert(matrices_.back().extents.begin(), "each " + variable);
  const auto nested = [&](const std::string& name, bool writes) {
    line("for " + name + text_of_loop);
    loop.name = name;
    loops_.push_back(loop);
    indent_ += step_;
    const Loop inner{fresh_variable(), extents[0], extents[0], ""};
    const bool in_blocks = extents[0] != "4" && chance(70);
    if (in_blocks) {
      line("for " + inner.name + " in " + inner.range + " by " + size(inner.range, inner.root));
      loops_.push_back(inner);
      indent_ += step_;
    }
    Names indices = this->indices(extents, true);
    const std::string tile = "c" + std::to_string(++locals_);
    if (writes) {
      const std::string sum = chance(30) ? " sum" : "";
      line("new " + text(tile, indices) + sum);
      const std::string made = text(tile, indices);
      indices.insert(indices.begin(), "each " + name);
      line("write " + made + sum + " as " + text(part, indices));
    } else {
      indices.insert(indices.begin(), "each " + name);
      line("read " + text(part, indices) + (chance(30) ? " as " + tile : ""));
    }
    for (int k = in_blocks ? 2 : 1; k > 0; --k) {
      loops_.pop_back();
      indent_.resize(indent_.size() - step_.size());
    }
  };
  nested(variable, true);
  nested(chance(50) ? variable : "P" + std::to_string(++locals_), false);
}

// Loops over pairs of queries and keys. They move the live pairs of a tile, or the rows of it that
// another block meets.
void RandomNests::in_part() {
  Matrix& matrix = one_of(matrices_);
  const bool over_pairs = std::ranges::any_of(
      loops_, [](const Loop& loop) { return loop.root == "n" || loop.root == "m"; });
  const auto has = [&](const std::string& extent) {
    return std::ranges::find(matrix.extents, extent) != matrix.extents.end();
  };
  if (over_pairs || whens_ > 0 || lives(matrix.name) || matrix.name.starts_with("part") ||
      (!has("n") && !has("m"))) {
    return;
  }
  const bool of_queries = chance(50);
  std::vector<Loop> loops;
  const auto add = [&](const std::string& range, const std::string& root, const std::string& met) {
    Loop loop{fresh_variable(), range, root, met};
    const std::string size = chance(50) ? block(root) : std::to_string(any(1, 9));
    const bool is_whole = !met.empty() && chance(60);
    line("for " + loop.name + " in " + range + " by " + size +
         (met.empty() ? "" : " met by " + met) + (is_whole ? " whole" : ""));
    loops_.push_back(loop);
    loops.push_back(loop);
    indent_ += step_;
    return is_whole;
  };
  add(of_queries ? "n" : "m", of_queries ? "n" : "m", "");
  const std::string outer = loops[0].name;
  const bool reads_index = chance(40) && !lives("index");
  if (reads_index && chance(50)) {
    line("index " + outer);
  }
  if (chance(30)) {
    add("d", "d", "");
  }
  if (reads_index && !lines_.ends_with("index " + outer + "\n") && loops.size() > 1) {
    line("index " + outer);
  }
  const std::string inner_root = of_queries ? "m" : "n";
  const bool is_fixed = add(inner_root, inner_root, outer);
  const std::string inner = loops.back().name;
  // Every loop over the queries or keys that is around must cut the tile, or meet its rows.
  const std::string root = has("n") && has("m")          ? chance(50) ? outer : inner
                           : has(of_queries ? "n" : "m") ? outer
                                                         : inner;
  std::string piece = root;
  if (chance(50)) {
    const Loop of = *around(root);
    add(of.name, of.root, "");
    piece = loops.back().name;
  }
  const std::string other = root == outer ? inner : outer;
  Names indices;
  for (const std::string& extent : matrix.extents) {
    indices.push_back(extent == around(root)->root    ? piece
                      : extent == around(other)->root ? other
                                                      : index(extent, true));
  }
  const bool is_live = has("n") && has("m");
  if (is_live || other == outer || is_fixed) {
    const std::string sum = chance(20) ? " sum" : "";
    const std::string part = is_live ? " live" : " met by " + other;
    if (matrix.input || (matrix.written && chance(50))) {
      line("read " + text(matrix.name, indices) + sum + part);
    } else {
      const std::string tile = "c" + std::to_string(++locals_);
      line("new " + text(tile, indices) + sum);
      line("write " + text(tile, indices) + sum + part + " as " + matrix.name);
    }
  }
  flops();
  for (std::size_t k = loops.size(); k > 0; --k) {
    loops_.pop_back();
    indent_.resize(indent_.size() - step_.size());
  }
}

// Writes the results that are not yet written whole.
void RandomNests::finish() {
  for (Matrix& matrix : matrices_) {
    if (matrix.input && !matrix.used && !lives(matrix.name)) {
      line("read " + text(matrix.name, matrix.extents));
      line("drop " + matrix.name);
    }
    if (matrix.input || matrix.temp || matrix.used) {
      continue;
    }
    const std::string variable = fresh_variable();
    const std::string& over = matrix.extents[0];
    const std::string tile = "c" + std::to_string(++locals_);
    Names indices = matrix.extents;
    indices[0] = variable;
    line("for " + variable + " in " + over + " by " + size(over, over));
    indent_ += step_;
    line("new " + text(tile, indices));
    line("write " + text(tile, indices) + " as " + matrix.name);
    indent_.resize(indent_.size() - step_.size());
  }
}

}  // namespace redblue
