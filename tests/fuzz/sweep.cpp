// Results of sweeps. The input is read as sweep.json, as one line of a sweep's journal, and as a
// whole journal, which is merged as a part.

#include "runtime/sweep/sweep.hpp"

#include "runtime/observe/topology.hpp"
#include "runtime/subjects/kernel_sweep.hpp"
#include "runtime/sweep/kept_points.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/journal.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void sweep(std::string_view input) {
  const auto read =
      read_or_refused<InputError>("a.json", [&] { return parse_sweep(input, "a.json"); });
  if (read) {
    const Sweep again = parse_sweep(to_json(*read, sweep_context(Topology())), "again.json");
    demand(again.how == read->how && again.suite == read->suite && again.points == read->points,
           "what is written is read as another sweep");
    demand(!to_csv(*read).empty() || read->points.empty(), "a sweep without rows");
  }
  const auto line =
      read_or_refused<InputError>("line 1", [&] { return parse_line(input, "a.part, line 1"); });
  if (line) {
    demand(parse_line(to_line(*line), "again") == *line,
           "what is written is read as another point");
  }
  const auto kept = read_or_refused<InputError>(
      "a.jsonl", [&] { return parse_kept(whole_lines(input), "a.jsonl"); });
  if (kept) {
    const auto merged = read_or_refused<InputError>("part", [&] {
      return merge({{"part", *kept}});
    });
    demand(!merged || merge({{"again", {merged->head, merged->sweep.points}}}).sweep.points ==
                          merged->sweep.points,
           "what is merged is merged as other points");
  }
}

}  // namespace redblue::fuzz
