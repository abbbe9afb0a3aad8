// Tests a run of ranks with homes (their slow memories) on disk, in which one request fails: any
// request, in any way that a disk can. The run ends with the bits of a run in memory, or with one
// line that names the rank's folder and the file. It leaves no file behind and never ends with a
// wrong result.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "runtime/run/run.hpp"
#include "tests/support/faulty_queue.hpp"
#include "tests/support/print.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

class FaultsOfRanksOnDisk : public testing::TestWithParam<Fault::Kind> {
 protected:
  [[nodiscard]] Request request() const {
    Request request;
    request.kernel = "backward/rows";
    request.n = 60;
    request.m = 50;
    request.d = 16;
    request.M = 2048;
    request.out["g"] = directory_ / "g.npy";
    request.on_ranks = OnRanks{};
    request.on_ranks->grid = Grid{2, 2};
    request.on_ranks->ranks = 4;
    request.on_ranks->groups = 3;
    request.on_ranks->collect = true;
    return request;
  }
  // Returns the bytes of the result, or the message of the fault.
  [[nodiscard]] std::string run_with(Faults& faults) const {
    Request asked = request();
    asked.store = Request::OnDisk{};
    asked.store->directory = directory_ / "st";
    asked.store->options.granule_bytes = 4096;
    asked.store->options.queue = faults.around([] { return make_queue(Engine::threads, 8); });
    std::filesystem::remove(directory_ / "g.npy");
    std::string wrong;
    try {
      run(asked);
    } catch (const std::exception& error) {
      wrong = error.what();
      EXPECT_FALSE(std::filesystem::exists(directory_ / "g.npy"));
    }
    EXPECT_FALSE(std::filesystem::exists(directory_ / "st"));
    return wrong.empty() ? content_of(directory_ / "g.npy") : wrong;
  }

  TemporaryDirectory directory_{TemporaryDirectory::in_memory()};
};

TEST_P(FaultsOfRanksOnDisk, EndInTheRightBitsOrALine) {
  run(request());
  const std::string right = content_of(directory_ / "g.npy");
  Faults none({.kind = GetParam(), .which = -1});
  ASSERT_EQ(run_with(none), right);
  const Index requests = none.requests();
  ASSERT_GT(requests, 40);
  constexpr Index kTries = 12;
  Index errors = 0;
  for (Index k = 0; k < kTries; ++k) {
    Faults faults({.kind = GetParam(),
                   .which = (requests * k + k % 5) / kTries,
                   .seed = static_cast<std::uint64_t>(k)});
    const std::string found = run_with(faults);
    SCOPED_TRACE(faults.text());
    EXPECT_EQ(faults.injected(), 1);
    if (found != right) {
      ++errors;
      EXPECT_TRUE(std::regex_search(found, std::regex("st/rank-[0-3]/[^/]*[.]run[.]rb"))) << found;
      EXPECT_EQ(found.find('\n'), std::string::npos) << found;
    }
  }
  // The run recovers from requests that are interrupted or done in part.
  static const std::set<Fault::Kind> mended = {Fault::eintr, Fault::short_read, Fault::short_write};
  if (mended.contains(GetParam())) {
    EXPECT_EQ(errors, 0);
  } else {
    EXPECT_GT(errors, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultsOfRanksOnDisk, testing::ValuesIn(kFaults),
                         [](const auto& of) {
                           std::string name = to_string(of.param);
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace redblue
