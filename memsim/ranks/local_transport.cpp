#include "memsim/ranks/local_transport.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "memsim/ranks/together.hpp"

namespace redblue {
namespace {

using Clock = std::chrono::steady_clock;
using Fate = LocalOptions::Fate;

// A message posted but not yet taken. The words belong to the sender, which waits for `taken`.
struct Posted {
  MessageHeader header;
  std::span<const float> words;
  Clock::time_point arrives;
  Fate fate;
  bool taken = false;
};

// The message that a rank waits for, and how long it waits.
struct Waiting {
  std::string text;
  std::chrono::milliseconds patience;
};

// The links between all ranks, and the first failure.
class Exchange {
 public:
  Exchange(Index ranks, const LocalOptions& options)
      : options_(options), ranks_(ranks), facts_(static_cast<std::size_t>(ranks)) {}

  [[nodiscard]] Index ranks() const { return ranks_; }

  std::shared_ptr<Posted> post(Index from, Index to, const MessageHeader& header,
                               std::span<const float> words) {
    const std::lock_guard lock(mutex_);
    // A rank receives one message after the other.
    Clock::time_point& free = free_[to];
    const auto takes = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
        options_.seconds_a_message + options_.seconds_a_word * static_cast<double>(words.size())));
    free = std::max(free, Clock::now()) + takes;
    const Fate fate = options_.fate ? options_.fate(from, to, header.number) : Fate::arrives;
    auto posted = std::make_shared<Posted>(Posted{header, words, free, fate});
    if (fate == Fate::is_lost) {
      posted->taken = true;
    } else {
      waiting_[{from, to}].push_back(posted);
    }
    if (fate == Fate::is_doubled) {
      waiting_[{from, to}].push_back(posted);
    }
    changed_.notify_all();
    return posted;
  }

  // Requires: the calls for one link follow the order of its messages.
  void take(Index from, Index to, const Waiting& waiting, MessageHeader& header,
            std::span<float> words) {
    std::unique_lock lock(mutex_);
    auto& queue = waiting_[{from, to}];
    // A message on its way stays in the queue, so that a sender that ends can withdraw it.
    for (;;) {
      await(lock, waiting, [&] { return !queue.empty(); });
      const Clock::time_point arrives = queue.front()->arrives;
      if (arrives <= Clock::now()) {
        break;
      }
      lock.unlock();
      std::this_thread::sleep_until(arrives);
      lock.lock();
    }
    const std::shared_ptr<Posted> posted = queue.front();
    queue.pop_front();
    header = posted->header;
    const std::span<const float> sent = posted->fate == Fate::is_cut
                                            ? posted->words.first(posted->words.size() / 2)
                                            : posted->words;
    header.words = sent.size();
    std::copy_n(sent.begin(), std::min(sent.size(), words.size()), words.begin());
    if (posted->fate == Fate::is_changed) {
      words[words.size() / 2] += 1;
    }
    posted->taken = true;
    changed_.notify_all();
  }

  [[nodiscard]] bool is_taken(const Posted& posted) {
    const std::lock_guard lock(mutex_);
    return posted.taken;
  }
  // True if at least `messages` messages have arrived and are not taken yet.
  [[nodiscard]] bool have_come(Index from, Index to, Index messages) {
    const std::lock_guard lock(mutex_);
    const auto& queue = waiting_[{from, to}];
    return std::ssize(queue) >= messages &&
           queue[static_cast<std::size_t>(messages - 1)]->arrives <= Clock::now();
  }

  void await_taken(const Posted& posted, const Waiting& waiting) {
    std::unique_lock lock(mutex_);
    await(lock, waiting, [&] { return posted.taken; });
  }

  // Removes the message of a sender that ends before the message is taken, since its words die too.
  void withdraw(const std::shared_ptr<Posted>& posted, Index from, Index to) noexcept {
    const std::lock_guard lock(mutex_);
    if (!posted->taken) {
      std::erase(waiting_[{from, to}], posted);
    }
  }

  std::vector<std::string> gather(Index rank, const std::string& fact,
                                  std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    facts_[static_cast<std::size_t>(rank)].push_back(fact);
    const std::size_t round = facts_[static_cast<std::size_t>(rank)].size();
    changed_.notify_all();
    const auto silent = [&] {
      std::vector<Index> ranks;
      for (Index other = 0; other < ranks_; ++other) {
        if (facts_[static_cast<std::size_t>(other)].size() < round) {
          ranks.push_back(other);
        }
      }
      return ranks;
    };
    await(
        lock, patience, [&] { return gather_text(rank, silent()); },
        [&] { return silent().empty(); });
    std::vector<std::string> all;
    for (const auto& of_one : facts_) {
      all.push_back(of_one[round - 1]);
    }
    return all;
  }

  void abandon(const std::string& why) noexcept {
    const std::lock_guard lock(mutex_);
    if (!failed_) {
      failed_.emplace();
      try {
        *failed_ = why;
      } catch (const std::bad_alloc&) {  // the other ranks end without the reason
      }
    }
    changed_.notify_all();
  }

 private:
  template <class Text, class Holds>
  void await(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience,
             const Text& text, const Holds& holds) {
    const bool in_time = changed_.wait_for(lock, patience, [&] { return failed_ || holds(); });
    if (holds()) {
      return;
    }
    throw TransportError(in_time ? text() + ": " + *failed_ : nothing_came(text(), patience));
  }
  template <class Holds>
  void await(std::unique_lock<std::mutex>& lock, const Waiting& waiting, const Holds& holds) {
    await(
        lock, waiting.patience, [&] { return waiting.text; }, holds);
  }

  const LocalOptions& options_;
  Index ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<Index, Index>, std::deque<std::shared_ptr<Posted>>> waiting_;
  std::map<Index, Clock::time_point> free_;  // when the receiver's link is free
  std::vector<std::vector<std::string>> facts_;
  std::optional<std::string> failed_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(Exchange& exchange, Index rank) : exchange_(exchange), rank_(rank) {}
  [[nodiscard]] Index rank() const override { return rank_; }
  [[nodiscard]] Index size() const override { return exchange_.ranks(); }
  std::vector<std::string> gather(const std::string& fact) override {
    return exchange_.gather(rank_, fact, patience());
  }
  void abandon(const std::string& why) noexcept override { exchange_.abandon(why); }

 protected:
  std::unique_ptr<Fetch> put(Index to, const MessageHeader& header,
                             std::span<const float> words) override {
    return std::make_unique<Sending>(*this, to, exchange_.post(rank_, to, header, words),
                                     message_text("sent to", rank_, to, {}, header.number));
  }
  std::unique_ptr<Fetch> get(Index from, MessageHeader& header, std::span<float> words) override {
    auto& pending = pending_[from];
    pending.push_back({&header, words, false});
    return std::make_unique<Receiving>(*this, from, taken_[from] + std::ssize(pending) - 1);
  }

 private:
  class Sending final : public Fetch {
   public:
    Sending(LocalTransport& transport, Index to, std::shared_ptr<Posted> posted, std::string text)
        : transport_(transport), to_(to), posted_(std::move(posted)), text_(std::move(text)) {}
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;
    ~Sending() override { transport_.exchange_.withdraw(posted_, transport_.rank_, to_); }
    void wait() noexcept override {
      try {
        finish();
      } catch (const std::exception&) {  // the caller's finish() reports it
      }
    }
    void finish() override {
      transport_.exchange_.await_taken(*posted_, {text_, transport_.patience()});
    }
    bool is_over() override { return transport_.exchange_.is_taken(*posted_); }

   private:
    LocalTransport& transport_;
    Index to_;
    std::shared_ptr<Posted> posted_;
    std::string text_;
  };

  class Receiving final : public Fetch {
   public:
    Receiving(LocalTransport& transport, Index from, Index number)
        : transport_(transport), from_(from), number_(number) {}
    void wait() noexcept override {
      try {
        finish();
      } catch (const std::exception&) {
      }
    }
    void finish() override { transport_.take_up_to(from_, number_); }
    bool is_over() override {
      const Index missing = number_ + 1 - transport_.taken_[from_];
      return missing <= 0 || transport_.exchange_.have_come(from_, transport_.rank_, missing);
    }

   private:
    LocalTransport& transport_;
    Index from_, number_;
  };

  struct Pending {
    MessageHeader* header;
    std::span<float> words;
    bool taken;
  };

  // Takes the messages of a link, in their order, up to the one with that number.
  void take_up_to(Index from, Index number) {
    auto& pending = pending_[from];
    for (Index& next = taken_[from]; next <= number; ++next) {
      const Pending& first = pending.front();
      exchange_.take(
          from, rank_,
          {message_text("received from", rank_, from, {}, static_cast<std::uint64_t>(next)),
           patience()},
          *first.header, first.words);
      pending.pop_front();
    }
  }

  Exchange& exchange_;
  Index rank_;
  std::map<Index, std::deque<Pending>> pending_;  // by sender
  std::map<Index, Index> taken_;                  // number of messages taken, by sender
};

}  // namespace

void run_ranks(Index ranks, const std::function<void(Transport& transport)>& work,
               const LocalOptions& options) {
  Exchange exchange(ranks, options);
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](Index rank) {
    LocalTransport transport(exchange, rank);
    try {
      work(transport);
    } catch (const std::exception& error) {
      {
        const std::lock_guard lock(mutex);
        if (!first) {
          first = std::current_exception();
        }
      }
      transport.abandon(error.what());
    }
  };
  run_together(ranks, "rank", run);
  if (first) {
    std::rethrow_exception(first);
  }
}

}  // namespace redblue
