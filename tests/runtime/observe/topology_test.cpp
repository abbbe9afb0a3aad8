// Tests that an unavailable topology is empty and has a reason. hwloc_test.cpp tests available
// ones.

#include "runtime/observe/topology.hpp"

#include <gtest/gtest.h>

namespace redblue {
namespace {

TEST(Topology, IsThereWithHwlocAlone) {
  const std::string why = hwloc_version() ? "" : "built without hwloc";
  EXPECT_EQ(read_topology().unavailable, why);
  EXPECT_EQ(synthetic_topology("pu:1").unavailable, why);
  EXPECT_EQ(topology_of_xml(REDBLUE_SOURCE_DIR "/tests/runtime/observe/six_cores.xml").unavailable,
            why);
}

TEST(Topology, ThatIsUnavailableIsEmpty) {
  const Topology none{.unavailable = "nobody knows"};
  EXPECT_EQ(none.units(), 0U);
  for (const CacheLevel level : kCacheLevels) {
    EXPECT_EQ(none.cache(level), nullptr);
    EXPECT_EQ(fast_memory(none, {level, 1}), std::nullopt);
  }
  EXPECT_EQ(pin_this_thread(none, 0), "nobody knows");
}

}  // namespace
}  // namespace redblue
