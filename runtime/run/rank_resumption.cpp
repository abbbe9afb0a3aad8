#include "runtime/run/rank_resumption.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "memsim/ranks/checksum.hpp"
#include "runtime/system/array_reader.hpp"
#include "runtime/system/system_call.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {

std::filesystem::path folder_of_rank(const Request& request, Index rank) {
  return request.store->directory / fmt::format("rank-{}", rank);
}

std::filesystem::path checkpoint_of_rank(const Request& request, Index rank, bool makes_forward) {
  return folder_of_rank(request, rank) /
         (makes_forward ? "forward.checkpoint" : "redblue.checkpoint");
}

Links links_since(const Links& before, const Links& now) {
  Links since = now;
  for (const auto& [link, count] : before) {
    LinkCount& its = since.at(link);
    its.words -= count.words;
    its.messages -= count.messages;
    if (its == LinkCount()) {
      since.erase(link);
    }
  }
  return since;
}

void add_links(const Links& more, Links& links) {
  for (const auto& [link, count] : more) {
    links[link] += count;
  }
}

// A file of the rows that steps changed in a rank's home. Each step appends its rows. If the
// process is killed, the part of the file that the last checkpoint covers stays valid. Later bytes
// are overwritten.
class RankLog {
 public:
  // Creates the file and its folder if they are missing. Waits if another process that is ending
  // still has the file.
  explicit RankLog(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_.parent_path());
    file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (file_.get() < 0) {
      fail(errno, "open", path_);
    }
    // Ranks of a job that was killed take a moment to end.
    constexpr int kTries = 100;
    for (int tries = 0; ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
      if (tries == kTries) {
        throw std::runtime_error(path_.string() + ": another process works with it");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  // The length and checksum of the file, for a checkpoint.
  [[nodiscard]] const Checkpoint::Log& log() const { return log_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Copies the rows of the file to the home. Returns false if the file does not match `log`.
  [[nodiscard]] bool restore(RankHome& home, const Checkpoint::Log& log) {
    const InputBytes file(path_, "a log of rows");
    const auto read = [&](std::span<std::byte> to) {
      const std::size_t got = file.read(to, log_.bytes);
      log_.bytes += static_cast<Index>(got);
      return got == to.size();
    };
    const std::vector<std::string> names = home.names();
    while (log_.bytes < log.bytes) {
      Record record{};
      if (!read(std::as_writable_bytes(std::span(&record, 1))) || record.matrix < 0 ||
          record.matrix >= std::ssize(names) || record.begin < 0 || record.end < record.begin) {
        return false;
      }
      const std::string& name = names[static_cast<std::size_t>(record.matrix)];
      if (record.end > home.lying_rows(name)) {
        return false;
      }
      const std::span<float> words = rows_of(home, name, {record.begin, record.end});
      if (!read(std::as_writable_bytes(words))) {
        return false;
      }
      log_.sum = record.sum_after(log_.sum, words);
    }
    return log_ == log;
  }

  // Appends the changed rows of the home, and flushes them to disk.
  void append(RankHome& home) {
    const std::vector<std::string> names = home.names();
    for (const auto& [name, changed] : home.take_changes()) {
      for (const Range rows : changed) {
        const std::span<const float> words = rows_of(home, name, rows);
        const Record record{.matrix = std::ranges::lower_bound(names, name) - names.begin(),
                            .begin = rows.begin,
                            .end = rows.end};
        append(std::as_bytes(std::span(&record, 1)));
        append(std::as_bytes(words));
        log_.sum = record.sum_after(log_.sum, words);
      }
    }
    if (::fdatasync(file_.get()) != 0) {
      fail(errno, "force to disk", path_);
    }
  }

 private:
  // The header of some rows: the number of their matrix among the home's names, and the range. The
  // words follow it in the file.
  struct Record {
    Index matrix, begin, end;

    // Returns the checksum of the log after this record.
    [[nodiscard]] std::uint64_t sum_after(std::uint64_t sum, std::span<const float> words) const {
      const std::array all = {sum, static_cast<std::uint64_t>(matrix),
                              static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end),
                              checksum_of(words)};
      return checksum_of(std::as_bytes(std::span(all)));
    }
  };

  static std::span<float> rows_of(RankHome& home, const std::string& matrix, Range rows) {
    const Index cols = home.about(matrix).cols;
    return home.in_memory(matrix, {rows.begin * cols, rows.end * cols});
  }

  void append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t put =
          retry([&] { return ::pwrite(file_.get(), bytes.data(), bytes.size(), log_.bytes); });
      if (put < 0) {
        fail(errno, "write", path_);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      log_.bytes += put;
    }
  }

  std::filesystem::path path_;
  Descriptor file_;
  Checkpoint::Log log_;
};

RankResumption::RankResumption(const Request& request, bool makes_forward,
                               const std::vector<std::string>& facts, RankHome& home,
                               Transport& transport, bool dealt)
    : request_(request),
      home_(&home),
      transport_(&transport),
      dealt_(dealt),
      log_(std::make_unique<RankLog>(checkpoint_of_rank(request, transport.rank(), makes_forward)
                                         .replace_extension(".words"))),
      resumption_(request, checkpoint_of_rank(request, transport.rank(), makes_forward)),
      before_(resumption_.state.units),
      at_start_(transport.links()) {
  for (const std::string& fact : facts) {
    resumption_.note(fact);
  }
  if (!log_->restore(home, resumption_.state.log)) {
    refuse_damaged(log_->path(), resumption_.path());
  }
  home.note_changes();
  const Index own = std::ssize(resumption_.state.links);
  of_all_ = own;
  for (const std::string& of_rank : transport.gather(std::to_string(own))) {
    of_all_ = std::min<Index>(of_all_, std::stoll(of_rank));
  }
}

RankResumption::~RankResumption() = default;

RankSteps RankResumption::steps() {
  const Index dealings = dealt_ ? 1 : 0;
  RankSteps steps{.exchanges = std::max<Index>(of_all_ - dealings, 0), .units = before_};
  if (before_ > 0) {
    steps.before = resumption_.state.counted;
  }
  steps.exchanged = [this, dealings](Index stages) { exchanged(stages + dealings); };
  steps.worked = [this](Index units, const RunCounts& counts) { worked(units, counts); };
  return steps;
}

Links RankResumption::links_before() const {
  return of_all_ == 0 ? Links() : resumption_.state.links[static_cast<std::size_t>(of_all_ - 1)];
}

// If this exchange repeats an earlier one, its rows are the same as before and are not logged
// again.
void RankResumption::exchanged(Index exchanges) {
  if (exchanges <= std::ssize(resumption_.state.links)) {
    home_->take_changes();
    return;
  }
  Links links = links_before();
  add_links(links_since(at_start_, transport_->links()), links);
  resumption_.state.links.push_back(std::move(links));
  keep();
}

void RankResumption::worked(Index units, const RunCounts& counts) {
  resumption_.state.units = units;
  resumption_.state.counted = counts;
  keep();
}

void RankResumption::keep() {
  if (request_.store->options.before_each) {
    request_.store->options.before_each();
  }
  const Index before = log_->log().bytes;
  log_->append(*home_);
  bytes_ += log_->log().bytes - before;
  resumption_.state.log = log_->log();
  resumption_.write();
}

RankResumption::Summary RankResumption::summary() const {
  return {.checkpoints = resumption_.written(),
          .bytes = resumption_.bytes() + bytes_,
          .resumed = resumption_.resumes() ? 1 : 0,
          .units = before_};
}

void RankResumption::remove() {
  const std::filesystem::path folder = log_->path().parent_path();
  WholeFile::remove_left(folder);
  resumption_.remove();
  std::filesystem::remove(log_->path());
  std::error_code not_empty;
  std::filesystem::remove(folder, not_empty);
}

}  // namespace redblue
