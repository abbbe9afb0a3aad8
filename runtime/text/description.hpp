#pragma once
// A report, described once: text for people, facts and tables, in the order of the text. The text,
// the JSON document and the CSV lines are all made from it.
//
//   Description describe(const NestReport& report) {
//     Description of;
//     of.say("{} loops", report.lines.size());             // a line of the text
//     of.facts(kernel_cells(report.plan));                 // members of JSON, and columns of CSV
//     of.fact("blocks", blocks_json(report.plan.blocks));  // a member of JSON
//     of.table("loops", rows_of(report.lines, cells_of));  // in all forms
//     return of;
//   }

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/text/cells.hpp"

namespace redblue {

class Description {
 public:
  // Add text for people only. text() takes whole lines, say() formats one line.
  void text(std::string lines);
  template <class... Args>
  void say(fmt::format_string<Args...> form, Args&&... args) {
    text(fmt::format(form, std::forward<Args>(args)...) + "\n");
  }
  // Adds a member of JSON, unless it is absent or has no key. "total.reads" is the member reads of
  // the object total.
  void fact(std::string_view key, const CellValue& value);
  // Adds members of JSON, named by the keys of the cells. Cells with CSV columns are repeated at
  // the start of each CSV line that follows, also in parts. A later cell replaces an earlier cell
  // with the same column.
  void facts(const Cells& cells);
  // Adds all members of an object.
  void members(const Json& object);
  // Adds rows. Each form shows the rows that have names for it. JSON appends them to the array
  // `key`; without a key, JSON leaves them out.
  void table(std::string key, std::vector<Cells> rows);
  // Adds rows. In JSON the last row is the member `total`, not an element of the array.
  void table(std::string key, const std::string& total, std::vector<Cells> rows);
  // Add another description. In JSON, add() puts its members into this object, member() into the
  // object `key`, and element() into a new element of the array `key`.
  void add(const Description& more);
  void member(std::string key, const Description& part);
  void element(std::string key, const Description& part);

 private:
  friend std::string to_table(const Description& of);
  friend Json json_of(const Description& of);
  friend std::string to_csv(const Description& of);

  enum class Kind { text, facts, table, member, element };
  struct Item {
    Kind kind;
    std::string text;  // the text, or the key of another kind
    std::vector<Cells> rows = {};
    std::shared_ptr<const Description> part = {};
  };
  void add_text(std::string& text) const;
  void add_lines(std::string& text, Cells head) const;

  std::vector<Item> items_;
};

std::string to_table(const Description& of);
Json json_of(const Description& of);
// Bytes that are not UTF-8 are replaced by U+FFFD.
std::string to_json(const Description& of);
std::string to_csv(const Description& of);

// A report that describe() accepts.
template <class Report>
concept Described = requires(const Report& report) {
  { describe(report) } -> std::same_as<Description>;
};
template <Described Report>
std::string to_table(const Report& report) {
  return to_table(describe(report));
}
template <Described Report>
std::string to_json(const Report& report) {
  return to_json(describe(report));
}
template <Described Report>
std::string to_csv(const Report& report) {
  return to_csv(describe(report));
}

}  // namespace redblue
