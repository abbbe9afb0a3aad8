#include "tools/gate/merge.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/gate/merge.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/accept.hpp"

namespace redblue {

MergeOptions::MergeOptions(CLI::App& app, const std::string& parts_help,
                           const std::string& out_help, const std::string& out_type)
    : parts(app, "parts", parts_help),
      out(app, "-o,--out", out_help, out_type),
      partial(app, "--partial", "accept missing points") {}

void say_missing(const std::string& missing, bool any_there, const MergeOptions& options) {
  if (!missing.empty() && !options.partial.get()) {
    throw std::runtime_error(missing + " (--partial merges without them)");
  }
  if (!any_there) {
    throw std::runtime_error("the parts have no points: there is nothing to merge");
  }
  if (!missing.empty()) {
    say(missing);
  }
}

int merge_recordings(const MergeOptions& options) {
  const std::vector<std::string> files = options.parts.get();
  if (std::ranges::count_if(files, is_standard_input) > 1) {
    throw UsageError("-: standard input is one recording: name files for the others");
  }
  const auto out = options.out.get();
  for (const std::string& file : files) {
    if (out && !is_standard_input(file) && place_of(out->text) == place_of(file)) {
      throw UsageError(fmt::format("{} '{}': this file is one of the parts", out->from, out->text));
    }
  }
  if (out) {
    refuse_over_suite(*out);
  }
  std::vector<NamedRecording> parts;
  for (const std::string& file : files) {
    const std::string name = input_name(file);
    parts.push_back({name, parse_recording(read_text(file), name)});
  }
  MergedRecording merged = merge(parts);
  say_missing(merged.missing, !merged.recording.points.empty(), options);
  if (out) {
    const std::string lost = keep_accepted(out->text, merged.recording);
    write_whole(out->text, to_json(merged.recording));
    if (!lost.empty()) {
      say(lost);
    }
  } else {
    print(to_json(merged.recording));
  }
  say(fmt::format("{} of {}", counted(std::ssize(merged.recording.points), "point"),
                  counted(std::ssize(parts), "part")));
  return 0;
}

}  // namespace redblue
