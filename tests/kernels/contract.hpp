#pragma once
// The words that each kernel moves, written down from the paper's tables and not from the code.
// There are n queries and m keys of width d (w for values), with ceilings over the plan's blocks. N
// is the type to compute in, so that 128 bits can replace 64 for large counts.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/plan.hpp"

namespace redblue {

// One phase of a published table.
struct MovedPhase {
  std::string path;
  Index reads;
  Index writes;
  friend bool operator==(const MovedPhase&, const MovedPhase&) = default;
};

// Algorithm 6, phase by phase.
inline std::vector<MovedPhase> small_table(const Shape& shape, Index B) {
  const auto [n, m, d] = shape;
  const auto ceil = [B](Index extent) { return (extent + B - 1) / B; };
  return {
      {"phase1/S", n * d * ceil(d) + d * d * ceil(n), n * d},
      {"phase1/A", d * (n * ceil(m) + m * ceil(n)), n * m},
      {"phase1/f", n * m, n * m},
      {"phase2/h", m * d * ceil(d) + d * d * ceil(m), m * d},
      {"phase2/q", d * (n * ceil(m) + m * ceil(n)), n * m},
      {"phase3/v", 2 * n * m, 0},
      {"phase3/p", 2 * n * m, n * m},
      {"phase4/T", n * d * ceil(m) + n * m * ceil(d), m * d},
      {"phase4/g", 2 * m * d * ceil(d), d * d},
  };
}

template <class N>
struct MovedWords {
  N reads{};
  N writes{};
  friend MovedWords operator+(MovedWords a, MovedWords b) {
    return {a.reads + b.reads, a.writes + b.writes};
  }
  friend bool operator==(const MovedWords&, const MovedWords&) = default;
};

// Returns the number of groups in which keys pass the rows. For each row, a group leaves words of
// values and one more word, which are written and read.
template <class N>
N key_groups(const Shape& shape, const Blocks& blocks) {
  return static_cast<N>(blocks.contains("groups") ? std::min(blocks["groups"], shape.m) : 1);
}
// Returns the number of key blocks, with each group cut separately.
inline Index blocks_of_groups(const Shape& shape, const Blocks& blocks, std::string_view block) {
  const Index G = key_groups<Index>(shape, blocks), size = blocks[block];
  Index all = 0;
  for (Index g = 0; g < G; ++g) {
    all += (shape.m / G + (g < shape.m % G ? 1 : 0) + size - 1) / size;
  }
  return all;
}
// Returns the number of query groups, each of whole row blocks. `queries_in_groups` returns whether
// they leave partial sums.
template <class N>
N query_groups(const Shape& shape, const Blocks& blocks) {
  const Index T = (shape.n + blocks["dQ.Br"] - 1) / blocks["dQ.Br"];
  return static_cast<N>(blocks.contains("dKV.groups") ? std::min(blocks["dKV.groups"], T) : 1);
}
inline bool queries_in_groups(const Blocks& blocks) {
  return blocks.contains("dKV.groups") && blocks["dKV.groups"] > 1;
}
template <class N>
MovedWords<N> left_by_groups(const Shape& shape, const Blocks& blocks) {
  const N groups = key_groups<N>(shape, blocks);
  const N words =
      groups > 1 ? groups * static_cast<N>(shape.n) * (static_cast<N>(shape.dv) + 1) : N{0};
  return {words, words};
}

template <class N>
MovedWords<N> moved_without_weights(std::string_view kernel, const Shape& shape,
                                    const Blocks& blocks) {
  const N n = static_cast<N>(shape.n);
  const N m = static_cast<N>(shape.m);
  const N d = static_cast<N>(shape.d);
  const N w = static_cast<N>(shape.dv);
  const auto over = [&](N extent, std::string_view block) {
    const N size = static_cast<N>(blocks[block]);
    return (extent + size - 1) / size;
  };
  const bool shared = kernel.ends_with("-shared");
  const N key = shared ? d : d + w;
  if (shared) {
    kernel.remove_suffix(std::string_view("-shared").size());
  }
  if (kernel == "attention/rows") {
    return MovedWords<N>{n * d * key_groups<N>(shape, blocks) + key * m * over(n, "Br"),
                         n * w + n} +
           left_by_groups<N>(shape, blocks);
  }
  if (kernel.starts_with("attention/rows-resident")) {
    const N resident = static_cast<N>(std::min(blocks["resident"], shape.m));
    return {n * d + key * (m + (m - resident) * (over(n, "Br") - 1)), n * w + n};
  }
  if (kernel == "attention/columns") {  // O, maxima and sums are written and read between blocks
    const N C = over(m, "Bc");
    const N between = (C - 1) * (n * w + 2 * n);
    return {n * d * C + m * key + between, n * w + n + between};
  }
  if (kernel.starts_with("attention/tiles")) {  // reads Q and K for s, then s, L and V
    const bool rows_stay = blocks["s.depth"] >= shape.d;
    const N T = rows_stay ? 1 : over(m, "s.cols");
    const MovedWords<N> s{n * d * T + m * d * over(n, "s.rows") + 2 * n * (T - 1),
                          n * m + n * (2 * T - 1)};
    return s + MovedWords<N>{(n * m + n) * over(w, "O.cols") + m * w * over(n, "O.rows"), n * w};
  }
  if (kernel == "gradients/flash") {  // v first; then T(4nd + 2n) + 4md - nd for w = d
    const N T = over(m, "core.Bc");
    return {2 * n * w + T * (2 * n * d + n * w + 2 * n) + m * key - n * d, n + T * n * d + m * key};
  }
  // For n = m: 8 n d + 2 n, plus 2 m d for each row block and 2 n d + 2 n for each key block. If
  // values are keys, m d for each row block.
  if (kernel == "gradients/rows-keys") {
    const N keys = static_cast<N>(blocks_of_groups(shape, blocks, "dKV.Bc"));
    const N G = key_groups<N>(shape, blocks), H = query_groups<N>(shape, blocks);
    const bool sums_queries = queries_in_groups(blocks);
    if (G > 1 ||
        sums_queries) {  // v first; then each group's queries, or its keys; then group sums
      const N of_G = G > 1 ? n * d : N{0}, of_H = sums_queries ? m * key : N{0};
      return {2 * n * w + G * (n * (d + w) + 2 * n) + m * key * over(n, "dQ.Br") + H * m * key +
                  keys * (n * (d + w) + 2 * n) + G * of_G + H * of_H,
              n + G * n * d + H * m * key + of_G + of_H};
    }
    return {
        n * d + 2 * n * w + n + m * key * over(n, "dQ.Br") + m * key + keys * (n * (d + w) + 2 * n),
        n * d + n + m * key};
  }
  if (kernel == "gradients/rows-keys-onepass") {  // from scratch; writes L and v
    const N keys = static_cast<N>(blocks_of_groups(shape, blocks, "dKV.Bc"));
    const N G = key_groups<N>(shape, blocks), H = query_groups<N>(shape, blocks);
    const bool sums_queries = queries_in_groups(blocks);
    const N of_H = sums_queries ? m * key : N{0};
    // Each group writes two sums and three words of a row, which are read. Then dQ of groups, and
    // dQ.
    const MovedWords<N> rows =
        G > 1 ? MovedWords<N>{G * (n * (d + w) + 3 * n + 2 * n * d + 4 * n + n * d),
                              G * (2 * n * d + 3 * n + n * d) + 2 * n + n * d}
              : MovedWords<N>{n * (d + w), n * d + 2 * n};
    if (G > 1 || sums_queries) {
      return rows + MovedWords<N>{m * key * over(n, "dQ.Br") + H * m * key +
                                      keys * (n * (d + w) + 2 * n) + H * of_H,
                                  H * m * key + of_H};
    }
    return {n * (d + w) + m * key * over(n, "dQ.Br") + m * key + keys * (n * (d + w) + 2 * n),
            n * d + 2 * n + m * key};
  }
  // The scores of all keys are computed once for each of T row blocks. K passes twice and V once.
  // dK and dV are written, and read except by the first row block of a group. Kept keys stay: they
  // move once for each of G groups.
  if (kernel == "gradients/score-rows") {
    const N T = over(n, "Br");
    const N G = static_cast<N>(blocks["groups"]);
    const N kept =
        blocks.contains("kept") ? static_cast<N>(std::min(blocks["kept"], shape.m)) : N{0};
    const N passes = T * (key + d);  // K passes twice if values are keys
    const MovedWords<N> core{n * (d + w) + G * kept * key + (m - kept) * (passes + (T - G) * key),
                             n * d + (G * kept + T * (m - kept)) * key};
    return G > 1 ? core + MovedWords<N>{G * m * key, m * key} : core;
  }
  // Keys come into fast memory once if they are resident, otherwise for each row block. Each time K
  // and V are read and dK and dV are written. From the second time on dK and dV are read, too.
  if (kernel == "gradients/resident") {
    const N resident = static_cast<N>(std::min(blocks["resident"], shape.m));
    const N times = resident + (m - resident) * over(n, "Br");
    return {n * (d + 2 * w + 1) + times * key + (times - m) * key, n * d + times * key};
  }
  // The same for queries. Each time Q, dO and L are read, and dQ is written. From the second time
  // on dQ and v are read. O is read the first time. v is written then, unless each query comes
  // once.
  if (kernel == "gradients/resident-queries") {
    const N resident = static_cast<N>(std::min(blocks["resident"], shape.n));
    const N times = resident + (n - resident) * over(m, "Bc");
    return {times * (d + w + 1) + n * w + (times - n) * (d + 1) + m * key,
            times * d + (times > n ? n : N{0}) + m * key};
  }
  // v first. Then all n sources pass each block of resident sources, which are read once.
  if (kernel == "gradients/sources") {
    return {2 * n * w + over(n, "Br") * n * (2 * d + 2), n + n * d};
  }
  const auto product = [&](const std::string& name, N rows, N cols, N depth) {
    const N r = over(rows, name + ".rows");
    const N c = over(cols, name + ".cols");
    const N a = rows * depth;
    const N b = depth * cols;
    if (over(depth, name + ".depth") > 1) {
      return MovedWords<N>{a * c + b * r, rows * cols};
    }
    return MovedWords<N>{std::min(a + b * r, b + a * c), rows * cols};  // rows, or columns, stay
  };
  // All scores, written once: rows of the first factor stay, or tiles do. `entered` returns how
  // often a row is read.
  const auto entered = [&](const std::string& name, N depth) {
    return over(depth, name + ".depth") > 1 ? over(m, name + ".cols") : N{1};
  };
  const auto all_scores = [&](const std::string& name, N depth) {
    return MovedWords<N>{n * depth * entered(name, depth) + m * depth * over(n, name + ".rows"),
                         n * m};
  };
  if (kernel == "gradients/tiles" && shared) {  // f and p with dO and Q, in one sum
    const N r = over(m, "dK.rows");
    const N c = over(d, "dK.cols");
    return all_scores("f", d) + MovedWords<N>{n * entered("f", d), 0} +
           MovedWords<N>{2 * n * d, n} + all_scores("p", d) +
           MovedWords<N>{n * m + n * entered("p", d), 0} + product("dQ", n, d, m) +
           MovedWords<N>{2 * (n * m * c + n * d * r), m * d};
  }
  if (kernel == "gradients/tiles") {  // L for f; f and v for p
    return all_scores("f", d) + MovedWords<N>{n * entered("f", d), 0} + product("dV", m, w, n) +
           MovedWords<N>{2 * n * w, n} + all_scores("p", w) +
           MovedWords<N>{n * m + n * entered("p", w), 0} + product("dQ", n, d, m) +
           product("dK", m, d, n);
  }
  throw std::out_of_range("no contract is written down for this kernel");
}

template <class N>
MovedWords<N> moved_by_contract(std::string_view kernel, const Shape& shape, const Blocks& blocks) {
  const N n = static_cast<N>(shape.n);
  const N m = static_cast<N>(shape.m);
  const N d = static_cast<N>(shape.d);
  const auto over = [&](N extent, std::string_view block) {
    const N size = static_cast<N>(blocks[block]);
    return (extent + size - 1) / size;
  };
  // Algorithm 7, for one of the two matrices.
  const auto strips = [&](N rows, std::string_view block) {
    return MovedWords<N>{rows * d + d * d * over(rows, block), rows * d};
  };

  // Attention and gradients move the words of the forward and backward kernels, without X, Y and
  // their products.
  if (kernel.starts_with("attention/") || kernel.starts_with("gradients/")) {
    return moved_without_weights<N>(kernel, shape, blocks);
  }
  if (kernel == "matmul/blocked") {
    return {n * d * over(m, "B") + d * m * over(n, "B"), n * m};
  }
  if (kernel == "forward/naive") {  // each operand once
    return {n * d + 2 * m * d + 2 * d * d, n * d + n};
  }
  if (kernel == "backward/naive") {
    return {2 * n * d + 2 * m * d + 2 * d * d, d * d};
  }
  if (kernel == "forward/small" || kernel == "backward/small") {
    const N cn = over(n, "B");
    const N cm = over(m, "B");
    const N cd = over(d, "B");
    const MovedWords<N> S{n * d * cd + d * d * cn, n * d};
    const MovedWords<N> A{d * (n * cm + m * cn), n * m};
    const MovedWords<N> f{n * m, n * m};
    const MovedWords<N> h{m * d * cd + d * d * cm, m * d};
    if (kernel == "forward/small") {
      const MovedWords<N> O{n * m * cd + m * d * cn, n * d};
      return S + A + f + h + O + MovedWords<N>{0, n};
    }
    const MovedWords<N> q{d * (n * cm + m * cn), n * m};
    const MovedWords<N> v{2 * n * m, 0};
    const MovedWords<N> p{2 * n * m, n * m};
    const MovedWords<N> T{n * d * cm + n * m * cd, m * d};
    const MovedWords<N> g{2 * m * d * cd, d * d};
    return S + A + f + h + q + v + p + T + g;
  }
  if (kernel == "forward/flash") {
    const MovedWords<N> core{n * d + 2 * m * d * over(n, "core.Br"), n * d + n};
    return strips(n, "S.Br") + strips(m, "h.Br") + core;
  }
  if (kernel == "backward/large") {  // Algorithm 8: 4nd + n + 2md T + d^2
    const MovedWords<N> alg8{4 * n * d + n + 2 * m * d * over(n, "phase2.Br"), d * d};
    return strips(n, "phase1.Br") + strips(m, "phase1.Br") + alg8;
  }
  if (kernel == "backward/flash") {
    // T(4nd + 2n) + 3nd for n = m, including T nd + 2md writes. v adds 2nd + n.
    const N T = over(m, "core.Bc");
    const MovedWords<N> core{T * (3 * n * d + 2 * n) + 2 * m * d - n * d, T * n * d + 2 * m * d};
    const MovedWords<N> v{2 * n * d, n};
    const MovedWords<N> g{n * d * (over(d, "g.rows") + over(d, "g.cols")), d * d};
    return strips(n, "S.Br") + strips(m, "h.Br") + v + core + g;
  }
  // Columns of A1 that each row block reads once. It reads the other columns twice.
  const N kept = blocks.contains("kept") ? static_cast<N>(std::min(blocks["kept"], shape.d)) : N{0};
  // Keys that are read once, where the others are read for each row block.
  const N resident =
      blocks.contains("resident") ? static_cast<N>(std::min(blocks["resident"], shape.m)) : N{0};
  // Row-stationary: 2md T for the keys, X and Y for each row block, and g read and written.
  if (kernel == "backward/rows" || kernel == "backward/rows-onepass") {
    const N T = over(n, "Br");
    const N G = key_groups<N>(shape, blocks);
    const N of_keys = 2 * m * d * T + 2 * d * d * T * G + d * d * (T * G - 1);
    if (G > 1 && kernel == "backward/rows-onepass") {  // leaves 2 sums and 3 words of a row
      return {(5 * n * d + 7 * n) * G + of_keys, n * (2 * d + 3) * G + 2 * n + d * d * T * G};
    }
    if (G > 1) {  // v first; then A1 twice, dO, L and v for each group
      return {2 * n * d + (3 * n * d - n * kept + 2 * n) * G + of_keys, n + d * d * T * G};
    }
    const N queries = kernel == "backward/rows" ? 4 * n * d + n : 3 * n * d;
    return {queries - n * kept + of_keys, d * d * T};
  }
  // Products with a resident block: C, or, if a block has the whole depth, A or B, whichever moves
  // fewer words.
  const auto moved_by = [&](const std::string& stays, const std::string& name, N rows, N cols,
                            N depth) {
    const N r = over(rows, name + "rows");
    const N c = over(cols, name + "cols");
    const N k = over(depth, name + "depth");
    const N a = rows * depth;
    const N b = depth * cols;
    const N all = rows * cols;
    return stays == "C"   ? MovedWords<N>{a * c + b * r, all}
           : stays == "A" ? MovedWords<N>{a + b * r + all * (k - 1), all * k}
                          : MovedWords<N>{b + a * c + all * (k - 1), all * k};
  };
  for (const std::string stays : {"a", "b", "c"}) {
    if (kernel == "matmul/stationary-" + stays) {
      return moved_by(stays == "a" ? "A" : stays == "b" ? "B" : "C", "", n, m, d);
    }
  }
  const auto whole_depth = [&](const std::string& name, N depth) {
    return static_cast<N>(blocks[name + ".depth"]) >= depth;
  };
  const auto product = [&](const std::string& name, N rows, N cols, N depth) {
    if (!whole_depth(name, depth)) {
      return moved_by("C", name + ".", rows, cols, depth);
    }
    const MovedWords<N> A = moved_by("A", name + ".", rows, cols, depth);
    const MovedWords<N> B = moved_by("B", name + ".", rows, cols, depth);
    return A.reads <= B.reads ? A : B;
  };
  // All scores, written once: rows stay, or tiles do. `entered` returns how often a row is read.
  const auto scores = [&](const std::string& name) {
    return moved_by(whole_depth(name, d) ? "A" : "C", name + ".", n, m, d);
  };
  const auto entered = [&](const std::string& name) {
    return whole_depth(name, d) ? N{1} : over(m, name + ".cols");
  };
  const MovedWords<N> v{2 * n * d, n};
  // Each row's maximum and sum are read again for each further tile, and L is written at the end.
  const auto measured = [&] {
    const N T = entered("s");
    return scores("s") + MovedWords<N>{2 * n * (T - 1), n * (2 * T - 1)};
  };
  // Reads s, L, and v after the first tile.
  const auto weighed = [&] {
    const N T = entered("q");
    return scores("q") + MovedWords<N>{n * m + n * (2 * T - 1), n * T};
  };
  // S or G: a product made before and then read, or made again with every row block.
  const auto before = [&](const std::string& name) { return blocks.contains(name + ".rows"); };
  const auto made = [&](const std::string& name, N T) {
    return before(name) ? product(name, n, d, d) + MovedWords<N>{n * d, 0}
                        : MovedWords<N>{n * d + d * d * T, 0};
  };
  const MovedWords<N> W{0, n * d};

  // Q and V, their gradients with the words of V, and then dX with dA1, and dY with dA3. With X and
  // dX in fast memory each row of A1, dQ and dA1 moves once. Otherwise dQ passes in both products.
  if (kernel.starts_with("layer/")) {
    const std::string gradients = "gradients/" + std::string(kernel.substr(6));
    const auto of_projection = [&](const std::string& weight, const std::string& rows_of, N rows) {
      return blocks.contains(weight + ".Br")
                 ? MovedWords<N>{2 * rows * d + d * d, rows * d + d * d}
                 : product(weight, d, d, rows) + product(rows_of, rows, d, d);
    };
    return product("Q", n, d, d) + product("V", m, d, d) +
           moved_without_weights<N>(gradients, shape, blocks) + of_projection("dX", "dA1", n) +
           of_projection("dY", "dA3", m);
  }
  // Each operand and each result once.
  if (kernel == "linear/rows") {
    return {n * d + 2 * m * d + 2 * d * d, n * d};
  }
  if (kernel == "linear-gradient/rows") {
    return {2 * n * d + 2 * m * d + d * d, d * d};
  }
  // Products of squares. Products over rows come in groups. Sums over rows leave parts, which are
  // added up.
  if (kernel == "linear/products" || kernel == "linear-gradient/products") {
    const auto square = [&](const std::string& name) { return product(name, d, d, d); };
    const auto groups = [&](N extent, const auto& one) {
      const N most = static_cast<N>(blocks["groups"]);
      const N size = (extent + most - 1) / most;
      MovedWords<N> moved{0, 0};
      N parts = 0;
      for (N begin = 0; begin < extent; begin = begin + size) {
        moved = moved + one(extent - begin < size ? extent - begin : size);
        parts = parts + 1;
      }
      return std::pair(moved, parts);
    };
    const auto rows = [&](const std::string& name, N extent) {
      return groups(extent, [&](N size) { return product(name, size, d, d); }).first;
    };
    const auto sum = [&](const std::string& name, N extent) {
      const auto [moved, parts] = groups(extent, [&](N size) { return product(name, d, d, size); });
      return parts > 1 ? moved + MovedWords<N>{parts * d * d, d * d} : moved;
    };
    const auto has = [&](const std::string& name) { return blocks.contains(name + ".rows"); };
    if (!has("T")) {  // A1 X, or dO Y^T, meets A2^T A3
      return kernel == "linear/products" ? sum("S", m) + rows("Q", n) + rows("R", n) + rows("O", n)
                                         : sum("S", m) + rows("G", n) + rows("W", n) + sum("g", n);
    }
    const MovedWords<N> T = has("S") ? sum("S", m) + square("T") : rows("H", m) + sum("T", m);
    if (kernel == "linear/products") {
      return T + (has("P") ? square("P") : rows("Q", n)) + rows("O", n);
    }
    return T + (has("U") ? sum("U", n) + square("g") : rows("W", n) + sum("g", n));
  }
  if (kernel == "forward/tiles" || kernel == "forward/tiles-shared") {
    const N T = over(d, "O.cols");
    return product("S", n, d, d) + measured() + product("h", m, d, d) +
           MovedWords<N>{(n * m + n) * T + m * d * over(n, "O.rows"), n * d};
  }
  if (kernel == "backward/tiles") {
    return product("S", n, d, d) + scores("f") + MovedWords<N>{n * entered("f"), 0} +
           product("h", m, d, d) + v + scores("p") + MovedWords<N>{n * m + n * entered("p"), 0} +
           product("W", n, d, m) + product("g", d, d, n);
  }
  if (kernel == "backward/tiles-shared") {  // S and G pass per tile column, A2 per tile row
    const N T = over(m, "p.cols");
    return product("S", n, d, d) + product("G", n, d, d) + v +
           MovedWords<N>{2 * n * d * T + 2 * n * T + m * d * over(n, "p.rows"), n * m} +
           product("W", n, d, m) + product("g", d, d, n);
  }
  if (kernel == "backward/tiles-sqp" || kernel == "backward/tiles-sq") {
    const MovedWords<N> until_q =
        product("S", n, d, d) + measured() + product("h", m, d, d) + weighed();
    const MovedWords<N> g = product("g", d, d, n);
    if (kernel == "backward/tiles-sqp") {
      return until_q + MovedWords<N>{2 * n * m + 2 * n, n * m} + product("W", n, d, m) + g;
    }
    const N T = over(d, "W.cols");
    return until_q + MovedWords<N>{(2 * n * m + 2 * n) * T + m * d * over(n, "W.rows"), n * d} + g;
  }
  if (kernel == "backward/rows-q" || kernel == "backward/rows-q-onepass") {
    const N T = over(n, "W.Br");
    const MovedWords<N> core = MovedWords<N>{m * d * T + n * m, 0} + W;
    const MovedWords<N> around =
        product("h", m, d, d) + made("S", T) + core + product("g", d, d, n);
    if (kernel == "backward/rows-q-onepass") {
      return around + product("q", n, m, d);
    }
    const MovedWords<N> centred =
        whole_depth("q", d) ? MovedWords<N>{n * d, 0} : v + MovedWords<N>{n * entered("q"), 0};
    return around + scores("q") + centred + MovedWords<N>{n, 0};
  }
  // With given O and L, L is read, and O is read for v. From scratch they are not read.
  if (kernel.starts_with("backward/rows-w") || kernel.starts_with("backward/rows-onepass-w")) {
    const N T = over(n, "Br");
    const N sources = kernel.ends_with("-shared") ? 1 : 2;
    const bool given = kernel.starts_with("backward/rows-w");
    const MovedWords<N> of_v = !given        ? MovedWords<N>{0, 0}
                               : before("G") ? v + MovedWords<N>{2 * n, 0}
                                             : MovedWords<N>{n * d + n, 0};
    return made("S", T) + made("G", T) + of_v + MovedWords<N>{sources * m * d * T, 0} + W +
           product("g", d, d, n);
  }
  // Each operand once. Keys that are not resident are read again for each further row block.
  if (kernel.starts_with("forward/rows-resident") || kernel.starts_with("backward/rows-resident")) {
    const bool forward = kernel.starts_with("forward/");
    const N sources = kernel.ends_with("-shared") ? 1 : 2;
    const N keys = (m + (m - resident) * (over(n, "Br") - 1)) * d * sources;
    const N again = blocks.contains("again") ? static_cast<N>(blocks["again"]) : 0;  // columns
    return {(forward ? n * d : 2 * n * d) + n * again + 2 * d * d + keys,
            forward ? n * d + n : d * d};
  }
  // If A3 is A2, A3 is not read: m d T words less.
  if (kernel.ends_with("-shared")) {
    kernel.remove_suffix(std::string_view("-shared").size());
    MovedWords<N> moved = moved_by_contract<N>(kernel, shape, blocks);
    moved.reads = moved.reads - (m * over(n, "Br") - resident * (over(n, "Br") - 1)) * d;
    return moved;
  }
  if (kernel == "backward/rows-xg") {
    const N T = over(n, "Br");
    return {2 * (m * T - resident * (T - 1)) * d + d * d * (T + 1) + 3 * n * d + n, d * d};
  }
  if (kernel == "backward/score-rows") {  // (3m - Bc) d T for the keys
    const N T = over(n, "Br");
    const N c = static_cast<N>(std::min(blocks["Bc"], shape.m));
    return {3 * n * d - n * kept + (3 * m - c) * d * T + 2 * d * d * T + d * d * (T - 1),
            d * d * T};
  }
  // Column-stationary: the data of queries, X and Y pass once for each of C key blocks, and keys
  // are read three times. O passes once. v is written then, if a later block reads it.
  if (kernel == "backward/columns") {
    const N C = over(m, "Bc");
    const N again = C - 1;
    return {2 * n * d * C + n * C + n * d + n * again + 3 * m * d + 2 * d * d * C + d * d * again,
            d * d * C + (again > 0 ? n : 0)};
  }
  if (kernel == "forward/columns") {  // O, maxima and sums are written and read between blocks
    const N C = over(m, "Bc");
    const N between = (C - 1) * (n * d + 2 * n);
    return {n * d * C + 2 * m * d + 2 * d * d * C + between, n * d + n + between};
  }
  if (kernel == "forward/rows") {
    const N T = over(n, "Br");
    return MovedWords<N>{
               (n * d + d * d * T) * key_groups<N>(shape, blocks) + 2 * m * d * T + d * d * T,
               n * d + n} +
           left_by_groups<N>(shape, blocks);
  }
  throw std::out_of_range("no contract is written down for this kernel");
}

// Operations outside of products, each counted once. `T` is the number of key blocks that a row
// meets.
inline Index elementwise_by_contract(std::string_view kernel, const Shape& shape,
                                     const Blocks& blocks) {
  const Index n = shape.n;
  const Index m = shape.m;
  const Index d = shape.d;
  const Index scores = n * m;
  const auto over = [&](Index extent, std::string_view block) {
    return (extent + blocks[block] - 1) / blocks[block];
  };
  if (kernel.starts_with("matmul/") || kernel.starts_with("linear")) {
    return 0;  // in one group
  }
  if (kernel ==
      "forward/naive") {  // maximum, difference, exp, sum, quotient; L = maximum + log(sum)
    return 5 * scores + 2 * n;
  }
  if (kernel == "backward/naive") {  // the same without L, and p = f * (q - v), v = rowsum(f * q)
    return 9 * scores;
  }
  // Scores in tiles: maximum, difference, exp, sum. Each tile also rescales the old sum.
  const auto safe_tiles = [&](std::string_view block) {
    return 4 * scores + 3 * n * over(m, block) + 2 * n;
  };
  if (kernel == "forward/small") {
    return safe_tiles("B") + 2 * scores;
  }
  if (kernel == "backward/small") {
    return safe_tiles("B") + 6 * scores;
  }
  const bool shared = kernel.ends_with("-shared");
  if (shared) {
    kernel.remove_suffix(std::string_view("-shared").size());
  }
  // c multiplies K and dK for each key that stays. If K is also V, c multiplies each Q that passes.
  const auto scaled_with_keys = [&](std::string_view block) {
    return shared ? n * d * blocks_of_groups(shape, blocks, block) : 2 * m * d;
  };
  // Sums of values have the width of values.
  const Shape of_values{n, m, shape.dv};
  const Index w = shape.dv;
  // c multiplies each word of Q, or of K if K stays, or each score.
  if (kernel == "attention/rows" || kernel == "attention/rows-resident") {
    return n * d * key_groups<Index>(shape, blocks) +
           elementwise_by_contract("forward/" + std::string(kernel.substr(10)), of_values, blocks);
  }
  if (kernel == "attention/columns") {
    return m * d + elementwise_by_contract("forward/columns", of_values, blocks);
  }
  if (kernel == "attention/tiles") {
    return scores + elementwise_by_contract("forward/tiles", of_values, blocks);
  }
  // The other operations are products. c = 1 counts like any other c.
  if (kernel.starts_with("layer/")) {
    return elementwise_by_contract("gradients/" + std::string(kernel.substr(6)), shape, blocks);
  }
  if (kernel == "gradients/flash") {  // also p, if V is K
    return scaled_with_keys("core.Bc") + (shared ? scores : 0) +
           elementwise_by_contract("backward/flash", of_values, blocks);
  }
  // s and q twice. c for Q of each group and for dQ. The sums of groups.
  if (kernel == "gradients/rows-keys") {
    const Index G = key_groups<Index>(shape, blocks), H = query_groups<Index>(shape, blocks);
    const Index again = shared ? 0 : (H - 1) * m * d;  // K
    return 2 * G * n * d + scaled_with_keys("dKV.Bc") + again + (H - 1) * m * (shared ? d : d + w) +
           2 * n * w + 8 * scores;
  }
  if (kernel == "gradients/resident") {  // c for Q and dQ; v; s and q once
    return 2 * n * d + 2 * n * w + 4 * scores;
  }
  if (kernel == "gradients/resident-queries") {  // c for Q each time
    const Index resident = std::min(blocks["resident"], n);
    return (resident + (n - resident) * over(m, "Bc")) * d + n * d + 2 * n * w + 4 * scores;
  }
  // v; c for each score and for the sum of both p; both f and both p, and the sum.
  if (kernel == "gradients/sources") {
    return 2 * n * w + 11 * n * n;
  }
  if (kernel == "gradients/tiles") {  // c for each score and each p
    return 2 * n * w + 6 * scores;
  }
  // c for Q and dQ. Q, dO, dQ and v are divided. Partial sums of groups are added.
  if (kernel == "gradients/score-rows") {
    const Index G = blocks["groups"];
    return 8 * scores + n * (4 * d + w + 1) + (G > 1 ? G * m * (shared ? d : d + w) : 0);
  }
  if (kernel == "forward/tiles") {
    return safe_tiles("s.cols") + 2 * scores * over(d, "O.cols");
  }
  if (kernel == "backward/tiles-sqp") {
    return safe_tiles("s.cols") + 8 * scores;
  }
  if (kernel == "backward/tiles-sq") {  // p is made again for each column of tiles of W
    return safe_tiles("s.cols") + 4 * scores + 4 * scores * over(d, "W.cols");
  }
  const auto key_blocks = [&](std::string_view block) {
    const Index resident = blocks.contains("resident") ? std::min(blocks["resident"], m) : 0;
    return over(resident, block) + over(m - resident, block);
  };
  // Each key block rescales d sums and the sum of exponentials of a row. At the end both are
  // divided.
  if (kernel.starts_with("forward/")) {
    const Index G = kernel == "forward/rows" ? key_groups<Index>(shape, blocks) : 1;
    if (G == 1) {
      const Index T = key_blocks(kernel == "forward/flash" ? "core.Bc" : "Bc");
      return 4 * scores + n * (T * (d + 3) + d + 2);
    }
    // Each of several groups has separate key blocks. It is divided by its own sum, rescales the
    // row's sums, and is added with a weight.
    const Index T = blocks_of_groups(shape, blocks, "Bc");
    return 4 * scores + n * (T * (d + 3) + G * (4 * d + 9) + d + 2);
  }
  // Partial sums of g are added from the second row block, or key block, on.
  const auto partial_sums = [&](Index extent, std::string_view block) {
    return d * d * (over(extent, block) - 1);
  };
  // Each key block rescales two sums of d words of a row and recentres one of them.
  const auto in_one_pass = [&](Index T) { return 9 * scores + n * T * (4 * d + 5) + n * d; };
  // Groups do not divide. In each group, twelve operations update the maximum, sum and mean of a
  // row, and two more make L at the end. Each group then combines its two sums into one.
  const auto in_groups = [&](std::string_view block) {
    const Index G = key_groups<Index>(shape, blocks);
    if (G == 1) {
      return in_one_pass(key_blocks(block));
    }
    return in_one_pass(blocks_of_groups(shape, blocks, block)) - n * d + n * (12 * G + 2) +
           n * G * (3 * d + 3);
  };
  if (kernel == "gradients/rows-keys-onepass") {  // and L; c for Q, dQ; then s and q again
    const Index G = key_groups<Index>(shape, blocks), H = query_groups<Index>(shape, blocks);
    const Index again = shared ? 0 : (H - 1) * m * d;  // K
    return in_groups("dQ.Bc") + (G > 1 ? 0 : 2 * n) + 2 * G * n * d + scaled_with_keys("dKV.Bc") +
           again + (H - 1) * m * (shared ? d : d + w) + 4 * scores;
  }
  if (kernel == "backward/rows-onepass") {
    return in_groups("Bc") + d * d * (over(n, "Br") * key_groups<Index>(shape, blocks) - 1);
  }
  if (kernel == "backward/rows-resident" || kernel == "backward/rows-onepass-w") {
    return in_one_pass(key_blocks("Bc"));
  }
  if (kernel == "backward/rows-q-onepass") {
    return in_one_pass(key_blocks("W.Bc"));
  }
  if (kernel == "backward/score-rows") {  // whole rows of scores need no rescaling
    return 8 * scores + n * (d + 1) + partial_sums(n, "Br");
  }
  // Given O and L: v = rowsum(dO * O), p = exp(s - L) * (q - v).
  const Index given = 4 * scores + 2 * n * d;
  if (kernel == "backward/rows") {
    return given + d * d * (over(n, "Br") * key_groups<Index>(shape, blocks) - 1);
  }
  if (kernel == "backward/columns") {
    return given + partial_sums(m, "Bc");
  }
  if (kernel == "backward/large" || kernel == "backward/flash" || kernel == "backward/rows-w" ||
      kernel == "backward/rows-xg" || kernel == "backward/rows-q" || kernel == "backward/tiles") {
    return given;
  }
  throw std::out_of_range("no contract is written down for this kernel");
}

}  // namespace redblue
