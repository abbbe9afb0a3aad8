#pragma once
// Reads and writes graphs and moves in files.
//
//   text   "v: a b" for each vertex v computed from a and b, and "v" for an input; # begins a
//          comment.
//   hdag   the hyperDAG format, v1: the counts of hyperedges, vertices and pins; a line for each of
//          them; % begins a comment. The first pin of a hyperedge is the operand of all its others.
//          Files without lines of hyperedges are read as well, with pins before vertices. A word
//          after % on the line of a vertex is its name, if all vertices have different names.
//   dot    digraphs of Graphviz, without subgraphs; in quotes, \ stands before " and before itself
//   mtx    Matrix Market: row i is computed from its columns; an entry (i, i) is ignored. A
//          symmetric matrix means its lower triangle, which is the part in the file.
//
// A computed vertex s*2 is a term of a sum if it has one user, and this user is s or a partial sum
// such as s+1.
//
// If the format cannot hold a name (dag_formats.hpp), and always in mtx, vertices have numbers for
// names. Throw (all): InputError with the file, the line and the fault. Faults are also an operand
// of itself, a cycle, a vertex that is neither computed nor an operand, and a repeated edge.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pebble/dag.hpp"
#include "runtime/pebble/game.hpp"

namespace redblue {

enum class DagFormat : std::uint8_t { text, hdag, dot, mtx };

// Returns the format by the end of the name: .hdag, .dot or .gv, .mtx; .txt or no end is text.
// Throws: std::invalid_argument for another end.
DagFormat format_of(const std::filesystem::path& file);
Dag parse_dag(std::string_view text, const std::filesystem::path& file, DagFormat format);
std::string to_text(const Dag& dag, DagFormat format);

// Moves, one in a line: "read v", "write v", "compute v", "compute v slides u", "delete v".
// Vertices have the names of the text format, and # begins a comment. Appends the line number of
// each move to `lines` if it is not null.
std::vector<Move> parse_moves(std::string_view text, const std::filesystem::path& file,
                              const Dag& dag, std::vector<Index>* lines = nullptr);
std::string to_text(const Dag& dag, const std::vector<Move>& moves);

}  // namespace redblue
