#include "tools/options/ranks.hpp"

#include <string>

#include <fmt/format.h>

#include "tools/cli/sizes.hpp"

namespace redblue {
namespace {

// More than any job has; a typing error is refused.
constexpr Index kMostRanks = Index{1} << 20;

// "RxC" or "RxC:G".
void parse_grid(const Given& given, Request::OnRanks& on) {
  const auto expect = [&] {
    return UsageError(
        fmt::format("{} '{}': expected ROWSxCOLUMNS, for example 4x2, or with more groups of keys "
                    "4x2:8",
                    given.from, given.text));
  };
  const std::size_t colon = given.text.find(':');
  const std::string sides = given.text.substr(0, colon);
  const std::size_t cross = sides.find('x');
  if (cross == 0 || cross == std::string::npos || cross + 1 == sides.size() ||
      colon == given.text.size() - 1) {
    throw expect();
  }
  const auto side = [&](const std::string& text) {
    const Index size = parse_size(text, given.from);
    if (size > kMostRanks) {
      throw UsageError(fmt::format("{} '{}': {} is too many; expected at most {}", given.from,
                                   given.text, size, kMostRanks));
    }
    return size;
  };
  on.grid = Grid{side(sides.substr(0, cross)), side(sides.substr(cross + 1))};
  if (on.grid->ranks() > kMostRanks) {
    throw UsageError(fmt::format("{} '{}': {} ranks are too many; expected at most {}", given.from,
                                 given.text, on.grid->ranks(), kMostRanks));
  }
  on.ranks = on.grid->ranks();
  if (colon != std::string::npos) {
    on.groups = parse_size(given.text.substr(colon + 1), given.from);
  }
}

}  // namespace

RanksOptions::RanksOptions(CLI::App& app)
    : grid_(app, "--grid",
            "ranks in rows, which share out queries, and columns, which share out groups of keys; "
            "each has M words, and a home of its rows; one group a column",
            "RxC[:G]"),
      ranks_(app, "--ranks", "so many ranks, on the grid that sends the fewest words", "NUMBER") {}

void RanksOptions::fill(Request& request, Transport* transport) const {
  const auto grid = grid_.get();
  const auto ranks = ranks_.get();
  if (!grid && !ranks && transport == nullptr) {
    return;
  }
  Request::OnRanks& on = request.on_ranks.emplace();
  on.transport = transport;
  on.ranks = transport == nullptr ? 1 : transport->size();
  if (grid && ranks) {
    throw UsageError(fmt::format("{} and {}: the grid says how many", grid->from, ranks->from));
  }
  if (grid) {
    request.said_as["--grid"] = grid->from;
    parse_grid(*grid, on);
  }
  if (ranks) {
    request.said_as["--ranks"] = ranks->from;
    on.ranks = parse_size(ranks->text, ranks->from);
    if (on.ranks > kMostRanks) {
      throw UsageError(
          fmt::format("{} {} is too many; expected at most {}", ranks->from, on.ranks, kMostRanks));
    }
  }
  if (transport != nullptr && on.ranks != transport->size()) {
    throw UsageError(fmt::format("{} {}: {} ranks, but mpirun started {}",
                                 grid ? grid->from : ranks->from, grid ? grid->text : ranks->text,
                                 on.ranks, transport->size()));
  }
}

PatienceOption::PatienceOption(CLI::App& app)
    : patience_(app, "--patience",
                "seconds in which a rank must hear from one that it waits for; 600", "SECONDS") {}

void PatienceOption::fill(Request& request) const {
  const auto given = patience_.get();
  if (!given) {
    return;
  }
  if (!request.on_ranks) {
    throw UsageError(given->from + ": only of runs on ranks: --grid or --ranks");
  }
  constexpr Index kMostSeconds = Index{1} << 30;
  const Index seconds = parse_size(given->text, given->from);
  if (seconds > kMostSeconds) {
    throw UsageError(fmt::format("{} {} is too long; expected at most {}", given->from, given->text,
                                 kMostSeconds));
  }
  request.on_ranks->patience = std::chrono::seconds(seconds);
}

}  // namespace redblue
