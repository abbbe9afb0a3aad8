#include "runtime/ranks/home_messages.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace redblue {

HomeMessages::HomeMessages(Transport& transport, std::vector<HomeMessage> all, Index most)
    : transport_(transport),
      all_(std::move(all)),
      buffers_(!all_.empty() && !all_.front().home->in_memory()) {
  std::map<std::tuple<Index, Index, bool>, Index> numbers;
  for (const HomeMessage& message : all_) {
    const Index distance = (message.to - message.from + transport.size()) % transport.size();
    const Index cols = message.home->about(message.matrix).cols;
    for (const Range piece : blocks(message.rows.size() * cols, most)) {
      const Index first = message.rows.begin * cols;
      Piece its{.of = &message, .words = {first + piece.begin, first + piece.end}};
      Index& number = numbers[{message.order, distance, comes(its)}];
      its.place = {message.order, distance, number++};
      pieces_.push_back(std::move(its));
    }
  }
  std::ranges::stable_sort(pieces_, {},
                           [this](const Piece& its) { return std::pair(its.place, !comes(its)); });
  for (std::size_t k = 1; k < pieces_.size(); ++k) {
    pieces_[k].round = pieces_[k - 1].round + (pieces_[k].place == pieces_[k - 1].place ? 0 : 1);
  }
  begin_some();
}

void HomeMessages::begin_some() {
  constexpr Index kRounds = 2;
  while (begun_ < pieces_.size() &&
         (!buffers_ || pieces_[begun_].round < pieces_[over_].round + kRounds)) {
    begin(pieces_[begun_++]);
  }
}

void HomeMessages::begin(Piece& piece) {
  const HomeMessage& of = *piece.of;
  std::span<float> words;
  if (buffers_) {
    piece.buffer.resize(static_cast<std::size_t>(piece.words.size()));
    buffered_ += piece.words.size();
    most_buffered_ = std::max(most_buffered_, buffered_);
    words = piece.buffer;
  } else {
    words = of.home->in_memory(of.matrix, piece.words);
  }
  if (comes(piece)) {
    piece.message = transport_.begin_receive(of.phase, of.from, words);
    return;
  }
  if (buffers_) {
    of.home->begin(Purpose::links);
    of.home->get(of.matrix, piece.words.begin, words);
    of.home->begin(Purpose::kernel);
  }
  piece.message = transport_.begin_send(of.phase, of.to, words);
}

void HomeMessages::end(Piece& piece) {
  piece.message->finish();
  piece.message.reset();
  piece.over = true;
  if (buffers_) {
    RankHome& home = *piece.of->home;
    if (comes(piece)) {
      home.begin(Purpose::links);
      home.put(piece.of->matrix, piece.words.begin, piece.buffer);
      home.begin(Purpose::kernel);
    }
    buffered_ -= piece.words.size();
    std::vector<float>().swap(piece.buffer);  // frees its memory
  }
  while (over_ < pieces_.size() && pieces_[over_].over) {
    ++over_;
  }
  begin_some();
}

void HomeMessages::progress() {
  transport_.progress();
  for (std::size_t k = over_; buffers_ && k < begun_; ++k) {
    if (!pieces_[k].over && pieces_[k].message->is_over()) {
      end(pieces_[k]);
    }
  }
}

void HomeMessages::finish_up_to(Index group) {
  for (std::size_t k = over_; k < pieces_.size(); ++k) {
    if (!comes(pieces_[k]) || pieces_[k].of->group > group) {
      continue;
    }
    while (!pieces_[k].over) {
      end(pieces_[buffers_ ? over_ : k]);
    }
  }
}

void HomeMessages::finish() {
  while (over_ < pieces_.size()) {
    end(pieces_[over_]);
  }
}

}  // namespace redblue
