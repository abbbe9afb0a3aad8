#pragma once
// A report, described once: lines for people, facts and tables, in the order of the text. The text,
// the document of JSON and the lines of CSV are made from it.
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
  // Text alone: whole lines, as they are; or one line.
  void text(std::string lines);
  template <class... Args>
  void say(fmt::format_string<Args...> form, Args&&... args) {
    text(fmt::format(form, std::forward<Args>(args)...) + "\n");
  }
  // A member of JSON, unless it is absent or has no key. "total.reads" is a member of a member.
  void fact(std::string_view key, const CellValue& value);
  // Members of JSON, by the keys of the cells. Those with columns come before the cells of each row
  // that follows, here and in parts; a later one replaces an earlier one of this column.
  void facts(const Cells& cells);
  // All members of an object.
  void members(const Json& object);
  // Rows. Each form takes those that have names for it. JSON has them in the array `key`, after
  // those of earlier tables with this key; without a key it has none.
  void table(std::string key, std::vector<Cells> rows);
  // The same, whose last row is the member `total` of JSON.
  void table(std::string key, const std::string& total, std::vector<Cells> rows);
  // Another description, whose members of JSON are those of this one; those of the object `key`; or
  // those of the next element of the array `key`.
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
    std::string text;  // or the key
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

// A report that `describe` describes.
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
