// Tests the fast memory that `--M auto` stands for: the nearest tuned problem, or the rule. Tests
// the file with the answers. The machines are described ones.

#include "runtime/run/tuned.hpp"

#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/system/input_error.hpp"

namespace redblue {
namespace {

using Parsed = nlohmann::json;

Topology machine(std::uint64_t L2, std::uint64_t L3, const char* model = "A processor") {
  Topology topology;
  topology.source = "made up";
  topology.model = model;
  topology.cores = {{0}, {1}};
  topology.caches[0] = {{.bytes = 4096, .line = 64, .ways = {}, .cores = {0}},
                        {.bytes = 4096, .line = 64, .ways = {}, .cores = {1}}};
  topology.caches[1] = {{.bytes = L2, .line = 64, .ways = {}, .cores = {0}},
                        {.bytes = L2, .line = 64, .ways = {}, .cores = {1}}};
  if (L3 > 0) {
    topology.caches[2] = {{.bytes = L3, .line = 64, .ways = {}, .cores = {0, 1}}};
  }
  return topology;
}

const Topology kHere = machine(65'536, 1 << 20);

TunedProblem tuned(Index n, Index d, std::vector<TunedKernel> kernels) {
  return {.pass = Pass::gradients,
          .mask = "full",
          .n = n,
          .m = n,
          .d = d,
          .date = "2026-01-31T12:00:00Z",
          .kernels = std::move(kernels)};
}

CachePart part_of(const AutoRequest& request, const std::vector<TunedProblem>& answers = {},
                  const Topology& topology = kHere) {
  const auto memory = auto_memory(request, answers, topology);
  return memory ? memory->part : CachePart{CacheLevel::L1, 0};
}

TEST(Tuned, MasksHaveClassesByTheirFirstWord) {
  EXPECT_EQ(mask_class(""), "full");
  EXPECT_EQ(mask_class("full"), "full");
  EXPECT_EQ(mask_class(" (causal) "), "causal");
  EXPECT_EQ(mask_class("window:512,0"), mask_class("window:9,inf"));
  EXPECT_EQ(mask_class("documents:a.npy"), "documents");
  EXPECT_EQ(mask_class("causal&window:9,0"), "several");
  EXPECT_EQ(mask_class("causal|prefix:4"), "several");
}

// Backward passes from scratch hold whole rows of scores in a quarter of L3. All others, and all
// without an L3, use half of L2.
TEST(Tuned, TheRule) {
  const CachePart half{CacheLevel::L2, 0.5}, quarter{CacheLevel::L3, 0.25};
  for (const Pass pass : {Pass::product, Pass::forward, Pass::attention, Pass::linear}) {
    EXPECT_EQ(part_of({.pass = pass}), half) << to_string(pass);
  }
  for (const Pass pass : {Pass::gradients, Pass::layer}) {
    EXPECT_EQ(part_of({.pass = pass}), quarter);
    EXPECT_EQ(part_of({.pass = pass, .has_forward = true}), quarter);
  }
  EXPECT_EQ(part_of({.pass = Pass::backward}), quarter);
  EXPECT_EQ(part_of({.pass = Pass::backward, .has_forward = true}), half);
  EXPECT_EQ(part_of({.pass = Pass::gradients, .kernel = "gradients/score-rows"}), quarter);
  EXPECT_EQ(part_of({.pass = Pass::gradients, .kernel = "gradients/rows-keys"}), half)
      << "it takes O and L";
  EXPECT_EQ(part_of({.pass = Pass::gradients}, {}, machine(65'536, 0)), half);
  EXPECT_EQ(auto_memory({}, {}, Topology()), std::nullopt);
}

// A quarter of a large L3 is more than 4M words.
TEST(Tuned, TheRuleTakesAtMost4MWords) {
  const Topology large = machine(1 << 20, std::uint64_t{1} << 28);
  const auto words = fast_memory(large, part_of({.pass = Pass::gradients}, {}, large));
  EXPECT_EQ(words->words, Index{4} << 20);
  // Two threads share the L3: half of its words are a thread's.
  const CachePart two = part_of({.pass = Pass::gradients, .threads = 2}, {}, large);
  EXPECT_EQ(fast_memory(large, two, 2)->words, Index{4} << 20);
}

TEST(Tuned, TheNearestByLogarithms) {
  const auto answer = [](Index n, Index d, double share) {
    return tuned(n, d, {{"gradients/flash", {CacheLevel::L1, share}, 1, 1}});
  };
  const std::vector<TunedProblem> answers = {answer(1000, 64, 0.1), answer(4000, 64, 0.2),
                                             answer(4000, 128, 0.3)};
  const auto share = [&](std::optional<Index> n, std::optional<Index> d) {
    return part_of({.pass = Pass::gradients, .n = n, .d = d}, answers).share;
  };
  EXPECT_EQ(share(1000, 64), 0.1);
  EXPECT_EQ(share(1999, 64), 0.1) << "2,000 is the middle of 1,000 and 4,000";
  EXPECT_EQ(share(2001, 64), 0.2);
  EXPECT_EQ(share(8000, 100), 0.3) << "sqrt(64 * 128) is 90.5";
  EXPECT_EQ(share(700, 110), 0.1) << "log 1.43 + log 1.72 is less than log 5.71 + log 1.16";
  EXPECT_EQ(share(std::nullopt, 128), 0.3);
  EXPECT_EQ(share(4000, std::nullopt), 0.3) << "both are equally near: the latest";
}

TEST(Tuned, OtherProblemsAreNotNear) {
  const std::vector<TunedProblem> answers = {
      tuned(1000, 64, {{"gradients/flash", {CacheLevel::L1, 0.1}, 1, 1}})};
  const AutoRequest same{.pass = Pass::gradients, .n = 1000, .d = 64};
  EXPECT_TRUE(auto_memory(same, answers, kHere)->tuned);
  AutoRequest other = same;
  other.d = 255;
  EXPECT_TRUE(auto_memory(other, answers, kHere)->tuned);
  other.d = 257;
  EXPECT_FALSE(auto_memory(other, answers, kHere)->tuned) << "more than 4 times as wide";
  other.n = 2000;
  other.d = 129;
  EXPECT_FALSE(auto_memory(other, answers, kHere)->tuned) << "more than 4 times in all";
  other = same;
  other.pass = Pass::layer;
  EXPECT_FALSE(auto_memory(other, answers, kHere)->tuned);
  other = same;
  other.mask = "causal";
  EXPECT_FALSE(auto_memory(other, answers, kHere)->tuned);
  other = same;
  other.threads = 2;
  EXPECT_FALSE(auto_memory(other, answers, kHere)->tuned);
  other = same;
  other.kernel = "gradients/score-rows";
  EXPECT_FALSE(auto_memory(other, answers, kHere)->tuned) << "it was not timed";
}

// A kernel that takes O and L is the fastest after a forward pass, but not with one.
TEST(Tuned, TheForwardPassCountsIfItMustRun) {
  const std::vector<TunedProblem> answers = {
      tuned(100, 8,
            {{"gradients/flash", {CacheLevel::L1, 0.5}, 1, 4},
             {"gradients/flash", {CacheLevel::L2, 0.5}, 2, 5},
             {"gradients/score-rows", {CacheLevel::L3, 0.5}, 3, 3}})};
  const auto kernel = [&](bool has_forward, const char* named = "") {
    return *auto_memory({.pass = Pass::gradients, .kernel = named, .has_forward = has_forward},
                        answers, kHere);
  };
  EXPECT_EQ(kernel(true).kernel, "gradients/flash");
  EXPECT_EQ(kernel(false).kernel, "gradients/score-rows");
  EXPECT_EQ(kernel(false, "gradients/flash").part.level, CacheLevel::L1);
  EXPECT_EQ(kernel(true, "gradients/score-rows").part.level, CacheLevel::L3);
}

TEST(Tuned, AnAnswerReplacesThatOfTheSameProblem) {
  std::vector<TunedProblem> answers;
  const TunedProblem first = tuned(100, 8, {{"gradients/flash", {CacheLevel::L1, 0.5}, 1, 4}});
  TunedProblem again = first, causal = first;
  again.date = "2027-01-31T12:00:00Z";
  causal.mask = "causal";
  for (const TunedProblem& problem : {first, causal, again}) {
    add_tuned(answers, problem);
  }
  EXPECT_EQ(answers, (std::vector{causal, again}));
}

std::string text_of(const Topology& topology) {
  return tuned_text({tuned(100, 8,
                           {{"gradients/flash", {CacheLevel::L1, 0.5}, 1e-3, 4e-3},
                            {"gradients/score-rows", {CacheLevel::L3, 0.0625}, 3e-3, 3e-3}})},
                    topology);
}

std::string refusal(const std::string& text, const Topology& topology) {
  try {
    static_cast<void>(read_tuned(text, "FILE", topology));
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("FILE")) << message;
    EXPECT_NE(message.find("`redblue tune`"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "not refused";
}

TEST(Tuned, AnswersComeBackAsTheyWereWritten) {
  const std::vector<TunedProblem> read = read_tuned(text_of(kHere), "FILE", kHere);
  EXPECT_EQ(read,
            (std::vector{tuned(100, 8,
                               {{"gradients/flash", {CacheLevel::L1, 0.5}, 1e-3, 4e-3},
                                {"gradients/score-rows", {CacheLevel::L3, 0.0625}, 3e-3, 3e-3}})}));
  EXPECT_TRUE(read_tuned(tuned_text({}, kHere), "FILE", kHere).empty());
}

TEST(Tuned, AnotherMachineIsRefused) {
  const std::string text = text_of(kHere);
  EXPECT_EQ(refusal(text, machine(65'536, 1 << 20, "Another")),
            "FILE: it is of another processor: 'A processor', and this one is 'Another': run "
            "`redblue tune` again");
  EXPECT_EQ(refusal(text, machine(65'536, 1 << 21)),
            "FILE: it is of another machine, whose L3 has 1048576 bytes; here it has 2097152 "
            "bytes: run `redblue tune` again");
  EXPECT_NE(refusal(text, machine(65'536, 0)).find("an unknown size"), std::string::npos);
}

TEST(Tuned, AFileThatIsNoneIsRefused) {
  const std::string good = text_of(kHere);
  for (const std::size_t length : {std::size_t{0}, good.size() / 2, good.size() - 3}) {
    EXPECT_NE(refusal(good.substr(0, length), kHere).find("truncated"), std::string::npos);
  }
  const std::function<void(Parsed&)> malformed[] = {
      [](Parsed& json) { json = 7; },
      [](Parsed& json) { json.erase("problems"); },
      [](Parsed& json) { json["problems"][0]["problem"] = "none"; },
      [](Parsed& json) { json["problems"][0]["n"] = 0; },
      [](Parsed& json) { json["problems"][0].erase("kernels"); },
      [](Parsed& json) { json["problems"][0]["kernels"] = Parsed::array(); },
      [](Parsed& json) { json["problems"][0]["kernels"][1]["cache"] = "L4"; },
      [](Parsed& json) { json["problems"][0]["kernels"][1]["share"] = 0; },
      [](Parsed& json) { json["problems"][0]["kernels"][1]["share"] = 1.5; },
      [](Parsed& json) { json["problems"][0]["kernels"][1]["seconds"] = "few"; }};
  for (const auto& change : malformed) {
    Parsed json = Parsed::parse(good);
    change(json);
    EXPECT_NE(refusal(json.dump(), kHere), "not refused") << json.dump();
  }
  Parsed later = Parsed::parse(good);
  later["schema"] = 2;
  EXPECT_NE(refusal(later.dump(), kHere).find("schema 2, expected 1"), std::string::npos);
}

}  // namespace
}  // namespace redblue
