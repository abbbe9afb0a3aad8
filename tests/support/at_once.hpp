#pragma once
// Runs commands that mostly wait, such as MPI jobs, at the same time.

#include <exception>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace redblue {

// Calls `run` with each item, on a thread of its own, and returns when all have ended.
template <class Items, class Run>
void at_once(Items& items, const Run& run) {
  std::vector<std::jthread> threads;
  for (auto& item : items) {
    threads.emplace_back([&run, &item] {
      try {
        run(item);
      } catch (const std::exception& error) {  // else it would end the program
        ADD_FAILURE() << error.what();
      }
    });
  }
}

}  // namespace redblue
