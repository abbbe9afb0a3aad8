#pragma once
// Data go to standard output, and only whole: a full disk or a closed pipe is a failure. Words go
// to standard error. Or both go to the program that called (caller.hpp).

#include <cstdio>
#include <string>
#include <string_view>

#include <unistd.h>

#include "runtime/text/printable.hpp"
#include "tools/cli/caller.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// Throws: std::system_error.
void print(std::string_view text, std::FILE* stream = stdout);

// Writes a file, whole or not at all; where it is "-", prints. Throws: std::system_error.
void print_to(const std::string& target, const std::string& text);

// The stream of a report: standard error if a file that was asked for goes to standard output.
inline std::FILE* beside(bool data_on_standard_output) {
  return data_on_standard_output ? stderr : stdout;
}

// One of three forms, each of which is made by a function. A caller of JSON gets all.
template <class Table, class Csv, class Document>
void print(Format format, const Table& table, const Csv& csv, const Document& json,
           std::FILE* stream = stdout) {
  if (caller() != nullptr && format == Format::json) {
    caller()->table = table();
    caller()->csv = csv();
  }
  print(format == Format::table ? table() : format == Format::json ? json() : csv(), stream);
}

// A report of any kind that has these forms.
template <class Report>
void print(const Report& report, Format format, std::FILE* stream = stdout) {
  print(
      format, [&] { return printable_lines(to_table(report)); }, [&] { return to_csv(report); },
      [&] { return to_json(report); }, stream);
}

// Writes a line to standard error, after "redblue: ", printable and not endless. A failure to write
// it cannot be reported.
void say(std::string_view line) noexcept;

// A line on standard error that is rewritten in place, and removed in the end. It is shown only on
// a terminal.
class StatusLine {
 public:
  StatusLine() = default;
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { show(""); }

  [[nodiscard]] bool visible() const { return terminal_; }
  void show(std::string_view line) noexcept;  // "": no line
  void clear() noexcept;                      // also a line that another StatusLine shows

 private:
  const bool terminal_ = caller() == nullptr && ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

}  // namespace redblue
