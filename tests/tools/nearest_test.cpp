// Tests the names that are offered for an unknown name.

#include "kernels/nearest.hpp"

#include <array>

#include <gtest/gtest.h>

namespace redblue {
namespace {

using Names = std::vector<std::string>;
constexpr std::array<std::string_view, 8> kSomeKernels = {
    "matmul/blocked", "forward/naive",  "forward/small",  "forward/flash",
    "backward/naive", "backward/small", "backward/large", "backward/flash"};

TEST(Nearest, FewestEditsFirst) {
  EXPECT_EQ(nearest("backward/smal", kSomeKernels)[0], "backward/small");
  EXPECT_EQ(nearest("bakcward/flsh", kSomeKernels)[0], "backward/flash");
  EXPECT_EQ(nearest("matmul", kSomeKernels)[0], "matmul/blocked");
  // The distances are one replaced letter, then two, then three. Names that are farther are not
  // offered.
  constexpr std::array<std::string_view, 4> known = {"cord", "word", "sard", "bbbbb"};
  EXPECT_EQ(nearest("wore", known), (Names{"word", "cord", "sard"}));
  // An insertion or a deletion costs one: kitten -> sitting is 3, -> kit is 3, -> mitten is 1.
  constexpr std::array<std::string_view, 3> classic = {"sitting", "kit", "mitten"};
  EXPECT_EQ(nearest("kitten", classic), (Names{"mitten", "sitting", "kit"}));
}

// Offers a name only for a slip: one letter in three.
TEST(Nearest, OneThatIsNear) {
  constexpr std::array<std::string_view, 3> known = {"mask", "make", "M"};
  EXPECT_EQ(near("masks", known), "mask");
  EXPECT_EQ(near("mak", known), "mask");
  EXPECT_EQ(near("x", known), "");
  EXPECT_EQ(near("verify", known), "");
  EXPECT_EQ(near("", known), "");
  EXPECT_EQ(near("m", known), "M");
  EXPECT_EQ(near("MASK", known), "mask");
}

TEST(Nearest, APartOfANameMeansTheName) {
  EXPECT_EQ(nearest("flash", kSomeKernels)[0], "forward/flash");
  EXPECT_EQ(nearest("flash", kSomeKernels)[1], "backward/flash");
}

TEST(Nearest, AtMostThreeAndEqualsInTheirOrder) {
  constexpr std::array<std::string_view, 4> known = {"b", "a", "d", "c"};
  EXPECT_EQ(nearest("x", known), (Names{"b", "a", "d"}));
  EXPECT_EQ(nearest("x", std::span(known).first(1)), (Names{"b"}));
  EXPECT_EQ(nearest("x", {}), Names{});
  EXPECT_EQ(nearest("", kSomeKernels).size(), 3U);
}

}  // namespace
}  // namespace redblue
