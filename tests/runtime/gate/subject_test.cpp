// Tests subjects, their arguments and the final counts of a machine.

#include "runtime/gate/subject.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"
#include "runtime/subjects/kernel_subjects.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

Subject with_parameters() {
  Subject subject{.name = "sum/pairs", .summary = {}, .parameters = {}, .run = {}};
  subject.parameters = {
      {.name = "n", .help = {}},
      {.name = "m", .help = {}, .same_as = "n"},
      {.name = "M", .help = {}},
      {.name = "threads", .help = {}, .otherwise = Index{1}},
      {.name = "store", .help = {}, .otherwise = "memory", .words = {"memory", "disk"}}};
  return subject;
}

TEST(Arguments, AreFoundByNameAndKeepTheirOrder) {
  Arguments given = arguments({{"n", Index{4}}, {"store", "disk"}, {"M", Index{10}}});
  EXPECT_EQ(given["n"], 4);
  EXPECT_EQ(given.value("store"), Value("disk"));
  EXPECT_TRUE(given.contains("M"));
  EXPECT_FALSE(given.contains("m")) << "a name is what it is, and no other case";
  EXPECT_EQ(to_string(given), "n=4 store=disk M=10");
  given.set("n", Index{5});
  EXPECT_EQ(to_string(given), "n=5 store=disk M=10") << "set again, in its place";
  EXPECT_EQ(to_string(Arguments()), "");
}

TEST(Arguments, ThrowForWhatThereIsNotAndForAWordAsASize) {
  const Arguments given = arguments({{"store", "disk"}});
  EXPECT_EQ(thrown<std::out_of_range>([&] { static_cast<void>(given["n"]); }),
            "no argument is called n");
  EXPECT_EQ(thrown<std::out_of_range>([&] { static_cast<void>(given["store"]); }),
            "the argument store is no size");
}

TEST(Complete, AddsWhatWasLeftOutInTheOrderOfTheParameters) {
  const Subject subject = with_parameters();
  EXPECT_EQ(to_string(complete(subject, arguments({{"M", Index{9}}, {"n", Index{7}}}))),
            "n=7 m=7 M=9 threads=1 store=memory");
  EXPECT_EQ(to_string(complete(subject, arguments({{"store", "disk"},
                                                   {"threads", Index{2}},
                                                   {"m", Index{3}},
                                                   {"M", Index{9}},
                                                   {"n", Index{7}}}))),
            "n=7 m=3 M=9 threads=2 store=disk");
}

TEST(Complete, RefusesWhatIsUnknownMissingOrNotWhatItMayBe) {
  const auto refused = [](const std::vector<std::pair<std::string, Value>>& more,
                          const std::string& message) {
    Arguments given = arguments({{"n", Index{7}}, {"M", Index{9}}});
    for (const auto& [name, value] : more) {
      given.set(name, value);
    }
    EXPECT_EQ(thrown<std::invalid_argument>([&] { complete(with_parameters(), given); }), message);
  };
  refused({{"d", Index{1}}}, "sum/pairs takes no 'd': it takes n, m, M, threads, store");
  refused({{"n", Index{0}}}, "sum/pairs: n is '0': expected a size of at least 1");
  refused({{"m", Index{-1}}}, "sum/pairs: m is '-1': expected a size of at least 1");
  refused({{"n", "seven"}}, "sum/pairs: n is 'seven': expected a size of at least 1");
  refused({{"store", "tape"}}, "sum/pairs: store is 'tape': expected memory or disk");
  refused({{"store", Index{1}}}, "sum/pairs: store is '1': expected memory or disk");
  EXPECT_EQ(thrown<std::invalid_argument>([&] {
              complete(with_parameters(), arguments({{"n", Index{7}}}));
            }),
            "sum/pairs: M is missing");
  EXPECT_EQ(thrown<std::invalid_argument>([&] {
              complete(with_parameters(), arguments({{"M", Index{7}}}));
            }),
            "sum/pairs: n is missing");
}

// brief() leaves out exactly the arguments that complete() adds, for all combinations.
TEST(Brief, IsTheLeastOfWhichCompleteMakesTheSame) {
  const Subject subject = with_parameters();
  const auto said = [&](Index m, Index threads, const char* store) {
    const Arguments all = complete(
        subject,
        arguments(
            {{"n", Index{7}}, {"m", m}, {"M", Index{9}}, {"threads", threads}, {"store", store}}));
    const Arguments least = brief(subject, all);
    EXPECT_EQ(complete(subject, least), all);
    return to_string(least);
  };
  EXPECT_EQ(said(7, 1, "memory"), "n=7 M=9");
  EXPECT_EQ(said(8, 1, "memory"), "n=7 m=8 M=9");
  EXPECT_EQ(said(1, 2, "disk"), "n=7 m=1 M=9 threads=2 store=disk");
}

// Every kernel of redblue needs only n, d and M.
TEST(KernelSubjects, AreCompleteWithThreeSizes) {
  for (const Subject& subject : kernel_subjects()) {
    const Arguments given = arguments({{"n", Index{8}}, {"d", Index{2}}, {"M", Index{1000}}});
    const Arguments all = complete(subject, given);
    EXPECT_EQ(all["m"], 8) << subject.name;
    EXPECT_EQ(brief(subject, all), given) << subject.name;
    EXPECT_EQ(all.contains("given"), subject.name.starts_with("backward/") ||
                                         subject.name.starts_with("gradients/") ||
                                         subject.name.starts_with("layer/"))
        << subject.name;
  }
}

TEST(NamedTexts, AreOneTextWhateverTheirOrder) {
  const NamedTexts texts = parse_named_texts("  X=identity A1=\"my file.npz\"  B=\"\" ");
  EXPECT_EQ(texts, (NamedTexts{{"A1", "my file.npz"}, {"B", ""}, {"X", "identity"}}));
  EXPECT_EQ(to_string(texts), "A1=\"my file.npz\" B=\"\" X=identity");
  EXPECT_EQ(parse_named_texts(to_string(texts)), texts);
  EXPECT_EQ(to_string(NamedTexts()), "none");
  EXPECT_EQ(parse_named_texts("none"), NamedTexts());
  EXPECT_EQ(parse_named_texts("A=none"), (NamedTexts{{"A", "none"}}));
  for (const char* bad : {"", " ", "A", "A B=c", "=b", "A=\"b", "A=b A=b", "none A=b"}) {
    EXPECT_THROW(parse_named_texts(bad), std::invalid_argument) << bad;
  }
  EXPECT_THROW(to_string(NamedTexts{{"A", "a\"b"}}), std::invalid_argument);
  EXPECT_THROW(to_string(NamedTexts{{"A=", "b"}}), std::invalid_argument);
}

TEST(SubjectOf, HasTheSizesAndThenM) {
  const Subject subject = subject_of("copy", [](Machine&, const Arguments&) {}, {"n", "m"});
  ASSERT_EQ(subject.parameters.size(), 3U);
  EXPECT_EQ(subject.parameters[0].name, "n");
  EXPECT_EQ(subject.parameters[1].name, "m");
  EXPECT_EQ(subject.parameters[2].name, "M");
  EXPECT_EQ(subject.formula, nullptr);
  EXPECT_EQ(subject.least_M, nullptr);
}

TEST(SubjectOf, CountsWhatTheFunctionMoves) {
  const Subject subject =
      subject_of("copy",
                 [](Machine& machine, const Arguments& given) {
                   SlowMatrix from("from", given["n"], 3);
                   SlowMatrix to("to", given["n"], 3);
                   const Phase phase(machine, "move");
                   const Tile all = machine.read(from.block({0, given["n"]}, {0, 3}));
                   machine.write(all, to.block({0, given["n"]}, {0, 3}));
                 },
                 {"n"});
  const RunCounts counts = subject.run(arguments({{"n", Index{4}}, {"M", Index{12}}}));
  ASSERT_EQ(counts.phases.size(), 1U);
  EXPECT_EQ(counts.phases[0].path, "move");
  EXPECT_EQ(counts.phases[0].io, (IoCount{12, 12}));
  EXPECT_EQ(counts.total.io, (IoCount{12, 12}));
  EXPECT_EQ(counts.total.peak, 12);
  EXPECT_THROW(subject.run(arguments({{"n", Index{4}}, {"M", Index{11}}})), FastMemoryOverflow);
}

// A tile that outlives the work leaves words in fast memory.
TEST(FinalCounts, NothingIsLiveAtTheEnd) {
  Machine machine(10);
  const Tile kept = machine.initialize("kept", 2, 3);
  EXPECT_PRED2(contains, thrown<std::logic_error>([&] { final_counts(machine); }),
               "6 words are still in fast memory at the end (kept 6): a tile outlives the work");
}

TEST(FinalCounts, NoPhaseIsOpenAtTheEnd) {
  Machine machine(10);
  const Phase outer(machine, "outer");
  const Phase inner(machine, "inner");
  EXPECT_PRED2(contains, thrown<std::logic_error>([&] { final_counts(machine); }),
               "phase outer/inner is still open at the end");
}

// With two phases of one path, a gate would compare one with the words of the other.
TEST(FinalCounts, NoTwoPhasesOfOnePath) {
  Machine machine(10);
  { const Phase flat(machine, "a/b"); }
  EXPECT_NO_THROW(final_counts(machine));
  {
    const Phase outer(machine, "a");
    const Phase inner(machine, "b");
  }
  EXPECT_PRED2(contains, thrown<std::logic_error>([&] { final_counts(machine); }),
               "two phases are a/b");
}

TEST(Predicted, IsTheSumOfItsPhasesAndTheLargestPeak) {
  const RunCounts counts = predicted({{"a", 3, 4, 50, 0}, {"b", 10, 20, 30, 0}});
  ASSERT_EQ(counts.phases.size(), 2U);
  EXPECT_EQ(counts.phases[1].path, "b");
  EXPECT_EQ(counts.phases[1].io, (IoCount{10, 20}));
  EXPECT_EQ(counts.phases[1].peak, 30);
  EXPECT_EQ(counts.total.path, "");
  EXPECT_EQ(counts.total.io, (IoCount{13, 24}));
  EXPECT_EQ(counts.total.peak, 50);
  EXPECT_THROW(predicted({{"a", Words(INT64_MAX) + 1, 0, 0, 0}}), CountOverflow);
}

}  // namespace
}  // namespace redblue
