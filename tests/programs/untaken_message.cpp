// Rank 0 of two sends a message that rank 1 takes only after rank 0 has lost patience twice. Prints
// how often finish() reported the failure. wait() may not throw and leaves the report to finish().

#include <cstdio>
#include <vector>

#include "runtime/mpi/mpi_transport.hpp"

int main() {
  redblue::MpiJob job;
  redblue::Transport& transport = job.transport();
  std::vector<float> words(redblue::kMostWordsOfMessage);
  if (transport.rank() == 1) {
    static_cast<void>(transport.gather("rank 0 lost patience"));
    transport.receive("A2", 0, words);
    static_cast<void>(transport.gather("the message came"));
    return 0;
  }
  transport.wait_at_most(std::chrono::milliseconds(100));
  const auto message = transport.begin_send("A2", 1, words);
  message->wait();
  int failures = 0;
  for (int k = 0; k < 2; ++k) {
    try {
      message->finish();
    } catch (const redblue::TransportError&) {
      ++failures;
    }
  }
  std::printf("%d\n", failures);
  transport.wait_at_most(std::chrono::minutes(1));
  static_cast<void>(transport.gather("rank 0 lost patience"));
  static_cast<void>(transport.gather("the message came"));
  return 0;
}
