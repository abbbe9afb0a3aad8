// Tests the progress line of a run on a terminal that the test opens. Without a terminal, a run
// prints none.

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"

namespace redblue {
namespace {

class Terminal : public Cli {
 protected:
  [[nodiscard]] Outcome on_a_terminal(const std::string& line) const {
    Process shown = process(line);
    shown.terminal = true;
    return shown.run();
  }
  // A run with many small blocks, which is slow. Twice the n takes twice the time.
  static std::string run(Index n) {
    return fmt::format("run matmul/blocked --n {} --m 200 --d 200 --M 27 --format csv", n);
  }
  // Tries longer and longer runs until one lasts well beyond the delay of the line, whatever the
  // speed and the load of this machine. Runs shorter than the delay print no progress. A case
  // begins with the length that the case before has found.
  template <class Run>
  static Outcome long_one(const Run& outcome_of) {
    constexpr double kDelay = 2;
    static Index n = 1000;
    for (;;) {
      Outcome outcome = outcome_of(n);
      if (outcome.seconds > 1.4 * kDelay) {  // some lines, 0.2 s apart
        return outcome;
      }
      const double factor = std::clamp(1.6 * kDelay / outcome.seconds, 1.3, 100.0);
      n = static_cast<Index>(static_cast<double>(n) * factor);
      if (outcome.seconds < kDelay) {
        EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << outcome.err;
      }
    }
  }
  // Lines that overwrite each other; the last one is erased.
  const std::regex lines_{"(\r\033\\[Kmatmul/blocked: [0-9]+% of words, C, [0-9]+ s)+\r\033\\[K"};
};

TEST_F(Terminal, ALineSaysHowFarALongRunIs) {
  const Outcome outcome = long_one([&](Index n) { return on_a_terminal(run(n)); });
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("kernel,n,m,d,M,"));
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos);
  EXPECT_TRUE(std::regex_match(outcome.err, lines_)) << outcome.err;
  // The percentages grow, and stay at or below 100.
  const std::regex share(" ([0-9]+)%");
  std::vector<int> shares;
  for (std::sregex_iterator at(outcome.err.begin(), outcome.err.end(), share), end; at != end;
       ++at) {
    shares.push_back(std::stoi((*at)[1]));
  }
  EXPECT_TRUE(std::ranges::is_sorted(shares)) << outcome.err;
  EXPECT_LT(shares.front(), shares.back());
  EXPECT_LE(shares.back(), 100);
}

// The product is not finite, which is found at the end.
TEST_F(Terminal, AFailureHasALineOfItsOwn) {
  const Outcome outcome = long_one([&](Index n) {
    directory_.write(
        "huge.npy",
        npy_bytes(n, 200, std::vector<float>(static_cast<std::size_t>(n * 200), 3e38F)));
    return on_a_terminal(run(n) + " --seed 1 --in A=huge.npy");
  });
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  const std::size_t message = outcome.err.find("redblue: C of matmul/blocked is ");
  ASSERT_NE(message, std::string::npos) << outcome.err;
  EXPECT_TRUE(std::regex_match(outcome.err.substr(0, message), lines_)) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1);
}

TEST_F(Terminal, ElsewhereNothingIsSaid) {
  const Outcome outcome = long_one([&](Index n) { return redblue(run(n)); });
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace redblue
