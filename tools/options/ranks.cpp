#include "tools/options/ranks.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/run/options.hpp"

namespace redblue {

void check_runs_on_ranks(const KernelName& kernel, const std::string& said) {
  if (runs_on_grid(*kernel.kernel)) {
    return;
  }
  std::string names;
  for (const KernelName& known : kernel_names()) {
    if (runs_on_grid(*known.kernel) && known.sharing == Sharing::none) {
      names += (names.empty() ? "" : ", ") + std::string(known.kernel->name);
    }
  }
  throw UsageError(fmt::format("{}: {} does not run on ranks; {} do", said, kernel.text(), names));
}

RanksOption::RanksOption(CLI::App& app, const std::string& help)
    : ranks_(app, "--ranks", help, "NUMBER") {}

std::optional<Index> RanksOption::get() const {
  const auto given = ranks_.get();
  return given ? std::optional(parse_ranks(*given)) : std::nullopt;
}

RanksToPlanOptions::RanksToPlanOptions(CLI::App& app)
    : ranks_(app,
             "number of ranks (machines with M words each): rank the grids that they can form for "
             "KERNEL"),
      ring_(app, "--ring", "also list the same ranks in a ring, where each sends keys to the next"),
      home_(
          app, "--home",
          "leave out grids in which a rank needs more than SIZE words of slow memory (default: no "
          "limit)",
          "SIZE"),
      link_costs_(app, "--link-costs",
                  "seconds for each message and each word between ranks, for --objective time "
                  "(default: from "
                  "`redblue calibrate`)",
                  "MESSAGE,WORD") {}

std::optional<Index> RanksToPlanOptions::home() const {
  const auto given = home_.get();
  return given ? std::optional(parse_size(given->text, given->from)) : std::nullopt;
}

std::optional<LinkCosts> RanksToPlanOptions::link_costs(bool by_time) const {
  const std::vector<Given> given = link_costs_.items();
  if (given.empty()) {
    return std::nullopt;
  }
  if (!by_time) {
    throw UsageError(given.front().from + ": messages take time: give --objective time, too");
  }
  if (given.size() != 2) {
    throw UsageError(fmt::format("{}: expected two numbers of seconds, for example 1e-6,4e-10",
                                 given.front().from));
  }
  return LinkCosts{.origin = "given by " + given.front().from,
                   .seconds_a_message = parse_scale(given[0].text, given[0].from),
                   .seconds_a_word = parse_scale(given[1].text, given[1].from)};
}

std::optional<Given> RanksToPlanOptions::given() const {
  if (const auto ring = ring_.from(); ring && !ranks_.option().get()) {
    return Given{.text = "", .from = *ring};
  }
  for (const TextOption* option : {&ranks_.option(), &home_, &link_costs_}) {
    if (const std::vector<Given> given = option->all(); !given.empty()) {
      return given.front();
    }
  }
  return std::nullopt;
}

}  // namespace redblue
