#pragma once
// The trace command: writes the moves of a run for other programs.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "memsim/machine.hpp"
#include "runtime/system/text_file.hpp"
#include "runtime/trace/followed_run.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// An optional output file and the limit on its contents.
class TraceTarget {
 public:
  // `most` is the default limit. Throws: UsageError for a limit without a file; as TextFile.
  TraceTarget(const TextOption& file, const TextOption& limit, Index most);

  [[nodiscard]] bool asked() const { return text_.has_value(); }
  TextFile& text() { return *text_; }
  [[nodiscard]] Index most() const { return most_; }
  // Adds a note if the file is cut: it has `written` of `all` events or words.
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

// Options of the outputs --out and --din, and of their limits.
class TraceOptions {
 public:
  // `of` describes the run in the help, after "write a trace of".
  TraceOptions(CLI::App& app, const std::string& of);
  // Returns the requested files.
  [[nodiscard]] std::vector<Given> targets() const;

 private:
  friend class TraceFiles;
  TextOption out_, din_, events_, din_words_;
};

// The trace files of one run.
class TraceFiles {
 public:
  // Opens the files before the work, so that an unwritable file fails early. Requires: the options
  // outlive this object. Throws: UsageError without a file, or if both outputs name one file; as
  // TextFile.
  explicit TraceFiles(const TraceOptions& asked);
  // Calls work() and writes the moves of `machine`. Requires: the machine has moved nothing yet.
  // Throws: as work() and TextFile.
  void follow(Machine& machine, const FollowedRun& run, const std::function<void()>& work);
  // Moves the files into place and prints the notes.
  void commit();

 private:
  static const TraceOptions& checked(const TraceOptions& asked);

  TraceTarget json_, words_;
  std::vector<std::string> notes_;
};

}  // namespace redblue
