#pragma once
// Messages between the homes of ranks, which are on their way while a rank computes.
//
// Of a home in memory they are its own words, all begun at once. Those of a home on disk pass
// through buffers, of a few at a time: what is sent is read when it begins, and what has come is
// written when it is over. A message has the same place at both ends: its order, its distance in
// ranks, and its number among such. A rank has its messages in rounds, one for each place at which
// it receives one, or sends one, or both, in the order of places. It begins those of two rounds,
// and one more when the first is over, and waits for its messages in their order alone: what is
// sent is over when the other rank has waited for it. At the first place that is not over
// everywhere its ranks have all before it over: its messages are begun and waited for at both ends,
// and no rank waits for ever.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "memsim/ranks/transport.hpp"
#include "runtime/ranks/rank_home.hpp"

namespace redblue {

// Rows of a matrix of a home, by their numbers among those that lie there, to another rank or from
// it. Both ends name the same phase and order; the messages of a link come in the order of `order`,
// those of one in the order of the list.
struct HomeMessage {
  std::string phase;
  Index from, to;
  RankHome* home;
  std::string matrix;
  Range rows;
  Index order = 0;
  Index group = 0;  // of keys, of what comes
};

class HomeMessages {
 public:
  // The most words in buffers at a time, of messages of so many.
  static constexpr Index most_buffered(Index words = kMostWordsOfMessage) { return 4 * words; }

  // Begins them: of homes that are all in memory, or all on disk, and do not move until they are
  // over. A message has `most` words at most. Throw (all): TransportError; of homes on disk as
  // their stores.
  HomeMessages(Transport& transport, std::vector<HomeMessage> all,
               Index most = kMostWordsOfMessage);
  HomeMessages(const HomeMessages&) = delete;
  HomeMessages& operator=(const HomeMessages&) = delete;

  // Between pieces of work.
  void progress();
  // Waits for what has come to groups of keys, up to one of them; for all.
  void finish_up_to(Index group);
  void finish();
  // The most words in buffers so far.
  [[nodiscard]] Index buffered() const { return most_buffered_; }

 private:
  struct Piece {
    const HomeMessage* of;
    Range words;  // by their numbers in the matrix
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
  std::size_t over_ = 0, begun_ = 0;  // the first pieces, so many
  Index buffered_ = 0, most_buffered_ = 0;
};

}  // namespace redblue
