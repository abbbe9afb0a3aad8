#include "memsim/ranks/transport.hpp"

#include <algorithm>
#include <utility>

#include "memsim/errors.hpp"
#include "memsim/range.hpp"
#include "memsim/ranks/checksum.hpp"

namespace redblue {
namespace {

constexpr std::uint32_t kMagic = 0x52425458;  // "RBTX"
constexpr std::uint32_t kVersion = 1;

}  // namespace

LinkCount& LinkCount::operator+=(const LinkCount& other) {
  words += other.words;
  messages += other.messages;
  return *this;
}

LinkCount count_of(Index words) {
  return {words, ceil_div(words, kMostWordsOfMessage)};
}

std::string message_text(std::string_view what, Index rank, Index other, std::string_view phase,
                         std::uint64_t number) {
  std::string text = "rank " + std::to_string(rank);
  text.append(" ").append(what).append(" rank ").append(std::to_string(other));
  text.append(", message ").append(std::to_string(number));
  return phase.empty() ? text : text.append(" (").append(phase).append(")");
}

std::string gather_text(Index rank, const std::vector<Index>& silent) {
  std::string text = "rank " + std::to_string(rank) + " waits for what rank";
  text += silent.size() == 1 ? " " : "s ";
  for (std::size_t k = 0; k < silent.size(); ++k) {
    text += k == 0 ? "" : k + 1 < silent.size() ? ", " : " and ";
    text += std::to_string(silent[k]);
  }
  return text + (silent.size() == 1 ? " says" : " say");
}

std::string nothing_came(std::string_view text, std::chrono::milliseconds patience) {
  return std::string(text) + ": nothing came in " + std::to_string(patience.count()) + " ms";
}

// A message that is checked after its arrival.
class Transport::Receipt final : public Fetch {
 public:
  Receipt(Transport& transport, Index from, std::string_view phase, const MessageHeader& expected,
          std::span<float> words)
      : text_(message_text("received from", transport.rank(), from, phase, expected.number)),
        expected_(expected),
        words_(words),
        under_way_(transport.get(from, header_, words)) {}
  void wait() noexcept override { under_way_->wait(); }
  bool is_over() override { return under_way_->is_over(); }
  void finish() override {
    under_way_->finish();
    const auto refuse = [&](const std::string& why) { throw TransportError(text_ + ": " + why); };
    if (header_.magic != expected_.magic || header_.version != expected_.version) {
      refuse("no message of this version of redblue");
    }
    if (header_.run != expected_.run) {
      refuse("a message of another run");
    }
    if (header_.number != expected_.number) {
      refuse("message " + std::to_string(header_.number) + " came in its place");
    }
    if (header_.phase != expected_.phase || header_.words != expected_.words) {
      refuse(std::to_string(header_.words) + " words of " +
             (header_.phase == expected_.phase ? "it" : "another phase") + ", expected " +
             std::to_string(expected_.words));
    }
    if (header_.checksum != checksum_of(words_)) {
      refuse("its words changed on the way");
    }
  }

 private:
  std::string text_;
  MessageHeader header_{}, expected_;
  std::span<float> words_;
  std::unique_ptr<Fetch> under_way_;
};

// All messages of one call.
class Transport::Several final : public Fetch {
 public:
  void add(std::unique_ptr<Fetch> one) { all_.push_back(std::move(one)); }
  void wait() noexcept override {
    for (const auto& one : all_) {
      one->wait();
    }
  }
  void finish() override {
    for (const auto& one : all_) {
      one->finish();
    }
  }
  bool is_over() override {
    return std::ranges::all_of(all_, [](const auto& one) { return one->is_over(); });
  }

 private:
  std::vector<std::unique_ptr<Fetch>> all_;
};

MessageHeader Transport::next_header(std::map<Index, std::uint64_t>& numbers, Index other,
                                     std::string_view phase, std::size_t words) const {
  return {.magic = kMagic,
          .version = kVersion,
          .run = run_,
          .phase = checksum_of(std::as_bytes(std::span(phase))),
          .number = numbers[other]++,
          .words = words,
          .checksum = 0};
}

void Transport::count(std::string_view phase, Index from, Index to, std::size_t words) {
  if (!phase.empty()) {
    links_[{std::string(phase), from, to}] += {static_cast<Index>(words), 1};
  }
}

std::unique_ptr<Fetch> Transport::begin_send(std::string_view phase, Index to,
                                             std::span<const float> words) {
  auto all = std::make_unique<Several>();
  for (const Range piece : blocks(std::ssize(words), kMostWordsOfMessage)) {
    const auto part = words.subspan(static_cast<std::size_t>(piece.begin),
                                    static_cast<std::size_t>(piece.size()));
    MessageHeader header = next_header(sent_, to, phase, part.size());
    header.checksum = checksum_of(part);
    all->add(put(to, header, part));
    count(phase, rank(), to, part.size());
  }
  return all;
}

std::unique_ptr<Fetch> Transport::begin_receive(std::string_view phase, Index from,
                                                std::span<float> words) {
  auto all = std::make_unique<Several>();
  for (const Range piece : blocks(std::ssize(words), kMostWordsOfMessage)) {
    const auto part = words.subspan(static_cast<std::size_t>(piece.begin),
                                    static_cast<std::size_t>(piece.size()));
    const MessageHeader expected = next_header(received_, from, phase, part.size());
    all->add(std::make_unique<Receipt>(*this, from, phase, expected, part));
    count(phase, from, rank(), part.size());
  }
  return all;
}

void Transport::send(std::string_view phase, Index to, std::span<const float> words) {
  begin_send(phase, to, words)->finish();
}

void Transport::receive(std::string_view phase, Index from, std::span<float> words) {
  begin_receive(phase, from, words)->finish();
}

}  // namespace redblue
