// For tests/mutants: writes for each test its name, its milliseconds and the mutants that it
// reaches to the file REDBLUE_MUTANTS_REACHED.

#include <cstring>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "tests/support/mutant.hpp"

namespace {

class Reached : public testing::EmptyTestEventListener {
  // Kernels are made once, so every test reaches what makes them.
  void OnTestProgramStart(const testing::UnitTest& /*program*/) override {
    for (const redblue::KernelList* list : {&redblue::kernels(), &redblue::sparse_kernels()}) {
      for (std::size_t place = 0; place < list->size(); ++place) {
        static_cast<void>((*list)[place]);
      }
    }
    always_.assign(redblue::mutants_reached, MUTANTS);
  }
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    std::memcpy(redblue::mutants_reached, always_.data(), MUTANTS);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    file_ << test.test_suite_name() << '.' << test.name() << ' ' << test.result()->elapsed_time();
    for (int number = 0; number < MUTANTS; ++number) {
      if (redblue::mutants_reached[number] != 0) {
        file_ << ' ' << number;
      }
    }
    file_ << std::endl;
  }

  std::string always_;
  std::ofstream file_{std::getenv("REDBLUE_MUTANTS_REACHED")};
};

const bool listens = [] {
  if (std::getenv("REDBLUE_MUTANTS_REACHED") != nullptr) {
    testing::UnitTest::GetInstance()->listeners().Append(new Reached);
  }
  return true;
}();

}  // namespace
