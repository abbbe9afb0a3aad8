#include "runtime/report/nest_report.hpp"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/report/context.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;

std::string_view to_string(NestLine::Kind kind) {
  return kind == NestLine::Kind::loop ? "loop" : "step";
}

bool is_loop(const NestLine& line) {
  return line.kind == NestLine::Kind::loop;
}

Index words_that_stay(const NestLine& line) {
  Words sum;
  for (const NestLine::Stay& stay : line.stays) {
    sum += stay.words;
  }
  return sum.value();
}

// Nothing where nothing moves.
std::string moved(Words words) {
  return words == Words(0) ? "" : grouped(words.value());
}

std::string names_that_stay(const NestLine& line) {
  std::string names;
  for (const NestLine::Stay& stay : line.stays) {
    names += (names.empty() ? "" : ", ") + stay.name;
  }
  return names;
}

}  // namespace

NestReport report_nest(const Plan& plan) {
  return {.plan = plan,
          .M_from = std::nullopt,
          .lines = find_kernel(plan.kernel).formula.nest(plan.problem, plan.blocks)};
}

std::string to_table(const NestReport& report) {
  std::string text = to_string(report.plan) + "   (all in words)\n";
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  Table table;
  table.add({"loop nest", "phase", "trips", "block", "stays", "words", "reads", "writes"});
  for (const NestLine& line : report.lines) {
    std::vector<std::string> cells = {
        std::string(static_cast<std::size_t>(2 * line.depth), ' ') + line.text,
        line.phase,
        "",
        "",
        "",
        "",
        moved(line.reads),
        moved(line.writes)};
    if (is_loop(line)) {
      cells[2] = grouped(line.trips);
      cells[3] = grouped(line.block);
      cells[4] = names_that_stay(line);
      cells[5] = line.stays.empty() ? "" : grouped(words_that_stay(line));
    }
    table.add(std::move(cells));
  }
  const PhaseCost all = total(report.plan.phases);
  table.add({"total", "", "", "", "", "", grouped(all.reads.value()), grouped(all.writes.value())});
  return text + "\n" + table.text();
}

std::string to_json(const NestReport& report) {
  const Plan& plan = report.plan;
  Json json = {{"schema", kSchema},
               {"context", context_json(report.M_from)},
               {"kernel", spelled(plan)},
               {"n", plan.problem.shape.n},
               {"m", plan.problem.shape.m},
               {"d", plan.problem.shape.d},
               {"M", plan.M},
               {"sharing", to_string(plan.problem.sharing)},
               {"blocks", Json::object()},
               {"loops", Json::array()}};
  for (const auto& [name, size] : plan.blocks) {
    json["blocks"][name] = size;
  }
  for (const NestLine& line : report.lines) {
    Json entry = {{"phase", line.phase},
                  {"depth", line.depth},
                  {"kind", to_string(line.kind)},
                  {"text", line.text},
                  {"trips", nullptr},
                  {"block", nullptr},
                  {"stays", Json::array()},
                  {"reads", line.reads.value()},
                  {"writes", line.writes.value()}};
    if (is_loop(line)) {
      entry["trips"] = line.trips;
      entry["block"] = line.block;
    }
    for (const NestLine::Stay& stay : line.stays) {
      entry["stays"].push_back({{"tile", stay.name}, {"words", stay.words.value()}});
    }
    json["loops"].push_back(std::move(entry));
  }
  return json.dump(2) + "\n";
}

std::string to_csv(const NestReport& report) {
  const Plan& plan = report.plan;
  const auto [n, m, d] = plan.problem.shape;
  std::string text =
      "kernel,n,m,d,M,sharing,phase,depth,kind,text,trips,block,stays,words,reads,writes\n";
  for (const NestLine& line : report.lines) {
    const std::string loop =
        is_loop(line) ? fmt::format("{},{},{},{}", line.trips, line.block,
                                    csv_cell(names_that_stay(line)), words_that_stay(line))
                      : ",,,";
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", spelled(plan), n, m, d, plan.M,
                    to_string(plan.problem.sharing), line.phase, line.depth, to_string(line.kind),
                    csv_cell(line.text), loop, line.reads.value(), line.writes.value());
  }
  return text;
}

}  // namespace redblue
