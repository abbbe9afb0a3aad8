#pragma once
// Rows of named, typed cells. A report names its columns once, where it makes the cells of a row;
// a table for people, objects of JSON and lines of CSV are written from them.
//
//   Cells cells_of(const Bound& bound) {
//     return {{{"bound", "name"}, bound.name},           // title of the table; key and column
//             {"words", bound.words},                     // 1,234 in the table, else 1234
//             {{"over it", "ratio"}, decimals(bound.ratio, 3)},
//             {in_json("proven"), bound.proven}};
//   }

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/text/json.hpp"

namespace redblue {

// What a cell is called in each form; empty: the form does not have it.
struct CellNames {
  std::string title;
  std::string key;  // "total.reads" is the member reads of the object total
  std::string column;

  CellNames(const char* everywhere) : CellNames(std::string(everywhere)) {}
  CellNames(const std::string& everywhere) : CellNames(everywhere, everywhere) {}
  CellNames(std::string of_table, const std::string& of_programs)
      : CellNames(std::move(of_table), of_programs, of_programs) {}
  CellNames(std::string of_table, std::string of_json, std::string of_csv)
      : title(std::move(of_table)), key(std::move(of_json)), column(std::move(of_csv)) {}
};
CellNames in_table(std::string title);
CellNames in_json(std::string key);
CellNames in_csv(std::string column);
CellNames in_json_and_csv(const std::string& name);

// A value, and how forms show it. Unless said otherwise people see a whole number in groups of
// three digits, yes or no, and "-" for null; CSV has yes or no, and nothing for null.
struct CellValue {
  Json json;
  std::string text = {};  // what people see instead, if it is `reworded`
  bool reworded = false;
  bool quoted = false;  // in CSV, although nothing in it needs that
  bool absent = false;  // JSON has no such member, CSV nothing

  template <class T>
  requires std::constructible_from<Json, T> CellValue(T&& value) : json(std::forward<T>(value)) {}
  [[nodiscard]] CellValue shown(std::string as) const;
};
// With so many digits after the point for people; null: `unknown`.
CellValue decimals(const std::optional<double>& value, int digits, std::string_view unit = "",
                   const char* unknown = "-");
CellValue always_quoted(std::string_view text);
// Where a row has no such value at all; people see "-".
CellValue absent();

struct Cell {
  CellNames names;
  CellValue value;
};
using Cells = std::vector<Cell>;
Cells joined(Cells cells, const Cells& more);
// The cells of each thing, as `cells_of` makes them.
template <class Things, class CellsOf>
std::vector<Cells> rows_of(const Things& things, const CellsOf& cells_of) {
  std::vector<Cells> rows;
  for (const auto& thing : things) {
    rows.push_back(cells_of(thing));
  }
  return rows;
}

// The table; its titles are those of the first row. Requires: a row, and equal titles in all.
std::string table_of(const std::vector<Cells>& rows);
Json json_of(const Cells& cells);
Json json_of(const std::vector<Cells>& rows);
// A line each, with its newline.
std::string csv_head(const Cells& cells);
std::string csv_line(const Cells& cells);
// The head of the first row, and all lines. Requires: a row.
std::string csv_of(const std::vector<Cells>& rows);

}  // namespace redblue
