#include "runtime/report/device_figures.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "runtime/text/cells.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

using Figure = std::optional<double>;

// What words come to.
struct DeviceSums {
  Figure seconds, joules;
};

// Figures are of words of four bytes: `floats` as many as have the bytes that move.
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

// A sum has what all levels have.
DeviceSums sum_of(const Device& device, const MovedWords& moved) {
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

// The keys of a file; figures that are not there are absent or null.
Cells level_cells(const DeviceLevel& level) {
  return {{{"level", "name", "level"}, level.name},
          {"bytes", level.bytes},
          {{"line", "line_bytes"}, Json(level.line_bytes)},
          {{"bytes a second", "bandwidth_bytes_per_second"}, rounded(level.bytes_per_second)},
          {{"joules a word", "joules_per_word"}, rounded(level.joules_per_word)},
          {{"shared by", "shared_by"}, Json(level.shared_by)}};
}

// A row a level, and the last one for all.
std::vector<Cells> product_rows(const Device& device, const MovedWords& moved) {
  std::vector<Cells> rows;
  const auto row = [&](const std::string& name, const Json& words, const DeviceLevel& level,
                       const DeviceSums& of) {
    rows.push_back({{in_table("level"), name},
                    {in_table("words"), words},
                    {in_table("bytes a second"), rounded(level.bytes_per_second)},
                    {in_table("joules a word"), rounded(level.joules_per_word)},
                    {in_table("seconds"), rounded(of.seconds)},
                    {in_table("joules"), rounded(of.joules)}});
  };
  for (std::size_t k = 0; k < device.levels.size(); ++k) {
    const DeviceLevel& level = device.levels[k];
    row(level.name, moved.words[k], level, products_of(level, moved.floats(k)));
  }
  row("sum", Json(), {}, sum_of(device, moved));
  return rows;
}

}  // namespace

Json device_json(const Device& device, const MovedWords& moved) {
  Json levels = Json::array();
  for (std::size_t k = 0; k < device.levels.size(); ++k) {
    const DeviceLevel& level = device.levels[k];
    const DeviceSums of = products_of(level, moved.floats(k));
    Json json = json_of(level_cells(level));
    json.update({{"source", device.source_of(level)},
                 {"words", moved.words[k]},
                 {"seconds", of.seconds},
                 {"joules", of.joules}});
    levels.push_back(std::move(json));
  }
  const DeviceSums sum = sum_of(device, moved);
  return {{"name", device.name},
          {"source", device.source},
          {"file", device.file.empty() ? Json() : Json(device.file)},
          {"levels", std::move(levels)},
          {"seconds", sum.seconds},
          {"joules", sum.joules}};
}

std::string to_words(const Device& device) {
  return fmt::format("device {}{}: {}", printable(device.name),
                     device.file.empty() ? "" : fmt::format(" of {}", printable(device.file)),
                     printable(device.source));
}

std::string figures_text(const Device& device, std::string_view whose, const MovedWords& moved) {
  const bool has_figures = std::ranges::any_of(device.levels, [](const DeviceLevel& level) {
    return level.bytes_per_second || level.joules_per_word;
  });
  return has_figures
             ? fmt::format(
                   "\n{} by the figures of device {}: seconds are words * {} / bytes a second, "
                   "joules are words * joules a word{}; neither predicts a run\n\n{}",
                   whose, printable(device.name), moved.word_bytes,
                   moved.word_bytes == kFloatBytes
                       ? ""
                       : fmt::format(" of {} bytes * {} / {}", kFloatBytes, moved.word_bytes,
                                     kFloatBytes),
                   table_of(product_rows(device, moved)))
             : "";
}

std::string list_table(const std::vector<Device>& devices) {
  std::vector<Cells> rows;
  std::string sources;
  for (const Device& device : devices) {
    for (const DeviceLevel& level : device.levels) {
      const bool first = &level == &device.levels.front();
      rows.push_back(joined({{in_table("device"), first ? device.name : ""}}, level_cells(level)));
    }
    sources += fmt::format("{}: {}\n", printable(device.name), printable(device.source));
    for (const DeviceLevel& level : device.levels) {
      if (!level.source.empty()) {
        sources += fmt::format("{} {}: {}\n", printable(device.name), printable(level.name),
                               printable(level.source));
      }
    }
  }
  return table_of(rows) + "\n" + sources;
}

Json list_json(const std::vector<Device>& devices) {
  Json all = Json::array();
  for (const Device& device : devices) {
    Json levels = Json::array();
    for (const DeviceLevel& level : device.levels) {
      Json json = Json::object();
      const Json known = json_of(level_cells(level));
      for (const auto& [key, value] : known.items()) {
        if (!value.is_null()) {
          json[key] = value;
        }
      }
      if (!level.source.empty()) {
        json["source"] = level.source;
      }
      levels.push_back(std::move(json));
    }
    all.push_back(
        {{"name", device.name}, {"source", device.source}, {"levels", std::move(levels)}});
  }
  return all;
}

std::string list_csv(const std::vector<Device>& devices) {
  std::vector<Cells> rows;
  for (const Device& device : devices) {
    for (const DeviceLevel& level : device.levels) {
      rows.push_back(joined({{in_csv("device"), device.name}},
                            joined(level_cells(level),
                                   {{in_csv("source"), always_quoted(device.source_of(level))}})));
    }
  }
  return csv_of(rows);
}

}  // namespace redblue
