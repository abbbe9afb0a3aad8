#pragma once
// Searches for a shortest way through the states of a game: best first (A*), or by a beam that
// keeps a few states at each depth. A way is the list of states from the start to the end, each as
// least() returns it. A space has these functions:
//
//   start(), goal(state), least(state)
//   estimate(state)                      at most the words left; falls by at most a step's words
//   expand(state, most, narrow, visit)   as in once_space.hpp
//   depth(state)                         only for a beam; rises with each step

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/pebble/state_table.hpp"

namespace redblue {

// The seconds and bytes after which a search stops without an answer.
class Budget {
 public:
  Budget(double seconds, std::size_t bytes, const std::function<void()>* stop = nullptr)
      : end_(std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds)),
        bytes_(bytes),
        stop_(stop) {}
  [[nodiscard]] bool out_of_time() const {
    if (stop_ != nullptr && *stop_) {
      (*stop_)();
    }
    return std::chrono::steady_clock::now() >= end_;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_;
  std::size_t bytes_;
  const std::function<void()>* stop_;
};

struct Found {
  Index words = 0;
  std::vector<State> way;
};

// The result of a search: every way has at least `lower` words. `found` is a way below the limit,
// if the search found one.
struct Outcome {
  Index lower = 0;
  std::optional<Found> found;
  std::size_t states = 0;
};

template <class Space>
class BestFirst {
 public:
  BestFirst(const Space& space, const Budget& budget)
      : space_(space), budget_(budget), table_(budget.bytes()) {}

  // Searches for a way of fewer than `limit` words. Stops when it has met `most` states.
  Outcome below(Index limit, std::size_t most) {
    open_.resize(static_cast<std::size_t>(limit));
    reach(Space::start(), StateTable::kNone, 0, limit);
    if (full_) {
      return {};
    }
    for (Index f = 0; f < limit; ++f) {
      // Among equally promising states, take the newest, which is nearest to the end.
      std::vector<StateTable::Place>& open = open_[static_cast<std::size_t>(f)];
      while (!open.empty()) {
        const StateTable::Place at = open.back();
        open.pop_back();
        StateTable::Entry& entry = table_[at];
        if (entry.closed || entry.words + entry.left != f) {
          continue;
        }
        entry.closed = true;
        if (space_.goal(entry.state)) {
          return {f, Found{f, way(at)}, table_.size()};
        }
        if (table_.size() > most || (++expanded_ % 64 == 0 && budget_.out_of_time())) {
          return {f, std::nullopt, table_.size()};
        }
        expand(at, limit);
        if (full_) {
          return {f, std::nullopt, table_.size()};
        }
      }
      open_bytes_ -= open.capacity() * sizeof(StateTable::Place);
      std::vector<StateTable::Place>().swap(open);
    }
    return {limit, std::nullopt, table_.size()};
  }

 private:
  void expand(StateTable::Place at, Index limit) {
    const StateTable::Entry from = table_[at];
    const Index most = limit - 1 - from.words - from.left;
    space_.expand(from.state, most, false, [&](const State& next, Index moved, const Step&) {
      reach(space_.least(next), at, from.words + moved, limit);
    });
  }
  void reach(const State& state, StateTable::Place from, Index words, Index limit) {
    if (full_) {
      return;
    }
    // The open lists and the table share the memory. A list that grows exists twice for a while.
    const auto at = table_.find_or_add(state, 2 * open_bytes_);
    if (!at) {
      full_ = true;
      return;
    }
    StateTable::Entry& entry = table_[*at];
    if (entry.fresh) {
      entry.fresh = false;
      entry.left = static_cast<std::uint16_t>(space_.estimate(state)) & 0x3fffU;
    } else if (words >= entry.words) {
      return;
    }
    entry.words = static_cast<std::uint16_t>(words);
    entry.from = from;
    entry.closed = false;
    if (const Index f = words + entry.left; f < limit) {
      std::vector<StateTable::Place>& open = open_[static_cast<std::size_t>(f)];
      const std::size_t before = open.capacity();
      open.push_back(*at);
      open_bytes_ += (open.capacity() - before) * sizeof(StateTable::Place);
    }
  }
  std::vector<State> way(StateTable::Place at) const {
    std::vector<State> states;
    for (; at != StateTable::kNone; at = table_[at].from) {
      states.push_back(table_[at].state);
    }
    std::ranges::reverse(states);
    return states;
  }

  const Space& space_;
  const Budget& budget_;
  StateTable table_;
  std::vector<std::vector<StateTable::Place>> open_;  // by the sum of words moved and left
  std::size_t open_bytes_ = 0, expanded_ = 0;
  bool full_ = false;
};

// Finds the best way among ways that keep `width` states at each depth. Nullopt if time is out.
template <class Space>
class Beam {
 public:
  Beam(const Space& space, Index width)
      : space_(space), width_(static_cast<std::size_t>(width)), levels_(kMostWords + 1) {}

  // The bytes for each state of the width.
  static constexpr std::size_t kBytes = (kMostWords + 1) * 5 * 64;

  std::optional<Found> search(const Budget& budget) {
    levels_[0].push_back({Space::start(), 0, space_.estimate(Space::start()), nullptr});
    for (std::vector<Node>& nodes : levels_) {
      cut(nodes, 4 * width_);
      for (Node& node : nodes) {
        node.state = space_.least(node.state);
      }
      cut(nodes, width_);
      if (!nodes.empty() && space_.goal(nodes.front().state)) {
        return Found{nodes.front().words, way(nodes.front())};
      }
      for (const Node& node : nodes) {
        if (budget.out_of_time()) {
          return std::nullopt;
        }
        expand(node);
      }
    }
    return std::nullopt;
  }

 private:
  struct Node {
    State state;
    Index words, left;
    const Node* from;
  };

  static void cut(std::vector<Node>& nodes, std::size_t size) {
    const auto rank = [](const Node& node) {
      return std::tuple(node.words + node.left, node.left, node.state.red, node.state.blue,
                        node.state.done);
    };
    std::ranges::sort(nodes, std::less<>(), rank);
    const auto last = std::unique(nodes.begin(), nodes.end(),
                                  [](const Node& a, const Node& b) { return a.state == b.state; });
    nodes.erase(last, nodes.end());
    nodes.resize(std::min(nodes.size(), size));
  }
  void expand(const Node& node) {
    constexpr Index kAny = std::numeric_limits<Index>::max() / 2;
    space_.expand(node.state, kAny, true, [&](const State& next, Index moved, const Step&) {
      std::vector<Node>& into = levels_[static_cast<std::size_t>(Space::depth(next))];
      if (into.size() >= 5 * width_) {
        cut(into, 4 * width_);
      }
      into.push_back({next, node.words + moved, space_.estimate(next), &node});
    });
  }
  static std::vector<State> way(const Node& end) {
    std::vector<State> states;
    for (const Node* node = &end; node != nullptr; node = node->from) {
      states.push_back(node->state);
    }
    std::ranges::reverse(states);
    return states;
  }

  const Space& space_;
  std::size_t width_;
  std::vector<std::vector<Node>> levels_;
};

}  // namespace redblue
