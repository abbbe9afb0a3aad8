#pragma once
// Exchanges messages between the homes of ranks while the ranks compute.
//
// With homes in memory, messages use the words of the homes directly, and all begin at once. With
// homes on disk, messages use a few buffers. A sent message is read from disk when it begins, and a
// received one is written to disk when it ends.
//
// No rank waits forever. A message has the same place at both ends: its order, its distance in
// ranks, and its number among messages with the same order and distance. A rank has a round for
// each place at which it sends or receives a message, in the order of places. It begins the
// messages of two rounds at first, and of another round whenever the earliest round has ended. It
// waits for messages only in this order. A sent message ends when its receiver has waited for it.
//
// Consider the first place with a message that has not ended. Its ranks have ended all earlier
// messages, so both ends have begun this message and wait for it.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/rank_home.hpp"

namespace redblue {

// A message to or from another rank: rows of a matrix in a home, numbered among the rows stored
// there. Both ends name the same phase and order. The messages of a link are sorted by `order`, and
// messages of the same order are in the order of the list.
struct HomeMessage {
  std::string phase;
  Index from, to;
  RankHome* home;
  std::string matrix;
  Range rows;
  Index order = 0;
  Index group = 0;  // of a received message: the key group that needs it
};

class HomeMessages {
 public:
  // Returns the maximum number of buffered words, for messages of at most `words` words.
  static constexpr Index most_buffered(Index words = kMostWordsOfMessage) { return 4 * words; }

  // Begins the messages. Requires: all homes are in memory, or all are on disk, and none moves in
  // memory until all messages have ended. A message has at most `most` words. All functions throw
  // TransportError, and for homes on disk the errors of their stores.
  HomeMessages(Transport& transport, std::vector<HomeMessage> all,
               Index most = kMostWordsOfMessage);
  HomeMessages(const HomeMessages&) = delete;
  HomeMessages& operator=(const HomeMessages&) = delete;

  // Advances the messages. Call it between pieces of work.
  void progress();
  // finish_up_to() waits for messages received for key groups up to `group`. finish() waits for
  // all.
  void finish_up_to(Index group);
  void finish();
  // Returns the peak of buffered words so far.
  [[nodiscard]] Index buffered() const { return most_buffered_; }

 private:
  struct Piece {
    const HomeMessage* of;
    Range words;  // positions in the stored matrix
    std::array<Index, 3> place = {};
    Index round = 0;
    std::vector<float> buffer = {};
    std::unique_ptr<Fetch> message = nullptr;
    bool over = false;
  };
  [[nodiscard]] bool comes(const Piece& piece) const { return piece.of->to == transport_.rank(); }
  void begin_some();
  void begin(Piece& piece);
  void end(Piece& piece);

  Transport& transport_;
  const std::vector<HomeMessage> all_;
  bool buffers_;
  std::vector<Piece> pieces_;
  std::size_t over_ = 0, begun_ = 0;  // numbers of leading pieces
  Index buffered_ = 0, most_buffered_ = 0;
};

}  // namespace redblue
