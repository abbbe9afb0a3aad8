#include "runtime/mpi/mpi_transport.hpp"

#include <array>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

namespace redblue {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHeaderTag = 1;
constexpr int kWordsTag = 2;
constexpr int kFactTag = 3;
constexpr int kFailedTag = 4;

// How long a failed rank waits for the others to fail. An error in the common command line appears
// on all ranks at about the same time.
constexpr std::chrono::seconds kUntilOthersFail{5};

// A message has more words than were requested.
class TooLong : public TransportError {
 public:
  using TransportError::TransportError;
};

void check(int code, const std::string& text) {
  if (code == MPI_SUCCESS) {
    return;
  }
  int kind = 0;
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_TRUNCATE) {
    throw TooLong(text + ": more words than its header says");
  }
  std::array<char, MPI_MAX_ERROR_STRING> why{};
  int length = 0;
  MPI_Error_string(code, why.data(), &length);
  throw TransportError(text + ": " + std::string(why.data(), static_cast<std::size_t>(length)));
}

// Paces a polling loop. It yields the core between polls, because there may be more ranks than
// cores.
class Waiting {
 public:
  explicit Waiting(std::chrono::milliseconds patience) : patience_(patience) {}
  [[nodiscard]] bool too_long() const { return Clock::now() - start_ > patience_; }
  void pause() {
    constexpr int kEager = 2000;
    if (++looks_ < kEager) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

 private:
  std::chrono::milliseconds patience_;
  Clock::time_point start_ = Clock::now();
  int looks_ = 0;
};

struct Requests {
  explicit Requests(std::size_t count) : under_way(count, MPI_REQUEST_NULL), ended(count) {}

  // Returns whether all requests have ended; `ended` then has their statuses.
  bool test(const std::string& text) {
    if (all_ended) {
      return true;
    }
    int done = 0;
    const int code =
        MPI_Testall(static_cast<int>(under_way.size()), under_way.data(), &done, ended.data());
    if (code == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& status : ended) {
        if (status.MPI_ERROR != MPI_ERR_PENDING) {
          check(status.MPI_ERROR, text);
        }
      }
    }
    check(code, text);
    all_ended = done != 0;
    return all_ended;
  }
  void await(std::chrono::milliseconds patience, const std::string& text) {
    for (Waiting waiting(patience); !test(text); waiting.pause()) {
      if (waiting.too_long()) {
        throw TransportError(nothing_came(text, patience));
      }
    }
  }

  std::vector<MPI_Request> under_way;
  std::vector<MPI_Status> ended;
  bool all_ended = false;
};

}  // namespace

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  [[nodiscard]] Index rank() const override { return rank_; }
  [[nodiscard]] Index size() const override { return size_; }

  // Open MPI moves words only during calls of MPI.
  void progress() override {
    int any = 0;
    check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &any, MPI_STATUS_IGNORE),
          "rank " + std::to_string(rank_) + " looks for messages");
  }

  // Sends to each other rank separately, so that each rank knows which ranks are silent.
  std::vector<std::string> gather(const std::string& fact) override {
    begun_ = true;
    std::vector<std::string> facts(static_cast<std::size_t>(size_));
    std::vector<Index> silent;
    Requests sends(facts.size());
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) {
        facts[static_cast<std::size_t>(other)] = fact;
        continue;
      }
      silent.push_back(other);
      check(MPI_Isend(fact.data(), static_cast<int>(fact.size()), MPI_CHAR, other, kFactTag, comm_,
                      &sends.under_way[static_cast<std::size_t>(other)]),
            gather_text(rank_, {other}));
    }
    for (Waiting waiting(patience()); !silent.empty(); waiting.pause()) {
      std::erase_if(silent, [&](Index other) {
        return has_said(other, facts[static_cast<std::size_t>(other)]);
      });
      if (!silent.empty() && waiting.too_long()) {
        throw TransportError(nothing_came(gather_text(rank_, silent), patience()));
      }
    }
    sends.await(patience(), "rank " + std::to_string(rank_) + " tells all others");
    return facts;
  }
  void abandon(const std::string&) noexcept override {}  // MpiJob::abandon() ends all ranks

  // Called by a rank that failed. Returns whether all other ranks report a failure before any
  // message.
  bool all_failed_at_start() {
    if (begun_) {
      return false;
    }
    const std::string text = "rank " + std::to_string(rank_) + " says that it failed";
    std::vector<Index> others;
    Requests notes(static_cast<std::size_t>(size_));
    for (int other = 0; other < size_; ++other) {
      if (other != rank_) {
        others.push_back(other);
        check(MPI_Isend(nullptr, 0, MPI_CHAR, other, kFailedTag, comm_,
                        &notes.under_way[static_cast<std::size_t>(other)]),
              text);
      }
    }
    for (Waiting waiting(kUntilOthersFail); !others.empty(); waiting.pause()) {
      std::erase_if(others, [&](Index other) { return has_failed(other, text); });
      if (came(MPI_ANY_SOURCE, kFactTag, text) || came(MPI_ANY_SOURCE, kHeaderTag, text) ||
          waiting.too_long()) {
        return false;
      }
    }
    notes.await(kUntilOthersFail, text);
    return true;
  }

 protected:
  std::unique_ptr<Fetch> put(Index to, const MessageHeader& header,
                             std::span<const float> words) override {
    begun_ = true;
    const std::string text = message_text("sent to", rank_, to, {}, header.number);
    auto held = std::make_unique<MessageHeader>(header);
    Requests requests(2);
    check(MPI_Isend(held.get(), sizeof(MessageHeader), MPI_BYTE, static_cast<int>(to), kHeaderTag,
                    comm_, &requests.under_way[0]),
          text);
    check(MPI_Isend(words.data(), static_cast<int>(words.size()), MPI_FLOAT, static_cast<int>(to),
                    kWordsTag, comm_, &requests.under_way[1]),
          text);
    return std::make_unique<Sending>(std::move(requests), std::move(held), patience(), text);
  }
  std::unique_ptr<Fetch> get(Index from, MessageHeader& header, std::span<float> words) override {
    begun_ = true;
    const std::string text = message_text("received from", rank_, from, {}, received_[from]++);
    Requests requests(2);
    check(MPI_Irecv(&header, sizeof(MessageHeader), MPI_BYTE, static_cast<int>(from), kHeaderTag,
                    comm_, &requests.under_way[0]),
          text);
    check(MPI_Irecv(words.data(), static_cast<int>(words.size()), MPI_FLOAT, static_cast<int>(from),
                    kWordsTag, comm_, &requests.under_way[1]),
          text);
    return std::make_unique<Receiving>(std::move(requests), header, words.size(), patience(), text);
  }

 private:
  // The two requests of a message: its header and its words.
  class Message : public Fetch {
   public:
    Message(Requests requests, std::chrono::milliseconds patience, std::string text)
        : requests_(std::move(requests)), patience_(patience), text_(std::move(text)) {}
    void wait() noexcept override {
      try {
        finish();
      } catch (const std::exception&) {  // finish() reports the failure
      }
    }
    void finish() override {
      if (done_) {
        return;
      }
      try {
        ended();
      } catch (...) {  // wait() does not report it, so finish() throws it again
        failed_ = std::current_exception();
        throw;
      }
      done_ = true;
    }
    bool is_over() override {
      try {
        return done_ || failed_ || requests_.test(text_);
      } catch (const TransportError&) {
        failed_ = std::current_exception();
        return true;
      }
    }

   protected:
    // Waits for both requests and returns their statuses.
    std::vector<MPI_Status> statuses() {
      if (failed_) {
        std::rethrow_exception(failed_);
      }
      requests_.await(patience_, text_);
      return requests_.ended;
    }

   private:
    virtual void ended() = 0;

    Requests requests_;
    std::chrono::milliseconds patience_;
    std::string text_;
    bool done_ = false;
    std::exception_ptr failed_;  // found by is_over() or finish()
  };

  class Sending final : public Message {
   public:
    Sending(Requests requests, std::unique_ptr<MessageHeader> header,
            std::chrono::milliseconds patience, std::string text)
        : Message(std::move(requests), patience, std::move(text)), header_(std::move(header)) {}

   private:
    void ended() override { statuses(); }

    std::unique_ptr<MessageHeader> header_;  // kept until it is sent
  };

  // Receives a message. MPI accepts a message that is shorter than requested, so the header then
  // gets the number of words received. For a message that is too long, a header with another number
  // of words already shows the mismatch.
  class Receiving final : public Message {
   public:
    Receiving(Requests requests, MessageHeader& header, std::size_t words,
              std::chrono::milliseconds patience, std::string text)
        : Message(std::move(requests), patience, std::move(text)), header_(header), words_(words) {}

   private:
    void ended() override {
      try {
        const std::vector<MPI_Status> both = statuses();
        int bytes = 0, words = 0;
        MPI_Get_count(&both[0], MPI_BYTE, &bytes);
        MPI_Get_count(&both[1], MPI_FLOAT, &words);
        if (bytes != sizeof(MessageHeader)) {
          header_ = {};
        } else if (static_cast<std::size_t>(words) != words_) {
          header_.words = static_cast<std::uint64_t>(words);
        }
      } catch (const TooLong&) {
        if (header_.words == words_) {
          throw;
        }
      }
    }

    MessageHeader& header_;
    std::size_t words_;
  };

  bool has_said(Index other, std::string& fact) {
    const std::string text = gather_text(rank_, {other});
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check(MPI_Improbe(static_cast<int>(other), kFactTag, comm_, &there, &message, &status), text);
    if (there == 0) {
      return false;
    }
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    fact.resize(static_cast<std::size_t>(length));
    check(MPI_Mrecv(fact.data(), length, MPI_CHAR, &message, &status), text);
    return true;
  }

  [[nodiscard]] bool came(int from, int tag, const std::string& text) {
    int there = 0;
    check(MPI_Iprobe(from, tag, comm_, &there, MPI_STATUS_IGNORE), text);
    return there != 0;
  }
  bool has_failed(Index other, const std::string& text) {
    const int from = static_cast<int>(other);
    if (!came(from, kFailedTag, text)) {
      return false;
    }
    check(MPI_Recv(nullptr, 0, MPI_CHAR, from, kFailedTag, comm_, MPI_STATUS_IGNORE), text);
    return true;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  bool begun_ = false;  // a message or a gather() has begun
  std::map<Index, std::uint64_t> received_;
};

MpiJob::MpiJob() {
  int given = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
  transport_ = std::make_unique<MpiTransport>();
}

MpiJob::~MpiJob() {
  MPI_Finalize();
}

Transport& MpiJob::transport() {
  return *transport_;
}

bool MpiJob::all_failed_at_start() {
  return transport_->all_failed_at_start();
}

void MpiJob::abandon(int code) noexcept {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace redblue
