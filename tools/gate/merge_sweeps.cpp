// The merge command: joins parts of a sweep or of a baseline. The result equals the output of one
// machine.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "runtime/sweep/kept_points.hpp"
#include "runtime/system/journal.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/unfinished_files.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/merge.hpp"
#include "tools/gate/swept.hpp"

namespace redblue {
namespace {

// Reads the complete lines only: another process may still append to the journal.
SweptPart read_part(const std::string& directory, const std::string& program) {
  const std::filesystem::path file = std::filesystem::path(directory) / kPointsFile;
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error(
        fmt::format("there is no {}: `{} sweep SUITE --part i/N -o {}` makes it", file.string(),
                    program, directory));
  }
  return {directory, parse_kept(whole_lines(read_text(file.string())), file.string())};
}

std::string to_journal(const MergedSweep& merged) {
  std::string text = to_line(merged.head);
  for (const Swept& swept : merged.sweep.points) {
    text += to_line(swept);
  }
  return text;
}

// Writes all files or none. A directory made for them is removed after a failure.
void write_new(const std::filesystem::path& directory,
               const std::vector<std::pair<const char*, std::string>>& texts) {
  const bool is_new = [&] {
    UnfinishedFiles unfinished;
    const bool made = std::filesystem::create_directories(directory);
    if (made) {
      unfinished.add(directory, UnfinishedFiles::Kind::folder_if_empty);
    }
    return made;
  }();
  try {
    std::vector<std::unique_ptr<WholeFile>> files;
    for (const auto& [name, text] : texts) {
      files.push_back(std::make_unique<WholeFile>(directory / name));
      files.back()->append(text);
      files.back()->finish();
    }
    for (const auto& file : files) {
      file->commit();
    }
  } catch (...) {
    if (std::error_code ignored; is_new) {
      std::filesystem::remove(directory, ignored);
    }
    throw;
  }
}

int merge_sweeps(const MergeOptions& options, const std::string& program) {
  const auto out = options.out.get();
  if (!out) {
    throw UsageError("--out is missing: the directory that the merged sweep goes to");
  }
  if (out->text == "-") {
    throw UsageError(out->from + " -: a sweep is a directory, and no standard output");
  }
  const std::filesystem::path target = out->text;
  for (const char* name : {kPointsFile, kTableFile, kDocumentFile}) {
    if (std::filesystem::exists(target / name)) {
      throw std::runtime_error(
          fmt::format("{} holds a sweep: take another directory, or remove this one", out->text));
    }
  }
  std::vector<SweptPart> parts;
  for (const std::string& directory : options.parts.get()) {
    parts.push_back(read_part(directory, program));
  }
  const MergedSweep merged = merge(std::move(parts));
  say_missing(merged.missing, !merged.sweep.points.empty(), options);
  write_new(target, {{kPointsFile, to_journal(merged)},
                     {kTableFile, to_csv(merged.sweep)},
                     {kDocumentFile, to_json(merged.sweep, merged.head.context)}});
  say_swept(merged.sweep, target);
  return 0;
}

}  // namespace

Action add_merge(CLI::App& app) {
  const auto options = std::make_shared<MergeOptions>(
      app, "directories of `sweep --part`, or files of `record --part`",
      "directory of the merged sweep, or file of the baseline (default: standard output)",
      "DIR|FILE");
  return [options, program = program_name(app)] {
    const std::vector<std::string> parts = options->parts.get();
    const auto is_directory = [](const std::string& part) {
      return std::filesystem::is_directory(part);
    };
    const auto directory = std::ranges::find_if(parts, is_directory);
    if (directory == parts.end()) {
      return merge_recordings(*options);
    }
    const auto file = std::ranges::find_if(
        parts, [](const std::string& part) { return std::filesystem::is_regular_file(part); });
    if (file != parts.end()) {
      throw UsageError(
          fmt::format("{} is the directory of a sweep, and {} a file: merge sweeps, or recordings",
                      *directory, *file));
    }
    return merge_sweeps(*options, program);
  };
}

}  // namespace redblue
