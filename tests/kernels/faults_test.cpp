// In a run on a store one request fails, any one of them and in any way that a disk can fail. The
// run ends with the bits of a run in memory, or with an error that names the file, the place and
// the cause. It never ends with a wrong result. It leaves no files behind, and accounts for every
// byte.
//
// A table of all kernels:
//
//   REDBLUE_FAULT_TABLE=1 redblue_kernels_tests --gtest_filter='*FaultsInARun*'

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "memsim/store/store.hpp"
#include "tests/support/faulty_queue.hpp"
#include "tests/support/print.hpp"
#include "tests/support/run_kernel.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

namespace fs = std::filesystem;

constexpr Index kSector = StoreLayout::kSector;
constexpr Shape kShape{72, 56, 16};

bool of_all_kernels() {
  return std::getenv("REDBLUE_FAULT_TABLE") != nullptr;
}

// The outcomes of one kind of fault, over all requests that it struck.
struct Ends {
  Index runs = 0, right = 0, errors = 0, other = 0;

  Ends& operator+=(const Ends& more) {
    runs += more.runs;
    right += more.right;
    errors += more.errors;
    other += more.other;
    return *this;
  }
};

struct FaultyRun {
  std::string kernel;
  bool in_flight;
};

std::string case_name(const testing::TestParamInfo<FaultyRun>& tested) {
  return test_name(tested.param.kernel) + (tested.param.in_flight ? "_in_flight" : "_at_once");
}

void PrintTo(const FaultyRun& tested, std::ostream* out) {
  *out << tested.kernel << (tested.in_flight ? " in flight" : " at once");
}

std::set<fs::path> files_in(const fs::path& directory) {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    files.insert(entry.path().filename());
  }
  return files;
}

// Returns the number of open files of this process, including rings and reservations.
Index open_files() {
  Index files = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    files += fs::read_symlink(entry.path(), gone).empty() ? 0 : 1;
  }
  return files;
}

// Returns whether the message contains one of the texts.
bool names(const std::string& message, const std::vector<std::string>& any_of) {
  return std::ranges::any_of(
      any_of, [&](const std::string& text) { return message.find(text) != std::string::npos; });
}

class FaultsInARun : public testing::TestWithParam<FaultyRun> {
 protected:
  FaultsInARun()
      : kernel_(tested_kernel(GetParam().kernel)),
        problem_(make_problem(kernel_, kShape, 20240607)),
        path_(directory_ / "store") {}

  static void TearDownTestSuite() {
    if (!of_all_kernels()) {
      return;
    }
    std::cout << "fault           |   runs |  right | clean errors | anything else\n";
    Ends all;
    for (const Fault::Kind kind : kFaults) {
      print(to_string(kind), table_[static_cast<std::size_t>(kind)]);
      all += table_[static_cast<std::size_t>(kind)];
    }
    print("all", all);
  }

  [[nodiscard]] StoreOptions options(Faults& faults) const {
    const bool many = GetParam().in_flight;
    const int depth = many ? 8 : 2;
    // A ring for each thread that reads ahead would take long to create and to remove.
    const bool rings = many && !kernel_.streams_keys() && unavailable(Engine::uring).empty();
    const Engine engine = rings ? Engine::uring : Engine::threads;
    return {.engine = engine,
            .granule_bytes = many ? kSector : 2 * kSector,
            .depth = depth,
            .buffer_bytes = many ? 4 * kSector : 2 * kSector,
            .queue = faults.around([=] { return make_queue(engine, depth); })};
  }

  // If `in_flight`, reads run while the kernel computes, provided that it streams its keys.
  [[nodiscard]] Plan plan(Index words) const {
    const Index prefetch = GetParam().in_flight && kernel_.streams_keys() ? 3 : 1;
    return kernel_.plan(kShape, kernel_.least_M(kShape, prefetch) + words, Objective::words,
                        prefetch);
  }

  // Returns a plan with small M and several blocks, with not many more requests than necessary.
  [[nodiscard]] Plan small_plan() const {
    const auto requests = [&](const Plan& fitted) {
      Faults none({.kind = Fault::eintr});
      run(fitted, none);
      return none.requests();
    };
    Index words = 4 * (kShape.n + kShape.m) * (kShape.n + kShape.m);
    const Index most = requests(plan(words)) + (of_all_kernels() ? 60 : 15);
    while (words > 1 && requests(plan(words / 2)) <= most) {
      words /= 2;
    }
    return plan(words);
  }

  void make_inputs() const {
    Faults none;
    Store store(path_, options(none));
    for (const Signature& operand : kernel_.given) {
      const std::string name(operand.name);
      const auto file =
          store.create(name + ".rb",
                       StoreLayout::row_major(operand.rows_of(kShape), operand.cols_of(kShape),
                                              store.granule_bytes()),
                       StoreFile::Life::lasting);
      SlowMatrix matrix = store.matrix(name, file);
      HostAccess::put(matrix, problem_.given.at(name));
      file->seal();
    }
  }

  // Runs on a store as the command does: inputs exist, and intermediates and results are created,
  // sealed and fetched. Throws: exceptions of the store.
  Buffers run(const Plan& plan, Faults& faults) const {
    Store store(path_, options(faults));
    store.reserve(Words(64) * kSector);
    Buffers returned = fresh_results(kernel_, kShape);
    {
      std::deque<SlowMatrix> matrices;  // a deque keeps its elements in place
      std::vector<std::shared_ptr<StoreFile>> results;
      Operands io;
      for (const Signature& operand : kernel_.given) {
        const std::string name(operand.name);
        io.give(matrices.emplace_back(store.matrix(name, store.open(name + ".rb"))));
      }
      for (const Signature& operand : kernel_.returns) {
        const std::string name(operand.name);
        results.push_back(store.fresh(name + ".run.rb", operand.rows_of(kShape),
                                      operand.cols_of(kShape), StoreFile::Life::temporary));
        io.take(matrices.emplace_back(store.matrix(name, results.back())));
      }
      Machine machine(plan.M);
      StoreWorkspace workspace(store);
      store.ledger().begin(Purpose::kernel);
      try {
        kernel_.kernel->run(machine, plan, io, workspace);
      } catch (...) {
        EXPECT_EQ(machine.live(), 0);
        throw;
      }
      EXPECT_EQ(machine.live(), 0);
      const IoCount counted = total(machine.phases()).io;
      const StoreTraffic traffic = store.ledger().of(Purpose::kernel);
      EXPECT_EQ(traffic.read.words, 4 * counted.reads);
      EXPECT_EQ(traffic.written.words, 4 * counted.writes);
      store.ledger().begin(Purpose::results);
      workspace.finish();
      for (std::size_t k = 0; k < results.size(); ++k) {
        results[k]->seal();
        HostAccess::get(matrices[kernel_.given.size() + k],
                        returned.at(std::string(kernel_.returns[k].name)));
      }
    }
    for (const Purpose purpose : kPurposes) {
      const StoreTraffic traffic = store.ledger().of(purpose);
      EXPECT_EQ(traffic.read.itemised(), traffic.read.moved) << to_string(purpose);
      EXPECT_EQ(traffic.written.itemised(), traffic.written.moved) << to_string(purpose);
    }
    return returned;
  }

  // Expects file, offset and cause, on one line.
  void expect_named(const std::string& message, Fault::Kind kind, const std::string& injected) {
    EXPECT_TRUE(names(message, {path_.string() + "/"})) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    switch (kind) {
      case Fault::eio:
      case Fault::enospc:
        EXPECT_TRUE(names(message, {injected.substr(injected.find("at offset ")) + ":"}))
            << message << " after " << injected;
        EXPECT_TRUE(
            names(message, {kind == Fault::eio ? "Input/output error" : "No space left on device"}))
            << message;
        break;
      default:
        EXPECT_TRUE(
            names(message, {"at offset ", "a foreign file", "; this redblue reads version"}))
            << message;
        EXPECT_TRUE(names(message, {"(torn, flipped or stale)", "is damaged", "a foreign file",
                                    "; this redblue reads version"}))
            << message;
        break;
    }
  }

  static void print(const std::string& fault, const Ends& ends) {
    std::ostringstream line;
    line.setf(std::ios::left);
    line.width(15);
    line << fault;
    line.unsetf(std::ios::left);
    for (const auto& [number, width] : {std::pair(ends.runs, 6), std::pair(ends.right, 6),
                                        std::pair(ends.errors, 12), std::pair(ends.other, 13)}) {
      line << " | ";
      line.width(width);
      line << number;
    }
    std::cout << line.str() << '\n';
  }

  const TestedKernel kernel_;
  const TestProblem problem_;
  const TemporaryDirectory directory_{TemporaryDirectory::in_memory()};
  const fs::path path_;
  static inline std::array<Ends, kFaults.size()> table_;
};

TEST_P(FaultsInARun, EndInTheRightResultOrAnErrorThatNamesThem) {
  make_inputs();
  const Plan fitted = small_plan();
  RecordProperty("plan", to_string(fitted));
  const Buffers right = run_kernel(kernel_, fitted, problem_).returned;
  const std::set<fs::path> files = files_in(path_);
  const Index open = open_files();
  for (const Fault::Kind kind : kFaults) {
    Ends ends;
    for (Index k = 0;; ++k) {
      Faults faults({.kind = kind, .which = k, .seed = static_cast<std::uint64_t>(k)});
      std::string message;
      bool ended_well = false;
      bool is_right = false;
      const auto failures = [] {
        return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
      };
      const int before = failures();
      SCOPED_TRACE(to_string(fitted) + ", request " + std::to_string(k));
      try {
        is_right = same_bits(run(fitted, faults), right);
        ended_well = true;
      } catch (const std::system_error& error) {
        message = error.what();
      } catch (const StoreError& error) {
        message = error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << faults.text() << ": another error: " << error.what();
      }
      EXPECT_EQ(files_in(path_), files) << faults.text();
      EXPECT_EQ(open_files(), open) << faults.text();
      if (ended_well) {
        EXPECT_TRUE(is_right) << faults.text() << " ended in a wrong result";
      } else {
        EXPECT_EQ(faults.injected(), 1) << message;
        expect_named(message, kind, faults.text());
      }
      if (kind == Fault::eintr || kind == Fault::short_read || kind == Fault::short_write) {
        EXPECT_TRUE(ended_well) << faults.text() << " is no reason to end: " << message;
      }
      if (kind == Fault::eio || kind == Fault::enospc) {
        EXPECT_NE(ended_well, faults.injected() == 1) << faults.text() << " was swallowed";
      }
      if (faults.injected() == 0) {
        break;  // all requests were struck
      }
      ++ends.runs;
      if (failures() != before) {
        ++ends.other;
      } else {
        ++(ended_well ? ends.right : ends.errors);
      }
      if (ends.other >= 3) {
        break;  // enough to see the fault
      }
    }
    EXPECT_GT(ends.runs, 3) << to_string(kind) << " found nothing to strike";
    table_[static_cast<std::size_t>(kind)] += ends;
  }
}

// Returns a few kernels that cover all paths, or all kernels for the table.
std::vector<FaultyRun> cases() {
  if (!of_all_kernels()) {
    return {{"matmul/blocked", true},  {"forward/flash", true},  {"forward/rows", true},
            {"backward/small", false}, {"backward/rows", false}, {"backward/tiles", false}};
  }
  std::vector<FaultyRun> all;
  for (const TestedKernel& kernel : tested_kernels()) {
    all.push_back({std::string(kernel.name), false});
    all.push_back({std::string(kernel.name), true});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, FaultsInARun, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace redblue
