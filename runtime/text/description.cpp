#include "runtime/text/description.hpp"

#include <algorithm>
#include <iterator>

namespace redblue {
namespace {

// Returns the rows that have a name in this form.
std::vector<Cells> rows_in(const std::vector<Cells>& rows, std::string CellNames::*form) {
  std::vector<Cells> found;
  std::ranges::copy_if(rows, std::back_inserter(found), [&](const Cells& row) {
    return std::ranges::any_of(row, [&](const Cell& cell) { return !(cell.names.*form).empty(); });
  });
  return found;
}

// Sets members, and merges objects inside objects.
void set_members(Json& json, const Json& members) {
  for (const auto& [key, value] : members.items()) {
    if (value.is_object() && json.contains(key) && json.at(key).is_object()) {
      set_members(json[key], value);
    } else {
      json[key] = value;
    }
  }
}

// Adds the cells of facts that have columns. They replace cells with the same column.
void set_columns(Cells& head, const Cells& facts) {
  for (const Cell& cell : facts) {
    const std::string& column = cell.names.column;
    const auto known =
        std::ranges::find(head, column, [](const Cell& its) { return its.names.column; });
    if (known != head.end()) {
      known->value = cell.value;
    } else if (!column.empty()) {
      head.push_back(cell);
    }
  }
}

}  // namespace

void Description::text(std::string lines) {
  items_.push_back({Kind::text, std::move(lines)});
}

void Description::fact(std::string_view key, const CellValue& value) {
  facts({{in_json(std::string(key)), value}});
}

void Description::facts(const Cells& cells) {
  items_.push_back({Kind::facts, "", {cells}});
}

void Description::members(const Json& object) {
  for (const auto& [key, value] : object.items()) {
    fact(key, value);
  }
}

void Description::table(std::string key, std::vector<Cells> rows) {
  items_.push_back({Kind::table, std::move(key), std::move(rows)});
}

void Description::table(std::string key, const std::string& total, std::vector<Cells> rows) {
  fact(total, json_of(rows.back()));
  for (Cell& cell : rows.back()) {
    cell.names.key.clear();
  }
  table(std::move(key), std::move(rows));
}

void Description::add(const Description& more) {
  items_.insert(items_.end(), more.items_.begin(), more.items_.end());
}

void Description::member(std::string key, const Description& part) {
  items_.push_back({Kind::member, std::move(key), {}, std::make_shared<Description>(part)});
}

void Description::element(std::string key, const Description& part) {
  items_.push_back({Kind::element, std::move(key), {}, std::make_shared<Description>(part)});
}

void Description::add_text(std::string& text) const {
  for (const Item& item : items_) {
    const auto rows = rows_in(item.rows, &CellNames::title);
    if (item.part) {
      item.part->add_text(text);
    } else if (item.kind == Kind::table && !rows.empty()) {
      text += table_of(rows);
    } else if (item.kind == Kind::text) {
      text += item.text;
    }
  }
}

void Description::add_lines(std::string& text, Cells head) const {
  for (const Item& item : items_) {
    if (item.part) {
      item.part->add_lines(text, head);
    } else if (item.kind == Kind::facts) {
      set_columns(head, item.rows.front());
    }
    for (const Cells& row : rows_in(item.rows, &CellNames::column)) {
      if (item.kind == Kind::table) {
        const Cells line = joined(head, row);
        text += (text.empty() ? csv_head(line) : "") + csv_line(line);
      }
    }
  }
}

std::string to_table(const Description& of) {
  std::string text;
  of.add_text(text);
  return text;
}

Json json_of(const Description& of) {
  Json json = Json::object();
  const auto append = [&](const std::string& key, const std::vector<Json>& elements) {
    json[key] = json.value(key, Json::array());
    std::ranges::for_each(elements, [&](const Json& each) { json[key].push_back(each); });
  };
  for (const auto& [kind, key, rows, part] : of.items_) {
    if (kind == Description::Kind::facts) {
      set_members(json, json_of(rows.front()));
    } else if (kind == Description::Kind::table && !key.empty()) {
      const Json array = json_of(rows_in(rows, &CellNames::key));
      append(key, {array.begin(), array.end()});
    } else if (kind == Description::Kind::element) {
      append(key, {json_of(*part)});
    } else if (kind == Description::Kind::member) {
      json[key] = json_of(*part);
    }
  }
  return json;
}

std::string to_json(const Description& of) {
  return json_of(of).document(Json::BadText::replaced);
}

std::string to_csv(const Description& of) {
  std::string text;
  of.add_lines(text, {});
  return text;
}

}  // namespace redblue
