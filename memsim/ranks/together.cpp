#include "memsim/ranks/together.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "memsim/errors.hpp"

namespace redblue {

void run_together(Index count, std::string_view what, const std::function<void(Index)>& work) {
  enum class Signal : std::uint8_t { wait, begin, leave };
  std::atomic<Signal> signal = Signal::wait;
  const auto give = [&](Signal given) {
    signal = given;
    signal.notify_all();
  };
  std::vector<std::jthread> others;  // joined before the signal dies
  try {
    others.reserve(static_cast<std::size_t>(count - 1));
    for (Index k = 1; k < count; ++k) {
      others.emplace_back([&, k] {
        signal.wait(Signal::wait);
        if (signal == Signal::begin) {
          work(k);
        }
      });
    }
  } catch (const std::system_error& error) {
    give(Signal::leave);
    throw no_thread(std::string(what) + " " + std::to_string(others.size() + 1) + " of " +
                        std::to_string(count),
                    error.code());
  } catch (...) {
    give(Signal::leave);
    throw;
  }
  give(Signal::begin);
  work(0);
}

}  // namespace redblue
