#include "runtime/report/device_figures.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/text/build_context.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

using Figure = std::optional<double>;

// Seconds and joules of the words moved.
struct DeviceSums {
  Figure seconds, joules;
};

// Figures are for words of four bytes. `floats` is the number of such words with the bytes moved.
DeviceSums products_of(const DeviceLevel& level, double floats) {
  DeviceSums of;
  if (level.bytes_per_second) {
    of.seconds = floats * kFloatBytes / *level.bytes_per_second;
  }
  if (level.joules_per_word) {
    of.joules = floats * *level.joules_per_word;
  }
  return of;
}

Figure plus(const Figure& a, const Figure& b) {
  return a && b ? Figure(*a + *b) : std::nullopt;
}

// The sum has seconds (or joules) only if all levels have them.
DeviceSums sum_of(const Device& device, const WordsOfLevels& moved) {
  DeviceSums sum{0, 0};
  for (std::size_t k = 0; k < device.levels.size(); ++k) {
    const DeviceSums of = products_of(device.levels[k], moved.floats(k));
    sum = {plus(sum.seconds, of.seconds), plus(sum.joules, of.joules)};
  }
  return sum;
}

CellValue rounded(const Figure& figure) {
  return CellValue(Json(figure)).shown(figure ? fmt::format("{:.4g}", *figure) : "-");
}

// The keys of a device file. A figure that the file lacks becomes `unknown`.
Cells level_cells(const DeviceLevel& level, const CellValue& unknown) {
  const auto known = [&](const auto& figure) { return figure ? CellValue(*figure) : unknown; };
  const auto rounded_or = [&](const Figure& figure) { return figure ? rounded(figure) : unknown; };
  return {{{"level", "name", "level"}, level.name},
          {"bytes", level.bytes},
          {{"line", "line_bytes"}, known(level.line_bytes)},
          {{"bytes a second", "bandwidth_bytes_per_second"}, rounded_or(level.bytes_per_second)},
          {{"joules a word", "joules_per_word"}, rounded_or(level.joules_per_word)},
          {{"shared by", "shared_by"}, known(level.shared_by)}};
}

Cells product_cells(const DeviceLevel& level, const CellValue& words, const DeviceSums& of) {
  return {{{"level", "name", ""}, level.name},
          {{"words", "words", ""}, words},
          {in_table("bytes a second"), rounded(level.bytes_per_second)},
          {in_table("joules a word"), rounded(level.joules_per_word)},
          {{"seconds", "seconds", ""}, rounded(of.seconds)},
          {{"joules", "joules", ""}, rounded(of.joules)}};
}

}  // namespace

Description device_figures(const Device& device, std::string_view whose,
                           const WordsOfLevels& moved) {
  const bool has_figures = std::ranges::any_of(device.levels, [](const DeviceLevel& level) {
    return level.bytes_per_second || level.joules_per_word;
  });
  const DeviceSums sum = sum_of(device, moved);
  Description of;
  of.facts({{in_json("name"), device.name},
            {in_json("source"), device.source},
            {in_json("file"), device.file.empty() ? Json() : Json(device.file)},
            {in_json("seconds"), sum.seconds},
            {in_json("joules"), sum.joules}});
  std::vector<Cells> rows;
  for (std::size_t k = 0; k < device.levels.size(); ++k) {
    const DeviceLevel& level = device.levels[k];
    rows.push_back(joined(product_cells(level, moved.words[k], products_of(level, moved.floats(k))),
                          only_in_json(level_cells(level, nullptr)),
                          {{in_json("source"), device.source_of(level)}}));
  }
  DeviceLevel all;
  all.name = "sum";
  rows.push_back(only_in_table(product_cells(all, nullptr, sum)));
  if (has_figures) {
    of.say(
        "\n{} by the figures of device {}: seconds are words * {} / bytes a second, joules are "
        "words * joules a word{}; neither predicts a run\n",
        whose, printable(device.name), moved.word_bytes,
        moved.word_bytes == kFloatBytes
            ? ""
            : fmt::format(" of {} bytes * {} / {}", kFloatBytes, moved.word_bytes, kFloatBytes));
  } else {
    std::ranges::transform(rows, rows.begin(), only_in_json);
  }
  of.table("levels", std::move(rows));
  return of;
}

std::string to_words(const Device& device) {
  return fmt::format("device {}{}: {}", printable(device.name),
                     device.file.empty() ? "" : fmt::format(" of {}", printable(device.file)),
                     printable(device.source));
}

Description describe(const std::vector<Device>& devices) {
  Description of;
  of.fact("schema", kSchema);
  std::vector<Cells> rows;
  std::string sources;
  for (const Device& device : devices) {
    Description its;
    its.facts({{in_json("name"), device.name}, {in_json("source"), device.source}});
    for (const auto& [key, figure] : {std::pair("flops_per_second", device.flops_per_second),
                                      std::pair("exps_per_second", device.exps_per_second)}) {
      its.fact(key, figure ? CellValue(*figure) : absent());
    }
    sources += fmt::format("{}: {}\n", printable(device.name), printable(device.source));
    std::vector<Cells> levels;
    for (const DeviceLevel& level : device.levels) {
      levels.push_back(
          joined({{{"device", "", "device"},
                   CellValue(device.name).shown(levels.empty() ? device.name : "")}},
                 level_cells(level, absent()),
                 {{in_json("source"), level.source.empty() ? absent() : CellValue(level.source)},
                  {in_csv("source"), always_quoted(device.source_of(level))}}));
      rows.push_back(levels.back());
      std::ranges::for_each(rows.back(), [](Cell& cell) { cell.names.key.clear(); });
      if (!level.source.empty()) {
        sources += fmt::format("{} {}: {}\n", printable(device.name), printable(level.name),
                               printable(level.source));
      }
    }
    std::ranges::transform(levels, levels.begin(), only_in_json);
    its.table("levels", std::move(levels));
    of.element("devices", its);
  }
  of.table("", std::move(rows));
  of.text("\n" + sources);
  return of;
}

}  // namespace redblue
