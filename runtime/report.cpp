#include "runtime/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/build_info.hpp"

namespace redblue {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

Json formula_json(const PhaseCost& cost, bool whole) {
  Json json = {{"reads", cost.reads.value()}, {"writes", cost.writes.value()}};
  if (whole) {
    json["io"] = (cost.reads + cost.writes).value();
  }
  json["peak"] = cost.peak.value();
  return json;
}

// The keys that a phase and the total share. Without a run, what the formula says.
Json counts_json(const PhaseTotal& counted, bool whole) {
  Json json = {{"reads", counted.io.reads}, {"writes", counted.io.writes}};
  if (whole) {
    json["io"] = counted.io.io();
  }
  json["peak"] = counted.peak;
  json["flops"] = counted.operations.flops;
  return json;
}

PhaseTotal predicted(const PhaseCost& cost) {
  return {.path = cost.path,
          .io = {.reads = cost.reads.value(), .writes = cost.writes.value()},
          .operations = {.flops = cost.flops.value()},
          .peak = cost.peak.value()};
}

Json part_json(const Part& part) {
  Json blocks = Json::object();
  for (const auto& [name, size] : part.plan.blocks) {
    blocks[name] = size;
  }
  Json phases = Json::array();
  for (std::size_t i = 0; i < part.plan.phases.size(); ++i) {
    const PhaseCost& cost = part.plan.phases[i];
    Json phase = {{"path", cost.path}};
    if (part.counted) {
      const PhaseTotal& counted = part.counted->phases[i];
      phase.update(counts_json(counted, false));
      phase["elementwise"] = counted.operations.elementwise;
      phase["seconds"] = part.counted->seconds[i];
    } else {
      phase.update(counts_json(predicted(cost), false));
    }
    phase["formula"] = formula_json(cost, false);
    phases.push_back(std::move(phase));
  }
  const PhaseCost formula = total(part.plan.phases);
  Json sum = counts_json(part.counted ? part.counted->total : predicted(formula), true);
  if (part.counted) {
    sum["elementwise"] = part.counted->total.operations.elementwise;
    sum["seconds"] = part.counted->total_seconds;
    sum["span"] = part.counted->span;
  }
  return {{"blocks", std::move(blocks)},
          {"phases", std::move(phases)},
          {"total", std::move(sum)},
          {"formula", formula_json(formula, true)}};
}

// 1234567 as 1,234,567.
std::string grouped(Index number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) {
    digits.insert(i - 3, ",");
  }
  return digits;
}

constexpr const char* kRow = "{:<12} {:>19} {:>19} {:>6} {:>16} {:>9}";

void append_rows(std::string& text, const Part& part) {
  const auto M = static_cast<double>(part.plan.M);
  const auto all = static_cast<double>(part.io());
  text += fmt::format(kRow, "phase", "reads", "writes", "share", "peak", "peak / M");
  text += part.counted ? fmt::format(" {:>19} {:>10} {:>9}\n", "formula", "difference", "seconds")
                       : std::string("\n");
  const auto row = [&](const std::string& name, const PhaseTotal& counted, const PhaseCost& cost,
                       double seconds) {
    text += fmt::format(kRow, name, grouped(counted.io.reads), grouped(counted.io.writes),
                        fmt::format("{:.1f}%", 100.0 * static_cast<double>(counted.io.io()) / all),
                        grouped(counted.peak),
                        fmt::format("{:.3f}", static_cast<double>(counted.peak) / M));
    if (part.counted) {
      const Index formula = (cost.reads + cost.writes).value();
      text += fmt::format(" {:>19} {:>10} {:>9.4f}", grouped(formula),
                          grouped(counted.io.io() - formula), seconds);
    }
    text += "\n";
  };
  for (std::size_t i = 0; i < part.plan.phases.size(); ++i) {
    const PhaseCost& cost = part.plan.phases[i];
    row(cost.path, part.counted ? part.counted->phases[i] : predicted(cost), cost,
        part.counted ? part.counted->seconds[i] : 0);
  }
  const PhaseCost formula = total(part.plan.phases);
  row("total", part.counted ? part.counted->total : predicted(formula), formula,
      part.counted ? part.counted->total_seconds : 0);
}

std::optional<Index> total_from_nothing(const Report& report) {
  if (!report.from_nothing) {
    return std::nullopt;
  }
  return report.kernel.io() + (report.forward ? report.forward->io() : 0);
}

void append_csv(std::string& text, const Part& part) {
  const Shape& shape = part.plan.shape;
  const auto row = [&](const std::string& phase, const PhaseTotal& counted, const PhaseCost& cost,
                       double seconds) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},", part.plan.kernel, shape.n, shape.m,
                        shape.d, part.plan.M, phase, counted.io.reads, counted.io.writes,
                        counted.peak, counted.operations.flops);
    if (part.counted) {
      text += fmt::format("{},{}", counted.operations.elementwise, seconds);
    } else {
      text += ",";
    }
    text += fmt::format(",{},{},{}\n", cost.reads.value(), cost.writes.value(), cost.peak.value());
  };
  for (std::size_t i = 0; i < part.plan.phases.size(); ++i) {
    const PhaseCost& cost = part.plan.phases[i];
    row(cost.path, part.counted ? part.counted->phases[i] : predicted(cost), cost,
        part.counted ? part.counted->seconds[i] : 0);
  }
  const PhaseCost formula = total(part.plan.phases);
  row("total", part.counted ? part.counted->total : predicted(formula), formula,
      part.counted ? part.counted->total_seconds : 0);
}

}  // namespace

Index Part::io() const {
  if (counted) {
    return counted->total.io.io();
  }
  const PhaseCost formula = redblue::total(plan.phases);
  return (formula.reads + formula.writes).value();
}

std::string to_json(const Report& report) {
  const Plan& plan = report.kernel.plan;
  Json json = {
      {"schema", kSchema},
      {"context",
       {{"redblue", build_info::kVersion},
        {"compiler", build_info::kCompiler},
        {"build_type", build_info::kBuildType},
        {"system", build_info::kSystem},
        {"word", "float32"}}},
      {"kernel", plan.kernel},
      {"given", report.given},
      {"n", plan.shape.n},
      {"m", plan.shape.m},
      {"d", plan.shape.d},
      {"M", plan.M},
  };
  if (report.seed) {
    json["seed"] = *report.seed;
  }
  json["threads"] = 1;
  json.update(part_json(report.kernel));
  if (report.forward) {
    json["forward"] = {{"kernel", report.forward->plan.kernel}};
    json["forward"].update(part_json(*report.forward));
  }
  if (const auto both = total_from_nothing(report)) {
    json["total_from_nothing"] = *both;
  }
  if (report.error) {
    json["error"] = {{"value", report.error->error}, {"bound", report.error->bound},
                     {"ok", report.error->ok},       {"output", report.error->output},
                     {"row", report.error->row},     {"column", report.error->col}};
  }
  return json.dump(2) + "\n";
}

std::string to_csv(const Report& report) {
  std::string text =
      "kernel,n,m,d,M,phase,reads,writes,peak,flops,elementwise,seconds,formula_reads,"
      "formula_writes,formula_peak\n";
  append_csv(text, report.kernel);
  if (report.forward) {
    append_csv(text, *report.forward);
  }
  return text;
}

std::string to_table(const Report& report) {
  std::string text = to_string(report.kernel.plan) + "   (all in words)\n\n";
  append_rows(text, report.kernel);
  if (report.forward) {
    text += "\nO and L were made by " + to_string(report.forward->plan) + "\n\n";
    append_rows(text, *report.forward);
    text += fmt::format("\nfrom nothing: {} words\n", grouped(*total_from_nothing(report)));
  }
  if (report.error) {
    text += fmt::format("\nverified: {}: error {:.2g}, derived bound {:.2g}, at {}({}, {})\n",
                        report.error->ok ? "yes" : "NO", report.error->error, report.error->bound,
                        report.error->output, report.error->row, report.error->col);
  }
  return text;
}

}  // namespace redblue
