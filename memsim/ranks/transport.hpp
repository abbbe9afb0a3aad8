#pragma once
// The links of one rank to the other ranks: messages of words, each counted once, in a named phase.
// Both ends name the phase and the number of words, and use the messages of a link in the same
// order. A mismatch is a TransportError, and so is a message that arrived changed.
//
//   const auto keys = transport.begin_receive("A2", neighbour, {words, count});
//   transport.send("A2", neighbour, own);
//   ...                                     // computes meanwhile
//   keys->finish();
//
// A message without a phase is not counted. Such messages bring operands from a host program, or
// results back to it. A transport belongs to one thread.

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

// Traffic of a link in a phase, without headers. A message has at most kMostWordsOfMessage words.
struct LinkCount {
  Index words = 0, messages = 0;
  LinkCount& operator+=(const LinkCount& other);
  friend bool operator==(const LinkCount&, const LinkCount&) = default;
};
inline constexpr Index kMostWordsOfMessage = Index{1} << 20;
// Returns the count for `words` words sent in one phase. No message is sent for 0 words.
LinkCount count_of(Index words);

struct Link {
  std::string phase;
  Index from, to;
  friend auto operator<=>(const Link&, const Link&) = default;
};
using Links = std::map<Link, LinkCount>;

// A message is missing or unexpected. The text is one line that names both ends.
class TransportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The header that precedes the words of a message.
struct MessageHeader {
  std::uint32_t magic, version;
  std::uint64_t run;     // the same for all ranks of one run
  std::uint64_t phase;   // hash of the phase's name
  std::uint64_t number;  // number of the message on this link, from 0
  std::uint64_t words;
  std::uint64_t checksum;  // checksum of the words
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

  // Begin a message, for finish() to wait for. Require: `words` stays valid until the message has
  // ended, and the other end is another rank. Throw, as finish() does: TransportError.
  [[nodiscard]] std::unique_ptr<Fetch> begin_send(std::string_view phase, Index to,
                                                  std::span<const float> words);
  [[nodiscard]] std::unique_ptr<Fetch> begin_receive(std::string_view phase, Index from,
                                                     std::span<float> words);
  void send(std::string_view phase, Index to, std::span<const float> words);
  void receive(std::string_view phase, Index from, std::span<float> words);

  // Advances messages in flight, for transports that need a call to do so. Call it between pieces
  // of work. Throws: TransportError.
  virtual void progress() {}

  // Returns each rank's `fact`, in the order of ranks. These are not words. Every rank must call
  // it.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& fact) = 0;
  // Ends the run on all ranks that wait for this one.
  virtual void abandon(const std::string& why) noexcept = 0;

  // Marks the following messages as messages of this run.
  void begin_run(std::uint64_t run) { run_ = run; }
  // Sets how long a rank waits without news before it fails.
  void wait_at_most(std::chrono::milliseconds patience) { patience_ = patience; }
  // Counts of the messages that this rank has begun to send or receive.
  [[nodiscard]] const Links& links() const { return links_; }

 protected:
  // Moves one message of a link: a header, and then its words. Messages keep their order, but the
  // fetches of one link may be finished in any order. get() fills `header` and `words`, and throws
  // if another number of words arrives.
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
  std::map<Index, std::uint64_t> sent_, received_;  // number of messages, by the other rank
  Links links_;
};

// Texts for errors: "rank 2 received from rank 1, message 3 (A2)", "rank 0 waits for what ranks 1
// and 3 say", and the text for a wait that timed out.
std::string message_text(std::string_view what, Index rank, Index other, std::string_view phase,
                         std::uint64_t number);
std::string gather_text(Index rank, const std::vector<Index>& silent);
std::string nothing_came(std::string_view text, std::chrono::milliseconds patience);

}  // namespace redblue
