// Journals: any lines, with a last line that may be cut short.

#include "runtime/system/journal.hpp"

#include <stdexcept>

#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {
namespace {

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

void journal(std::string_view input) {
  const std::filesystem::path file = scratch("journal", input);
  const std::string whole(input.substr(0, input.rfind('\n') + 1));
  {
    Journal journal(file);
    demand(text_of(journal.lines()) == whole, "lines that the journal does not have");
    journal.append("a line\n");
  }
  {
    Journal journal(file);
    demand(text_of(journal.lines()) == whole + "a line\n", "a line that was written is not there");
    journal.clear();
  }
  demand(Journal(file).lines().empty(), "a journal that was cleared has lines");
  demand_nothing_left();
}

}  // namespace redblue::fuzz
