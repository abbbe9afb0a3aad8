#include "tools/options/ranks.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/text/table.hpp"
#include "tools/cli/sizes.hpp"

namespace redblue {
namespace {

// More than any job has; a typing error is refused.
constexpr Index kMostRanks = Index{1} << 14;

Index parse_ranks(const Given& given) {
  const Index ranks = parse_size(given.text, given.from);
  if (ranks > kMostRanks) {
    throw UsageError(
        fmt::format("{} {} is too many; expected at most {}", given.from, ranks, kMostRanks));
  }
  return ranks;
}

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
      ranks_(app, "--ranks",
             "so many ranks, on the grid that sends the fewest words; they share out heads first",
             "NUMBER"),
      ring_(app, "--ring",
            "ranks in a ring (--grid Px1, or --ranks P): keys pass from each rank to the next, and "
            "a home has room for its own rows and a few that pass") {}

namespace {

// All ranks are one ring.
void make_ring(Request::OnRanks& on, const std::string& said, const std::string& said_grid) {
  if (on.grid && (on.grid->columns > 1 || on.groups > 0)) {
    throw UsageError(
        fmt::format("{}: {}{}: a ring has one column and one group of keys: give {}x1", said,
                    said_grid, on.groups > 0 ? fmt::format(":{}", on.groups) : "", on.grid->rows));
  }
  if (!on.grid) {
    on.grid = Grid{on.ranks, 1};
  }
  on.grid->ring = true;
}

}  // namespace

void RanksOptions::fill(Request& request, Transport* transport) const {
  const auto grid = grid_.get();
  const auto ranks = ranks_.get();
  if (!grid && !ranks && transport == nullptr) {
    if (const auto ring = ring_.from()) {
      throw UsageError(fmt::format("{}: how many ranks? Give --grid Px1 or --ranks P, too", *ring));
    }
    return;
  }
  Request::OnRanks& on = *(request.on_ranks = Request::OnRanks{});
  on.transport = transport;
  if (grid) {
    request.said_as["--grid"] = grid->from;
    parse_grid(*grid, on);
  }
  if (ranks) {
    request.said_as["--ranks"] = ranks->from;
    on.ranks = parse_ranks(*ranks);
  }
  if (transport != nullptr) {
    if (ranks && on.ranks != transport->size()) {
      throw UsageError(fmt::format("{} {}: mpirun started {}: leave {} out, or start mpirun -n {}",
                                   ranks->from, ranks->text, counted(transport->size(), "rank"),
                                   ranks->from, on.ranks));
    }
    on.ranks = transport->size();
    if (!ranks) {
      request.said_as["--ranks"] = "mpirun";
    }
  }
  if (const auto ring = ring_.from()) {
    if (!grid && !request.said_as.contains("--grid")) {
      request.said_as["--grid"] = *ring;
    }
    make_ring(on, *ring, on.grid ? fmt::format("{} {}", grid->from, to_string(*on.grid)) : "");
  }
  if (grid && on.ranks % on.grid->ranks() != 0) {
    throw UsageError(
        fmt::format("{} {}: {}, but {} {}; as many, or several such grids, each "
                    "of which has some of the heads",
                    grid->from, grid->text, counted(on.grid->ranks(), "rank"),
                    ranks ? ranks->from + " says" : "mpirun started", on.ranks));
  }
}

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
    : ranks_(app, "the grids of so many ranks for a KERNEL, each rank with M words and a home"),
      ring_(app, "--ring", "beside the grids: the same ranks as a ring"),
      home_(app, "--home", "words of the home of a rank, at most; no limit where left out", "SIZE"),
      link_costs_(app, "--link-costs",
                  "seconds of a message between ranks, and of each of its words, for --objective "
                  "time; as `redblue calibrate` measured them",
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
