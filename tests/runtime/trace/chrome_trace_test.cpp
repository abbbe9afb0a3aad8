// Tests that a trace agrees with the machine's counts: every word is in it once, in its phase, and
// fast memory never holds more than M words.

#include "runtime/trace/chrome_trace.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/report/followed_plan.hpp"
#include "tests/support/json.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

struct Traced {
  Json json;
  std::string text;
  Part part;
  Index written = 0;
  Index all = 0;
};

Traced trace(const Request& request, Index most = kMostTraceEvents) {
  Traced traced;
  std::tie(traced.part, traced.text) =
      followed(request, [&](Machine& machine, const Plan& plan, TextFile& file, const auto& go) {
        ChromeTrace chrome(machine, followed_of(plan), file, most);
        go();
        chrome.end();
        traced.written = chrome.written();
        traced.all = chrome.all();
      });
  traced.json = Json::parse(traced.text);
  return traced;
}

std::vector<Json> events(const Json& trace, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == kind || (event.contains("cat") && event["cat"] == kind)) {
      found.push_back(event);
    }
  }
  return found;
}

Index words_of(const Json& counter) {
  Index sum = 0;
  for (const Json& words : counter["args"]) {
    EXPECT_GE(words, 0);
    sum += words.get<Index>();
  }
  return sum;
}

Index end_of(const Json& slice) {
  return slice["ts"].get<Index>() + slice["dur"].get<Index>();
}

void expect_nested(const std::vector<Json>& phases) {
  for (const Json& a : phases) {
    for (const Json& b : phases) {
      const bool apart = end_of(a) <= b["ts"] || end_of(b) <= a["ts"];
      const std::string outer = a["args"]["path"].get<std::string>() + "/";
      const bool inside = b["args"]["path"].get<std::string>().starts_with(outer) &&
                          a["ts"] <= b["ts"] && end_of(b) <= end_of(a);
      if (a["tid"] < b["tid"]) {
        EXPECT_TRUE(apart || inside) << a << b;
      } else if (a["tid"] == b["tid"] && a != b) {
        EXPECT_TRUE(apart) << a << b;
      }
    }
  }
}

TEST(ChromeTrace, HoldsWhatTheMachineCounted) {
  for (const Request& request : requests()) {
    SCOPED_TRACE(request.kernel);
    const auto [json, text, part, written, all] = trace(request);
    const PhaseCounts& total = part.counted->total;

    // The moves follow each other without gaps, word by word.
    std::map<std::string, Index> moved;
    Index now = 0;
    for (const Json& event : json["traceEvents"]) {
      const std::string kind = event.value("cat", "");
      if (kind != "read" && kind != "write") {
        continue;
      }
      const Json& args = event["args"];
      const Json& block = args["block"];
      const auto words = event["dur"].get<Index>();
      EXPECT_EQ(event["ts"], now);
      EXPECT_EQ(args["words"], words);
      const Index elements = args["rows"].get<Index>() * args["cols"].get<Index>();
      EXPECT_TRUE(words == elements || words == elements * request.sum_words()) << event;
      EXPECT_EQ((block["rows"][1].get<Index>() - block["rows"][0].get<Index>()) *
                    (block["columns"][1].get<Index>() - block["columns"][0].get<Index>()),
                elements);
      EXPECT_EQ(event["name"], kind + " " + block["matrix"].get<std::string>());
      now += words;
      moved[kind] += words;
    }
    EXPECT_EQ(moved["read"], total.io.reads);
    EXPECT_EQ(moved["write"], total.io.writes);

    Index peak = 0;
    const std::vector<Json> counters = events(json, "C");
    for (const Json& counter : counters) {
      peak = std::max(peak, words_of(counter));
    }
    EXPECT_LE(peak, request.M);
    EXPECT_EQ(peak, total.peak);
    EXPECT_EQ(words_of(counters.back()), 0);
    // Viewers take the names of the series from the first counter.
    EXPECT_EQ(words_of(counters.front()), 0);
    EXPECT_EQ(keys(counters.front()["args"]), keys(counters.back()["args"]));

    std::map<std::string, IoCount> phases;
    const std::vector<Json> slices = events(json, "phase");
    expect_nested(slices);
    for (const Json& phase : slices) {
      const Json& args = phase["args"];
      EXPECT_EQ(args["reads"].get<Index>() + args["writes"].get<Index>(), phase["dur"]);
      phases[args["path"]] += IoCount{args["reads"], args["writes"]};
    }
    for (const PhaseCounts& phase : part.counted->phases) {
      IoCount inside;  // of inner phases, which are counted separately
      for (const PhaseCounts& other : part.counted->phases) {
        if (other.path.starts_with(phase.path + "/")) {
          inside += other.io;
        }
      }
      EXPECT_EQ(phases[phase.path], phase.io + inside) << phase.path;
    }

    const Json& other = json["otherData"];
    EXPECT_EQ(other["kernel"], request.kernel);
    EXPECT_EQ(other["M"], request.M);
    EXPECT_EQ(other["n"], *request.n);
    EXPECT_EQ(other["m"], *request.m);
    EXPECT_EQ(other["d"], *request.d);
    EXPECT_EQ(other["blocks"].size(), static_cast<std::size_t>(std::distance(
                                          part.plan.blocks.begin(), part.plan.blocks.end())));
    EXPECT_EQ(other["total"], (Json{{"reads", total.io.reads},
                                    {"writes", total.io.writes},
                                    {"io", total.io.io()},
                                    {"peak", total.peak}}));
    EXPECT_EQ(other["cut"], false);
    EXPECT_EQ(other["events"], json["traceEvents"].size());
    EXPECT_EQ(other["of"], other["events"]);
    EXPECT_EQ(written, other["events"]);
    EXPECT_EQ(all, written);
  }
}

TEST(ChromeTrace, IsTheSameEveryTime) {
  const Request same = requests().front();
  EXPECT_EQ(trace(same).text, trace(same).text);
}

// A trace may be cut at any event. Then it has the beginning of the whole, and says that it is cut.
TEST(ChromeTrace, IsCutAnywhere) {
  const Request small = request("backward/small", {7, 5, 3}, 20);
  const Traced whole = trace(small);
  std::set<std::string> known;
  for (const Json& event : whole.json["traceEvents"]) {
    known.insert(event.dump());
  }
  for (Index most = 1; most <= whole.all; most += 1 + most / 30) {
    SCOPED_TRACE(most);
    const Traced cut = trace(small, most);
    const Json& found = cut.json["traceEvents"];
    const Json& other = cut.json["otherData"];
    EXPECT_LE(found.size(), static_cast<std::size_t>(most));
    EXPECT_EQ(other["events"], found.size());
    EXPECT_EQ(other["of"], whole.all);
    EXPECT_EQ(other["cut"], most < whole.all);
    EXPECT_EQ(other["total"], whole.json["otherData"]["total"]);
    expect_nested(events(cut.json, "phase"));
    // Every event is an event of the whole trace, except the first counter, which names fewer
    // tiles, and phases that end early.
    Index last = 0;
    for (std::size_t k = 1; k < found.size(); ++k) {
      if (found[k].value("cat", "") != "phase") {
        EXPECT_TRUE(known.contains(found[k].dump())) << found[k];
      }
      last = std::max(last, found[k].contains("dur") ? end_of(found[k]) : 0);
    }
    for (const Json& phase : events(cut.json, "phase")) {
      EXPECT_LE(end_of(phase), last);
    }
  }
}

// A machine with phases only, names that JSON must quote, and a machine that does no work.
TEST(ChromeTrace, OfOtherMachines) {
  const TemporaryDirectory directory(TemporaryDirectory::in_memory());
  const auto traced = [&](const std::function<void(Machine&)>& code) {
    TextFile file(directory / "trace.json");
    Machine machine(10);
    ChromeTrace chrome(machine, {.kernel = "some \"code\"", .sizes = {}, .text = {}}, file);
    code(machine);
    chrome.end();
    file.finish();
    file.commit();
    return Json::parse(content_of(directory / "trace.json"));
  };
  EXPECT_EQ(traced([](Machine&) {})["otherData"]["total"]["io"], 0);
  const Json json = traced([](Machine& machine) {
    const Phase outer(machine, "a \"phase\"");
    for (int k = 0; k < 2; ++k) {
      const Phase inner(machine, "in\\ner");
      const Tile tile = machine.initialize("tile\n", 2, 3);
    }
  });
  ASSERT_EQ(events(json, "phase").size(), 3U);
  EXPECT_EQ(events(json, "phase")[2]["args"]["path"], "a \"phase\"");
  const std::vector<Json> counters = events(json, "C");
  ASSERT_EQ(counters.size(), 5U);
  EXPECT_EQ(counters[1]["args"], (Json{{"tile\n", 6}}));
}

}  // namespace
}  // namespace redblue
