#include "runtime/run/rank_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "memsim/ranks/checksum.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/counts_json.hpp"
#include "runtime/text/parse_json.hpp"

namespace redblue {
namespace {

constexpr std::string_view kRankFirstWords = "redblue checkpoint of a rank 1 ";

template <class Of>
std::span<const std::byte> as_bytes_of(const Of& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::uint64_t checksum_of_body(std::string_view text) {
  return checksum_of(std::as_bytes(std::span(text)));
}

Json json_of_links(const Links& links) {
  Json json = Json::array();
  for (const auto& [link, count] : links) {
    json.push_back(Json::array({link.phase, link.from, link.to, count.words, count.messages}));
  }
  return json;
}

Links links_of_json(const Json& json) {
  Links links;
  for (const Json& link : json) {
    links[{link.at(0).get<std::string>(), link.at(1).get<Index>(), link.at(2).get<Index>()}] = {
        link.at(3).get<Index>(), link.at(4).get<Index>()};
  }
  return links;
}

std::span<float> rows_of(RankHome& home, const std::string& matrix, Range rows) {
  const Index cols = home.about(matrix).cols;
  return home.in_memory(matrix, {rows.begin * cols, rows.end * cols});
}

std::filesystem::path checkpoint_path(const std::filesystem::path& folder,
                                      const std::string& name) {
  return folder / (name + ".checkpoint");
}

// Whether all bytes came.
bool read_at(const Descriptor& file, Index offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::pread(file.get(), to.data(), to.size(), offset);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    to = to.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
  return true;
}

}  // namespace

// Rows of a matrix, by its number among the names of the home; their words follow.
struct RankCheckpoints::Record {
  Index matrix, begin, end;
  std::uint64_t words;  // their checksum

  [[nodiscard]] std::uint64_t sum_after(std::uint64_t sum) const {
    const std::array<std::uint64_t, 5> all = {sum, static_cast<std::uint64_t>(matrix),
                                              static_cast<std::uint64_t>(begin),
                                              static_cast<std::uint64_t>(end), words};
    return checksum_of(std::as_bytes(std::span(all)));
  }
};

std::optional<std::filesystem::path> RankCheckpoints::left_in(const std::filesystem::path& folder) {
  for (const bool forward : {false, true}) {
    if (std::filesystem::path path = checkpoint_path(folder, name_of(forward));
        std::filesystem::exists(path)) {
      return path;
    }
  }
  return std::nullopt;
}

RankCheckpoints::RankCheckpoints(const std::filesystem::path& folder, const std::string& name)
    : path_(checkpoint_path(folder, name)), words_path_(folder / (name + ".words")) {
  std::filesystem::create_directories(folder);
  words_ = Descriptor(::open(words_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (words_.get() < 0) {
    fail(errno, "open", words_path_);
  }
  // Ranks of a job that was killed take a moment to end.
  constexpr int kTries = 100;
  for (int tries = 0; ::flock(words_.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == kTries) {
      throw std::runtime_error(words_path_.string() + ": another process works with it");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void RankCheckpoints::refuse(const std::filesystem::path& path) const {
  throw InputError(fmt::format("{}: no checkpoint, or a damaged one: remove {}, and begin anew",
                               path.string(), path_.parent_path().string()));
}

RankProgress RankCheckpoints::resume(RankHome& home, const Facts& facts) {
  facts_ = facts;
  if (!found()) {
    return {};
  }
  const std::string content = read_text(path_.string(), kNoLimit);
  const std::string_view body =
      std::string_view(content).substr(std::min(content.find('\n'), content.size() - 1) + 1);
  if (content.substr(0, content.size() - body.size()) !=
      fmt::format("{}{:016x}\n", kRankFirstWords, checksum_of_body(body))) {
    refuse(path_);
  }
  const Json json = parse_json(body, path_.string());
  RankProgress progress;
  try {
    if (const auto run = json.at("run").get<std::string>(); run != facts.run) {
      throw RequestError(fmt::format("{} is of {}, and not of {}: ask for the same, or remove {}",
                                     path_.string(), run, facts.run, path_.parent_path().string()));
    }
    for (const auto& [name, sum] : facts.operands) {
      if (json.at("operands").at(name).get<std::uint64_t>() != sum) {
        throw RequestError(fmt::format("{} is of another {}: bring the same, or remove {}",
                                       path_.string(), name, path_.parent_path().string()));
      }
    }
    progress.exchanges = json.at("exchanges").get<Index>();
    for (const Json& links : json.at("links")) {
      progress.links.push_back(links_of_json(links));
    }
    progress.stage = json.at("stage").get<Index>();
    progress.units = json.at("units").get<Index>();
    progress.done = json.at("done").get<Index>();
    progress.counted = parse_run_counts(json.at("counted"));
    if (progress.exchanges != std::ssize(progress.links) || progress.stage < 0 ||
        progress.units < 0 || progress.done < 0 || !progress.counted.largest ||
        !progress.counted.span || !progress.counted.seconds ||
        progress.counted.seconds->phases.size() != progress.counted.phases.size()) {
      refuse(path_);
    }
    read_words(home, json.at("words").get<Index>(), json.at("sum").get<std::uint64_t>());
  } catch (const JsonMismatch&) {  // of another build
    refuse(path_);
  }
  return progress;
}

void RankCheckpoints::read_words(RankHome& home, Index bytes, std::uint64_t sum) {
  const std::vector<std::string> names = home.names();
  while (length_ < bytes) {
    Record record{};
    if (!read_at(words_, length_, std::as_writable_bytes(std::span(&record, 1))) ||
        record.matrix < 0 || record.matrix >= std::ssize(names) || record.begin < 0 ||
        record.end < record.begin ||
        record.end > home.lying_rows(names[static_cast<std::size_t>(record.matrix)])) {
      refuse(words_path_);
    }
    const std::span<float> rows =
        rows_of(home, names[static_cast<std::size_t>(record.matrix)], {record.begin, record.end});
    length_ += static_cast<Index>(sizeof(Record));
    if (!read_at(words_, length_, std::as_writable_bytes(rows)) ||
        checksum_of(rows) != record.words) {
      refuse(words_path_);
    }
    length_ += static_cast<Index>(rows.size_bytes());
    sum_ = record.sum_after(sum_);
  }
  if (length_ != bytes || sum_ != sum) {
    refuse(words_path_);
  }
}

void RankCheckpoints::keep(const RankProgress& progress, RankHome& home) {
  const std::vector<std::string> names = home.names();
  const auto append = [&](std::span<const std::byte> part) {
    bytes_ += static_cast<Index>(part.size());
    while (!part.empty()) {
      const ssize_t put = ::pwrite(words_.get(), part.data(), part.size(), length_);
      if (put < 0 && errno != EINTR) {
        fail(errno, "write", words_path_);
      }
      part = part.subspan(static_cast<std::size_t>(std::max<ssize_t>(put, 0)));
      length_ += std::max<ssize_t>(put, 0);
    }
  };
  for (const auto& [name, changed] : home.take_changes()) {
    for (const Range rows : changed) {
      const std::span<const float> words = rows_of(home, name, rows);
      const Record record{.matrix = std::ranges::lower_bound(names, name) - names.begin(),
                          .begin = rows.begin,
                          .end = rows.end,
                          .words = checksum_of(words)};
      append(as_bytes_of(record));
      append(std::as_bytes(words));
      sum_ = record.sum_after(sum_);
    }
  }
  if (::fdatasync(words_.get()) != 0) {
    fail(errno, "force to disk", words_path_);
  }
  Json links = Json::array();
  for (const Links& until : progress.links) {
    links.push_back(json_of_links(until));
  }
  const Json json = {{"run", facts_.run},
                     {"operands", facts_.operands},
                     {"exchanges", progress.exchanges},
                     {"links", std::move(links)},
                     {"stage", progress.stage},
                     {"units", progress.units},
                     {"done", progress.done},
                     {"counted", counts_json(progress.counted)},
                     {"words", length_},
                     {"sum", sum_}};
  const std::string body = json.dump() + "\n";
  const std::string content =
      fmt::format("{}{:016x}\n{}", kRankFirstWords, checksum_of_body(body), body);
  WholeFile file(path_);
  file.append(content);
  file.finish();
  file.commit(WholeFile::Then::go_on);
  force_name(path_);
  bytes_ += static_cast<Index>(content.size());
  ++written_;
}

void RankCheckpoints::remove() {
  WholeFile::remove_left(path_.parent_path());
  std::filesystem::remove(path_);
  std::filesystem::remove(words_path_);
  std::error_code not_empty;
  std::filesystem::remove(path_.parent_path(), not_empty);
}

}  // namespace redblue
