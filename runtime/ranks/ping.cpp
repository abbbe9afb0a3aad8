#include "runtime/ranks/ping.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

constexpr int kRounds = 30;
constexpr Index kFewWords = 1, kManyWords = Index{1} << 18;

// Returns the seconds that a message of `words` words takes one way.
double one_way(Transport& transport, Index words) {
  std::vector<float> message(static_cast<std::size_t>(words));
  const Index last = transport.size() - 1;
  double fastest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    if (transport.rank() == 0) {
      transport.send("", last, message);
      transport.receive("", last, message);
    } else if (transport.rank() == last) {
      transport.receive("", 0, message);
      transport.send("", 0, message);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, took.count() / 2);
  }
  return fastest;
}

}  // namespace

PingTimes ping(Transport& transport) {
  require(transport.size() > 1, "a message goes between two ranks");
  const double few = one_way(transport, kFewWords);
  const double many = one_way(transport, kManyWords);
  PingTimes times{.seconds_a_message = few,
                  .seconds_a_word = std::max(many - few, 0.0) / (kManyWords - kFewWords)};
  const std::vector<std::string> all =
      transport.gather(std::to_string(1e12 * times.seconds_a_message) + " " +
                       std::to_string(1e18 * times.seconds_a_word));
  std::size_t end = 0;
  times.seconds_a_message = 1e-12 * std::stod(all.front(), &end);
  times.seconds_a_word = 1e-18 * std::stod(all.front().substr(end));
  return times;
}

}  // namespace redblue
