#include "tools/gate/point_lines.hpp"

#include "runtime/gate/entry_lines.hpp"
#include "runtime/system/read_text.hpp"
#include "tools/gate/suite.hpp"

namespace redblue {

PointLines lines_of_recording(const NamedText& from, const Recording& recording) {
  PointLines found{.file = from.file};
  if (!is_standard_input(from.file)) {
    const std::vector<std::size_t> lines = entry_lines(from.text);
    if (lines.size() != recording.points.size()) {
      return found;  // the lines are unknown if the file has an unusual layout
    }
    for (std::size_t k = 0; k < recording.points.size(); ++k) {
      found.lines.emplace(key_of(recording.points[k].point), lines[k]);
    }
  }
  return found;
}

std::vector<PointLines> lines_of_check(const NamedText& from, const Recording& baseline,
                                       const TextOption& suite,
                                       const std::vector<Subject>& subjects) {
  std::vector<PointLines> all = {lines_of_recording(from, baseline)};
  if (const auto given = suite.get(); given && !is_standard_input(given->text)) {
    const Suite asked =
        read_suite(given->text, subjects,
                   {std::string(to_string(How::run)), std::string(to_string(How::count))});
    const std::vector<std::size_t> lines = entry_lines(asked.text);
    PointLines found{.file = given->text};
    for (const SuitePoint& point : asked.points) {
      if (point.entry < lines.size()) {
        found.lines.emplace(key_of({point.subject->name, brief(*point.subject, point.arguments)}),
                            lines[point.entry]);
      }
    }
    all.push_back(std::move(found));
  }
  return all;
}

void add_lines(const std::vector<PointLines>& all, GateComparison& comparison) {
  for (Compared& compared : comparison.points) {
    for (const PointLines& some : all) {
      if (const auto line = some.lines.find(key_of(compared.point)); line != some.lines.end()) {
        compared.file = some.file;
        compared.line = line->second;
      }
    }
  }
}

}  // namespace redblue
