#pragma once
// Graphs in files, and moves.
//
//   text   "v: a b" for each vertex v computed of a and b, and "v" for an input; # begins a
//          comment.
//   hdag   the hyperDAG format, v1: the counts of hyperedges, vertices and pins; a line for each of
//          them; % begins a comment. The first pin of a hyperedge is the operand of all others.
//          Files without lines of hyperedges, and pins before vertices, are read as well. What
//          stands behind % on the lines of vertices, where it is a word, is their names.
//   dot    digraphs of Graphviz, without subgraphs; in quotes \ stands before " and before itself
//   mtx    Matrix Market: row i is computed of its columns; an entry (i, i) says nothing. Of a
//          symmetric matrix the lower triangle, which is what the file has.
//
// A computed vertex s*2 is a term of a sum where it has one user alone, and that is s, or its
// partial sum s+1.
//
// Where a name is none that the format can hold (dag_formats.hpp), and in mtx, vertices are called
// by their numbers, as the format has them. Throw (all): InputError with the file, the line and the
// fault: also for an operand of itself, a cycle, a vertex that is neither computed nor an operand,
// or an edge that is there twice.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pebble/dag.hpp"
#include "runtime/pebble/game.hpp"

namespace redblue {

enum class DagFormat : std::uint8_t { text, hdag, dot, mtx };

// By its name: .hdag, .dot or .gv, .mtx; .txt, or none of these ends, is text. Throws:
// std::invalid_argument for another end.
DagFormat format_of(const std::filesystem::path& file);
Dag parse_dag(std::string_view text, const std::filesystem::path& file, DagFormat format);
std::string to_text(const Dag& dag, DagFormat format);

// A move a line: "read v", "write v", "compute v", "compute v slides u", "delete v", of vertices as
// text has them; # begins a comment. `lines`, where it is not null, becomes the line of each.
std::vector<Move> parse_moves(std::string_view text, const std::filesystem::path& file,
                              const Dag& dag, std::vector<Index>* lines = nullptr);
std::string to_text(const Dag& dag, const std::vector<Move>& moves);

}  // namespace redblue
