#include "runtime/pebble/solve.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "runtime/pebble/again_space.hpp"
#include "runtime/pebble/once_space.hpp"
#include "runtime/pebble/played_moves.hpp"
#include "runtime/pebble/search.hpp"

namespace redblue {
namespace {

// Maps the names of words and terms in a state of a way to their names in the game that is
// returned.
class Names {
 public:
  Names() {
    for (std::size_t k = 0; k < kMostWords; ++k) {
      own_.words[k] = own_.terms[k] = static_cast<std::uint8_t>(k);
    }
  }
  [[nodiscard]] WordMove of(WordMove move) const {
    move.word = own_.words[at(move.word)];
    move.term = move.term < 0 ? move.term : own_.terms[at(move.term)];
    move.slides = move.slides < 0 ? move.slides : own_.words[at(move.slides)];
    return move;
  }
  // Switches to the names of the next state, which this renaming makes.
  void rename(const Renaming& to) {
    const Renaming before = own_;
    for (std::size_t k = 0; k < kMostWords; ++k) {
      own_.words[to.words[k]] = before.words[k];
      own_.terms[to.terms[k]] = before.terms[k];
    }
  }

 private:
  static std::size_t at(Index k) { return static_cast<std::size_t>(k); }
  Renaming own_{};
};

// Returns the moves of a way. From each state it takes a step to a state that some renaming turns
// into the next state of the way.
template <class Space>
std::vector<WordMove> moves_of(const Space& space, const Canonical& canonical,
                               const std::vector<State>& way) {
  std::vector<WordMove> moves;
  Names names;
  for (std::size_t k = 1; k < way.size(); ++k) {
    std::optional<std::pair<Index, Step>> best;
    space.expand(way[k - 1], kMostWords, false,
                 [&](const State& next, Index moved, const Step& step) {
                   if ((!best || moved < best->first) && space.least(next) == way[k]) {
                     best = {moved, step};
                   }
                 });
    std::vector<WordMove> own;
    const State next = space.play(way[k - 1], best.value().second, &own);
    std::ranges::transform(own, std::back_inserter(moves),
                           [&](const WordMove& move) { return names.of(move); });
    names.rename(*std::ranges::find_if(canonical.renamings(), [&](const Renaming& renaming) {
      return renamed(next, renaming) == way[k];
    }));
  }
  return moves;
}

class Solver {
 public:
  Solver(const Rules& rules, const SolveLimits& limits)
      : rules_(rules), terms_(terms_of(rules)), canonical_(terms_), limits_(limits) {}

  // Returns the solution for M. Requires: every game has at least `lower` words.
  [[nodiscard]] Solution at(Index M, Index lower) const {
    const OnceSpace once(terms_, canonical_, M);
    if (rules_.game() == Game::strict || rules_.game() == Game::sliding) {
      return search(once, AgainSpace(terms_, canonical_, M), M, lower);
    }
    return search(once, once, M, lower);
  }

 private:
  // A beam finds a game. Best first finds whether a game with fewer words exists. Later rounds have
  // wider beams and longer searches, for cases that earlier rounds leave open.
  template <class Space>
  [[nodiscard]] Solution search(const OnceSpace& once, const Space& space, Index M,
                                Index lower) const {
    struct Round {
      Index width;
      std::size_t states;
    };
    constexpr std::array kRounds = {Round{16, 5'000}, Round{128, 100'000},
                                    Round{1024, std::numeric_limits<std::size_t>::max()}};
    const Budget budget(limits_.seconds, limits_.bytes, &limits_.stop);
    Solution solution{M, std::max(lower, space.estimate(Space::start())), 0, 0, {}, std::nullopt};
    Found upper = Beam(once, 1).search(Budget(kForever, 0)).value();
    std::optional<Found> found;
    const auto wanted = [&] {
      return limits_.enough ? std::min(upper.words, limits_.enough(M)) : upper.words;
    };
    const auto open = [&] { return solution.lower < wanted() && !found; };
    for (const Round& round : kRounds) {
      if (const auto width = static_cast<std::size_t>(round.width);
          open() && width * Beam<OnceSpace>::kBytes <= limits_.bytes) {
        std::optional<Found> better = Beam(once, round.width).search(budget);
        if (better && better->words < upper.words) {
          upper = std::move(*better);
        }
      }
      if (!open() || (&round != kRounds.data() && budget.out_of_time())) {
        break;
      }
      Outcome outcome = BestFirst<Space>(space, budget).below(wanted(), round.states);
      solution.lower = std::max(solution.lower, outcome.lower);
      solution.states = std::max(solution.states, static_cast<Index>(outcome.states));
      found = std::move(outcome.found);
    }
    return found ? finished(solution, *found, space) : finished(solution, upper, once);
  }
  template <class Space>
  [[nodiscard]] Solution finished(Solution solution, const Found& found, const Space& space) const {
    solution.upper = found.words;
    PlayedMoves played = played_moves(rules_, terms_, moves_of(space, canonical_, found.way));
    solution.moves = std::move(played.moves);
    solution.graph = std::move(played.graph);
    judge(solution);
    return solution;
  }
  // Checks that the moves keep the rules and move the stated words.
  void judge(const Solution& solution) const {
    const Rules own(solution.graph ? *solution.graph : rules_.dag(), rules_.game());
    if (referee(own, solution.M, solution.moves).words() != solution.upper) {
      throw std::logic_error("a solution has other words than its moves");
    }
  }

  static constexpr double kForever = 1e9;  // seconds

  const Rules& rules_;
  Terms terms_;
  Canonical canonical_;
  SolveLimits limits_;
};

}  // namespace

std::vector<Solution> solve(const Rules& rules, Index first_M, Index last_M,
                            const SolveLimits& limits) {
  const Solver solver(rules, limits);
  std::vector<Solution> solutions;
  // A game for M is also a game for M + 1, and a lower bound for M + 1 also holds for M.
  Index lower = 0;
  for (Index M = last_M; M >= first_M; --M) {
    solutions.push_back(solver.at(M, lower));
    lower = solutions.back().lower;
  }
  std::ranges::reverse(solutions);
  for (std::size_t k = 1; k < solutions.size(); ++k) {
    if (const Solution& less = solutions[k - 1]; less.upper < solutions[k].upper) {
      solutions[k].upper = less.upper;
      solutions[k].moves = less.moves;
      solutions[k].graph = less.graph;
    }
  }
  return solutions;
}

}  // namespace redblue
