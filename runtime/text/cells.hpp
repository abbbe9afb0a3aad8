#pragma once
// Rows of named, typed cells. A report names its columns once, in the function that makes the cells
// of a row. The table for people, the objects of JSON and the lines of CSV are all written from
// them.
//
//   Cells cells_of(const Bound& bound) {
//     return {{{"bound", "name"}, bound.name},           // title of the table; key and column
//             {"words", bound.words},                     // 1,234 in the table, else 1234
//             {{"over the bound", "ratio"}, decimals(bound.ratio, 3)},
//             {in_json("proven"), bound.proven}};
//   }

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

// The names of a cell in the three forms. A form without a name leaves the cell out.
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

// A value and its appearance. By default people see whole numbers in groups of three digits, yes or
// no for booleans, and "-" for null. CSV has yes or no, and an empty cell for null.
struct CellValue {
  Json json;
  std::string text = {};  // replaces the default for people if `reworded`
  bool reworded = false;
  bool quoted = false;  // always in quotes in CSV
  bool absent = false;  // no member in JSON, an empty cell in CSV
  bool left = false;    // the column of the table is aligned to the left

  template <class T>
  requires std::constructible_from<Json, T> CellValue(T&& value) : json(std::forward<T>(value)) {}
  [[nodiscard]] CellValue shown(std::string as) const;
};
// Makes a cell value. People see `digits` digits after the point and the unit, or `unknown` for
// null.
CellValue decimals(const std::optional<double>& value, int digits, std::string_view unit = "",
                   const char* unknown = "-");
// Returns a / b, if both are known.
std::optional<double> quotient(const std::optional<Index>& a, const std::optional<Index>& b);
CellValue always_quoted(std::string_view text);
// Makes a value in a column that is aligned to the left.
CellValue to_the_left(std::string_view text);
// No value in this row. People see "-".
CellValue absent();

struct Cell {
  CellNames names;
  CellValue value;
};
using Cells = std::vector<Cell>;
Cells joined(Cells cells, const Cells& more, const Cells& third = {}, const Cells& fourth = {});
// Remove the names of cells in the other forms.
Cells only_in_table(Cells cells);
Cells only_in_json(Cells cells);
Cells only_in_csv(Cells cells);
Cells not_in_csv(Cells cells);
// Returns the cells of each thing, as `cells_of` makes them.
template <class Things, class CellsOf>
std::vector<Cells> rows_of(const Things& things, const CellsOf& cells_of) {
  std::vector<Cells> rows;
  for (const auto& thing : things) {
    rows.push_back(cells_of(thing));
  }
  return rows;
}

// Returns the table, with the titles of the first row. Requires: a row; the same titles in all
// rows.
std::string table_of(const std::vector<Cells>& rows);
Json json_of(const Cells& cells);
Json json_of(const std::vector<Cells>& rows);
// Return one line, with its newline.
std::string csv_head(const Cells& cells);
std::string csv_line(const Cells& cells);
// Returns the head and all lines. Requires: a row; the same columns in all rows.
std::string csv_of(const std::vector<Cells>& rows);

}  // namespace redblue
