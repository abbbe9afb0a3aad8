// Tests numbers as people type them: which are accepted, and that each refusal is one line with the
// flag, the text and the remedy.

#include "runtime/text/sizes.hpp"

#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace redblue {
namespace {

constexpr Index kMax = std::numeric_limits<Index>::max();

// Returns the message of the UsageError that `call` throws.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "not refused";
}
std::string size_refusal(std::string_view text) {
  return refusal([&] { parse_size(text, "--n"); });
}
std::string memory_refusal(std::string_view text) {
  return refusal([&] { parse_fast_memory(text, "REDBLUE_M"); });
}

Index words(std::string_view text) {
  return std::get<Index>(parse_fast_memory(text, "--M"));
}
CachePart cache(std::string_view text) {
  return std::get<CachePart>(parse_fast_memory(text, "--M"));
}

TEST(Sizes, CountsAndPowersOfTwo) {
  EXPECT_EQ(parse_size("1", "--n"), 1);
  EXPECT_EQ(parse_size("1000", "--n"), 1000);
  EXPECT_EQ(parse_size("4K", "--n"), 4096);
  EXPECT_EQ(parse_size("2M", "--n"), Index{2} << 20);
  EXPECT_EQ(parse_size("1G", "--n"), Index{1} << 30);
  EXPECT_EQ(parse_size("9223372036854775807", "--n"), kMax);
  EXPECT_EQ(parse_size("8589934591G", "--n"), kMax - ((Index{1} << 30) - 1));
}

TEST(Sizes, FastMemoryInWordsOrBytes) {
  EXPECT_EQ(words("1000"), 1000);
  EXPECT_EQ(words("64K"), 65536);
  EXPECT_EQ(words("64KiB"), 16384);
  EXPECT_EQ(words("1KiB"), 256);
  EXPECT_EQ(words("2MiB"), Index{1} << 19);
  EXPECT_EQ(words("1GiB"), Index{1} << 28);
}

TEST(Sizes, FastMemoryAsAPartOfACache) {
  EXPECT_EQ(cache("L1"), (CachePart{CacheLevel::L1, 1}));
  EXPECT_EQ(cache("L2"), (CachePart{CacheLevel::L2, 1}));
  EXPECT_EQ(cache("L3"), (CachePart{CacheLevel::L3, 1}));
  EXPECT_EQ(cache("L2*0.5"), (CachePart{CacheLevel::L2, 0.5}));
  EXPECT_EQ(cache("L3*1"), (CachePart{CacheLevel::L3, 1}));
  EXPECT_EQ(cache("L1*1e-2"), (CachePart{CacheLevel::L1, 0.01}));
}

TEST(Sizes, FastMemoryByACalibration) {
  EXPECT_TRUE(std::holds_alternative<Auto>(parse_fast_memory("auto", "--M")));
  for (const std::string text : {"Auto", "AUTO", "auto*0.5", "auto ", "aut"}) {
    EXPECT_TRUE(memory_refusal(text).ends_with(", or auto")) << text;
  }
}

TEST(Sizes, WhatIsNoCacheIsRefusedByName) {
  for (const std::string text : {"L", "L4", "L0", "l", "LLC", "l4*0.5", "L4*0.5", " L2"}) {
    EXPECT_TRUE(memory_refusal(text).starts_with("REDBLUE_M: \"" + text + "\" is no")) << text;
  }
  EXPECT_EQ(memory_refusal("L4"),
            "REDBLUE_M: \"L4\" is no cache; expected L1, L2 or L3, or a share of one such as "
            "L2*0.5");
  for (const std::string text : {"l2", "L2d", "L2/2", "L2 *0.5", "l2*0.5", "L21"}) {
    EXPECT_EQ(memory_refusal(text),
              "REDBLUE_M: \"" + text + "\" is no cache; did you mean L2? (half of it is L2*0.5)");
  }
  for (const std::string text : {"L2*", "L2*0", "L2*1.5", "L2*-0.5", "L2*+1", "L2*0.5x", "L2* 0.5",
                                 "L2*nan", "L2*inf", "L2*1e-999", "L2*0.5*0.5", "L2*half"}) {
    EXPECT_EQ(memory_refusal(text), "REDBLUE_M: \"" + text +
                                        "\" has no share of L2 above 0 and up to 1, such as "
                                        "L2*0.5");
  }
}

TEST(Sizes, WhatIsNoSizeIsRefusedByName) {
  for (const std::string text : {"", " ", " 4", "4 ", "4 K", "+4", "-4", "-0", "0x10", "1e3", "10x",
                                 "1.5K", "4KK", "K", "abc", "1,000", "4K\n", "\xff"}) {
    const std::string expected = "a positive whole number such as 1000, 4K or 2M (powers of two)";
    const std::string message = size_refusal(text);
    EXPECT_TRUE(message.starts_with("--n: \"")) << message;
    EXPECT_TRUE(message.ends_with("\" is not " + expected)) << message;
    EXPECT_TRUE(memory_refusal(text).starts_with("REDBLUE_M: \"")) << text;
  }
  EXPECT_EQ(size_refusal("10x"),
            "--n: \"10x\" is not a positive whole number such as 1000, 4K or 2M (powers of two)");
  EXPECT_EQ(
      memory_refusal("1.5K"),
      "REDBLUE_M: \"1.5K\" is not a positive whole number of words such as 1000 or 64K, of bytes "
      "such as 64KiB or 2MiB, a cache such as L2 or L2*0.5, or auto");
}

TEST(Sizes, ZeroIsRefused) {
  for (const std::string text : {"0", "00", "0K", "0G"}) {
    EXPECT_NE(size_refusal(text).find("is zero; expected a positive"), std::string::npos) << text;
    EXPECT_NE(memory_refusal(text).find("is zero; expected a positive"), std::string::npos) << text;
  }
}

TEST(Sizes, OverflowIsRefused) {
  for (const std::string text :
       {"9223372036854775808", "99999999999999999999999", "8589934592G", "9007199254740992K"}) {
    const std::string message =
        "\"" + text + "\" is too large; expected at most " + std::to_string(kMax);
    EXPECT_EQ(size_refusal(text), "--n: " + message);
    EXPECT_EQ(memory_refusal(text), "REDBLUE_M: " + message);
  }
  EXPECT_NE(memory_refusal("34359738368GiB").find("too large"), std::string::npos);
}

TEST(Sizes, NearMissesGetTheRightSpelling) {
  for (const std::string text : {"64k", "64KB", "64kb", "64Ki", "64kib", "64KiB"}) {
    EXPECT_EQ(size_refusal(text), "--n: \"" + text + "\" is not a size; did you mean 64K?");
  }
  for (const std::string text : {"64k", "64KB", "64kb", "64Ki", "64kib", "64KIB"}) {
    EXPECT_EQ(memory_refusal(text), "REDBLUE_M: \"" + text +
                                        "\" is not a size; did you mean 64KiB (bytes) or 64K "
                                        "(words)?");
  }
  EXPECT_NE(memory_refusal("2mb").find("2MiB (bytes) or 2M (words)?"), std::string::npos);
  EXPECT_NE(size_refusal("1g").find("did you mean 1G?"), std::string::npos);
}

TEST(Sizes, Scale) {
  EXPECT_EQ(parse_scale("1", "--scale"), 1.0);
  EXPECT_EQ(parse_scale("0.5", "--scale"), 0.5);
  EXPECT_EQ(parse_scale("1e4", "--scale"), 1e4);
  for (const std::string text :
       {"", "0", "-1", "+1", " 1", "1 ", "inf", "nan", "1e400", "1x", "0x1p3", "one", "1e"}) {
    EXPECT_EQ(refusal([&] { parse_scale(text, "--scale"); }),
              "--scale: \"" + text + "\" is not a positive finite number such as 1 or 0.5");
  }
}

TEST(Sizes, Seed) {
  EXPECT_EQ(parse_seed("0", "--seed"), 0U);
  EXPECT_EQ(parse_seed("18446744073709551615", "--seed"),
            std::numeric_limits<std::uint64_t>::max());
  for (const std::string text :
       {"", "-1", "+1", " 1", "1 ", "1.5", "0x1", "1K", "18446744073709551616"}) {
    EXPECT_EQ(refusal([&] { parse_seed(text, "--seed"); }),
              "--seed: \"" + text + "\" is not a whole number from 0 to 18446744073709551615");
  }
}

}  // namespace
}  // namespace redblue
