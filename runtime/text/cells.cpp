#include "runtime/text/cells.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Returns the value without groups of digits.
std::string plain(const Json& json) {
  return json.is_string()            ? json.get<std::string>()
         : json.is_boolean()         ? (json.get<bool>() ? "yes" : "no")
         : json.is_number_unsigned() ? fmt::format("{}", json.get<std::uint64_t>())
         : json.is_integer()         ? fmt::format("{}", json.get<std::int64_t>())
         : json.is_number()          ? fmt::format("{}", json.get<double>())
                                     : json.dump();
}

std::string for_people(const CellValue& value) {
  if (value.reworded) {
    return value.text;
  }
  return value.absent || value.json.is_null() ? "-"
         : value.json.is_integer()            ? grouped(value.json.get<Index>())
                                              : plain(value.json);
}

std::string for_csv(const CellValue& value) {
  if (value.absent || value.json.is_null()) {
    return "";
  }
  return csv_cell(plain(value.json), value.quoted);
}

template <class Of>
std::vector<std::string> present(const Cells& cells, std::string CellNames::*name, const Of& of) {
  std::vector<std::string> found;
  for (const Cell& cell : cells) {
    if (!(cell.names.*name).empty()) {
      found.push_back(of(cell));
    }
  }
  return found;
}

template <class Names>
Cells renamed(Cells cells, const Names& names_of) {
  for (auto& [names, value] : cells) {
    names = names_of(names);
  }
  return cells;
}

std::string line_of(const std::vector<std::string>& texts) {
  return fmt::format("{}\n", fmt::join(texts, ","));
}

}  // namespace

CellNames in_table(std::string title) {
  return {std::move(title), "", ""};
}
CellNames in_json(std::string key) {
  return {"", std::move(key), ""};
}
CellNames in_csv(std::string column) {
  return {"", "", std::move(column)};
}
CellNames in_json_and_csv(const std::string& name) {
  return {"", name};
}

CellValue CellValue::shown(std::string as) const {
  CellValue value = *this;
  value.text = std::move(as);
  value.reworded = true;
  return value;
}

CellValue decimals(const std::optional<double>& value, int digits, std::string_view unit,
                   const char* unknown) {
  return CellValue(value).shown(value ? fmt::format("{:.{}f}{}", *value, digits, unit) : unknown);
}

std::optional<double> quotient(const std::optional<Index>& a, const std::optional<Index>& b) {
  return a && b ? std::optional(static_cast<double>(*a) / static_cast<double>(*b)) : std::nullopt;
}

CellValue always_quoted(std::string_view text) {
  CellValue value = text;
  value.quoted = true;
  return value;
}

CellValue to_the_left(std::string_view text) {
  CellValue value = text;
  value.left = true;
  return value;
}

CellValue absent() {
  CellValue value = nullptr;
  value.absent = true;
  return value;
}

Cells joined(Cells cells, const Cells& more, const Cells& third, const Cells& fourth) {
  for (const Cells* each : {&more, &third, &fourth}) {
    cells.insert(cells.end(), each->begin(), each->end());
  }
  return cells;
}

Cells only_in_table(Cells cells) {
  return renamed(std::move(cells), [](const CellNames& old) { return in_table(old.title); });
}
Cells only_in_json(Cells cells) {
  return renamed(std::move(cells), [](const CellNames& old) { return in_json(old.key); });
}
Cells only_in_csv(Cells cells) {
  return renamed(std::move(cells), [](const CellNames& old) { return in_csv(old.column); });
}
Cells not_in_csv(Cells cells) {
  return renamed(std::move(cells),
                 [](const CellNames& old) { return CellNames(old.title, old.key, ""); });
}

std::string table_of(const std::vector<Cells>& rows) {
  const auto title = [](const Cell& cell) { return cell.names.title; };
  Table table;
  table.add(present(rows.front(), &CellNames::title, title));
  std::size_t column = 0;
  for (const Cell& cell : rows.front()) {
    if (cell.value.left) {
      table.align_left(column);
    }
    column += cell.names.title.empty() ? 0 : 1;
  }
  for (const Cells& cells : rows) {
    table.add(
        present(cells, &CellNames::title, [](const Cell& cell) { return for_people(cell.value); }));
  }
  return table.text();
}

Json json_of(const Cells& cells) {
  Json object = Json::object();
  for (const auto& [names, value] : cells) {
    if (names.key.empty() || value.absent) {
      continue;
    }
    Json* at = &object;
    std::string_view key = names.key;
    for (std::size_t dot = 0; (dot = key.find('.')) != std::string_view::npos;) {
      at = &(*at)[key.substr(0, dot)];
      key.remove_prefix(dot + 1);
    }
    (*at)[key] = value.json;
  }
  return object;
}

Json json_of(const std::vector<Cells>& rows) {
  Json array = Json::array();
  for (const Cells& cells : rows) {
    array.push_back(json_of(cells));
  }
  return array;
}

std::string csv_head(const Cells& cells) {
  return line_of(present(cells, &CellNames::column,
                         [](const Cell& cell) { return csv_cell(cell.names.column); }));
}

std::string csv_line(const Cells& cells) {
  return line_of(
      present(cells, &CellNames::column, [](const Cell& cell) { return for_csv(cell.value); }));
}

std::string csv_of(const std::vector<Cells>& rows) {
  std::string text = csv_head(rows.front());
  for (const Cells& cells : rows) {
    text += csv_line(cells);
  }
  return text;
}

}  // namespace redblue
