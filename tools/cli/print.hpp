#pragma once
// Prints data to standard output and messages to standard error, or passes both to the calling
// program (caller.hpp). Output is complete or fails: a full disk or a closed pipe is an error.

#include <cstdio>
#include <string>
#include <string_view>

#include <unistd.h>

#include "runtime/text/printable.hpp"
#include "tools/cli/caller.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// Prints `text` to `stream`. Throws: std::system_error.
void print(std::string_view text, std::FILE* stream = stdout);

// Writes a file, completely or not at all. The target "-" is standard output. Throws:
// std::system_error.
void print_to(const std::string& target, const std::string& text);

// Returns the stream for a report: standard error if an output file goes to standard output.
inline std::FILE* beside(bool data_on_standard_output) {
  return data_on_standard_output ? stderr : stdout;
}

// Prints a report in one of three formats, each made by a function. A caller that asks for JSON
// gets all three.
template <class Table, class Csv, class Document>
void print(Format format, const Table& table, const Csv& csv, const Document& json,
           std::FILE* stream = stdout) {
  if (caller() != nullptr && format == Format::json) {
    caller()->table = table();
    caller()->csv = csv();
  }
  print(format == Format::table ? table() : format == Format::json ? json() : csv(), stream);
}

// Prints a report that has to_table(), to_csv() and to_json().
template <class Report>
void print(const Report& report, Format format, std::FILE* stream = stdout) {
  print(
      format, [&] { return printable_lines(to_table(report)); }, [&] { return to_csv(report); },
      [&] { return to_json(report); }, stream);
}

// Writes a line to standard error, after "redblue: ". The line is escaped and shortened. Ignores a
// failure to write, because it cannot be reported.
void say(std::string_view line) noexcept;

// A line on standard error that is rewritten in place and removed at the end. It appears only on a
// terminal.
class StatusLine {
 public:
  StatusLine() = default;
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { show(""); }

  [[nodiscard]] bool visible() const { return terminal_; }
  void show(std::string_view line) noexcept;  // "" removes the line
  void clear() noexcept;                      // removes the line of any StatusLine

 private:
  const bool terminal_ = caller() == nullptr && ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

}  // namespace redblue
