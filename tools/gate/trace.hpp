#pragma once
// trace: the moves of a run, written down for other programs.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "memsim/machine.hpp"
#include "runtime/system/text_file.hpp"
#include "runtime/trace/followed_run.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// A file, if one is asked for, and the limit of its content.
class TraceTarget {
 public:
  // Throws: UsageError for a limit without a file; as TextFile.
  TraceTarget(const TextOption& file, const TextOption& limit, Index most);

  [[nodiscard]] bool asked() const { return text_.has_value(); }
  TextFile& text() { return *text_; }
  [[nodiscard]] Index most() const { return most_; }
  // The note to print once the file is there.
  void note_cut(Index written, Index all, const char* what, std::vector<std::string>& notes) const;
  void finish() {
    if (asked()) {
      text_->finish();
    }
  }
  void commit() {
    if (asked()) {
      text_->commit();
    }
  }

 private:
  const TextOption& limit_;
  std::optional<TextFile> text_;
  Index most_;
};

// --out and --din, and how much they may have.
class TraceOptions {
 public:
  // `of` says what the trace is of, after "a trace for Perfetto ... of".
  TraceOptions(CLI::App& app, const std::string& of);
  // The files that are asked for.
  [[nodiscard]] std::vector<Given> targets() const;

 private:
  friend class TraceFiles;
  TextOption out_, din_, events_, din_words_;
};

// The files of one run.
class TraceFiles {
 public:
  // Opens them before the work, so that one that cannot be written is known at once. Requires: the
  // options live as long. Throws: UsageError without a file, or with one file for both; as
  // TextFile.
  explicit TraceFiles(const TraceOptions& asked);
  // Calls work(), of a machine that has moved nothing yet. Throws: as work(), and as TextFile.
  void follow(Machine& machine, const FollowedRun& run, const std::function<void()>& work);
  // Puts the files in their places, and says what is in them.
  void commit();

 private:
  static const TraceOptions& checked(const TraceOptions& asked);

  TraceTarget json_, words_;
  std::vector<std::string> notes_;
};

}  // namespace redblue
