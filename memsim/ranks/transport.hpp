#pragma once
// The links of one rank to the others: messages of words, each of which is counted once, in a named
// phase. Both ends of a message name its phase and its words, and the messages of a link have the
// same order at both ends; anything else is a TransportError, as is a message that came changed.
//
//   const auto keys = transport.begin_receive("A2", neighbour, {words, count});
//   transport.send("A2", neighbour, own);
//   ...                                     // computes meanwhile
//   keys->finish();
//
// A message without a phase is not counted: such ones bring operands from a host program and
// results to it. A transport belongs to one thread.

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/backing.hpp"
#include "memsim/words.hpp"

namespace redblue {

// What went over a link in a phase, without headers. A message has at most kMostWordsOfMessage.
struct LinkCount {
  Index words = 0, messages = 0;
  LinkCount& operator+=(const LinkCount& other);
  friend bool operator==(const LinkCount&, const LinkCount&) = default;
};
inline constexpr Index kMostWordsOfMessage = Index{1} << 20;
// Of so many words in one phase: none of no words.
LinkCount count_of(Index words);

struct Link {
  std::string phase;
  Index from, to;
  friend auto operator<=>(const Link&, const Link&) = default;
};
using Links = std::map<Link, LinkCount>;

// A message that did not come, or not as it was expected. One line that names both ends.
class TransportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What precedes the words of a message.
struct MessageHeader {
  std::uint32_t magic, version;
  std::uint64_t run;     // ranks of one run have the same
  std::uint64_t phase;   // a hash
  std::uint64_t number;  // on this link, from 0
  std::uint64_t words;
  std::uint64_t checksum;  // of the words
  friend bool operator==(const MessageHeader&, const MessageHeader&) = default;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual Index rank() const = 0;
  [[nodiscard]] virtual Index size() const = 0;

  // Begin a message. Require: `words` is valid until the message has ended, which finish() waits
  // for; another rank. Throw, as finish() does: TransportError.
  [[nodiscard]] std::unique_ptr<Fetch> begin_send(std::string_view phase, Index to,
                                                  std::span<const float> words);
  [[nodiscard]] std::unique_ptr<Fetch> begin_receive(std::string_view phase, Index from,
                                                     std::span<float> words);
  void send(std::string_view phase, Index to, std::span<const float> words);
  void receive(std::string_view phase, Index from, std::span<float> words);

  // Lets messages that are on their way come nearer, where they do not without: between pieces of
  // work. Throws: TransportError.
  virtual void progress() {}

  // What each rank says, in the order of ranks. These are no words. Every rank calls.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& fact) = 0;
  // Ends the run on all ranks, which wait for this one.
  virtual void abandon(const std::string& why) noexcept = 0;

  // Messages from now on are of this run.
  void begin_run(std::uint64_t run) { run_ = run; }
  // A rank that hears nothing for so long gives up.
  void wait_at_most(std::chrono::milliseconds patience) { patience_ = patience; }
  // Counts of what this rank has begun to send and to receive.
  [[nodiscard]] const Links& links() const { return links_; }

 protected:
  // A message of one link after the other: a header, and then its words. Fetches of one link are
  // finished in any order. get() takes what comes into `header` and `words`, and throws when there
  // are other words than these.
  virtual std::unique_ptr<Fetch> put(Index to, const MessageHeader& header,
                                     std::span<const float> words) = 0;
  virtual std::unique_ptr<Fetch> get(Index from, MessageHeader& header, std::span<float> words) = 0;
  [[nodiscard]] std::chrono::milliseconds patience() const { return patience_; }

 private:
  class Receipt;
  class Several;
  [[nodiscard]] MessageHeader next_header(std::map<Index, std::uint64_t>& numbers, Index other,
                                          std::string_view phase, std::size_t words) const;
  void count(std::string_view phase, Index from, Index to, std::size_t words);

  std::uint64_t run_ = 0;
  std::chrono::milliseconds patience_ = std::chrono::minutes(10);
  std::map<Index, std::uint64_t> sent_, received_;  // messages, by the other rank
  Links links_;
};

// "rank 2 received from rank 1, message 3 (A2)"; "rank 0 waits for what ranks 1 and 3 say"; and
// that nothing comes.
std::string message_text(std::string_view what, Index rank, Index other, std::string_view phase,
                         std::uint64_t number);
std::string gather_text(Index rank, const std::vector<Index>& silent);
std::string nothing_came(std::string_view text, std::chrono::milliseconds patience);

}  // namespace redblue
