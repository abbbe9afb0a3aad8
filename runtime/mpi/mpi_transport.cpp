#include "runtime/mpi/mpi_transport.hpp"

#include <array>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

namespace redblue {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHeaderTag = 1;
constexpr int kWordsTag = 2;

void check(int code, const std::string& text) {
  if (code == MPI_SUCCESS) {
    return;
  }
  std::array<char, MPI_MAX_ERROR_STRING> why{};
  int length = 0;
  MPI_Error_string(code, why.data(), &length);
  throw TransportError(text + ": " + std::string(why.data(), static_cast<std::size_t>(length)));
}

// Waits for requests, and gives up after a while. Polls, and lets others have the core: there may
// be more ranks than cores.
void await(std::vector<MPI_Request>& requests, std::chrono::milliseconds patience,
           const std::string& text) {
  constexpr int kEager = 2000;
  const auto start = Clock::now();
  for (int tries = 0;; ++tries) {
    int done = 0;
    check(
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
        text);
    if (done != 0) {
      return;
    }
    if (Clock::now() - start > patience) {
      throw TransportError(nothing_came(text, patience));
    }
    if (tries < kEager) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
}

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

  std::vector<std::string> gather(const std::string& fact) override {
    const std::string text = "rank " + std::to_string(rank_) + " waits for what all say";
    std::vector<int> lengths(static_cast<std::size_t>(size_));
    const int length = static_cast<int>(fact.size());
    std::vector<MPI_Request> request(1);
    check(MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_, request.data()),
          text);
    await(request, patience(), text);
    std::vector<int> places(lengths.size());
    std::exclusive_scan(lengths.begin(), lengths.end(), places.begin(), 0);
    std::string all(static_cast<std::size_t>(places.back() + lengths.back()), ' ');
    check(MPI_Iallgatherv(fact.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(),
                          MPI_CHAR, comm_, request.data()),
          text);
    await(request, patience(), text);
    std::vector<std::string> facts;
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      facts.push_back(
          all.substr(static_cast<std::size_t>(places[k]), static_cast<std::size_t>(lengths[k])));
    }
    return facts;
  }
  void abandon(const std::string&) noexcept override {}  // the process ends them all

 protected:
  std::unique_ptr<Fetch> put(Index to, const MessageHeader& header,
                             std::span<const float> words) override {
    const std::string text = message_text("sent to", rank_, to, {}, header.number);
    auto held = std::make_unique<MessageHeader>(header);
    std::vector<MPI_Request> requests(2);
    check(MPI_Isend(held.get(), sizeof(MessageHeader), MPI_BYTE, static_cast<int>(to), kHeaderTag,
                    comm_, &requests[0]),
          text);
    check(MPI_Isend(words.data(), static_cast<int>(words.size()), MPI_FLOAT, static_cast<int>(to),
                    kWordsTag, comm_, &requests[1]),
          text);
    return std::make_unique<Message>(std::move(requests), std::move(held), patience(), text);
  }
  std::unique_ptr<Fetch> get(Index from, MessageHeader& header, std::span<float> words) override {
    const std::string text = message_text("received from", rank_, from, {}, received_[from]++);
    std::vector<MPI_Request> requests(2);
    check(MPI_Irecv(&header, sizeof(MessageHeader), MPI_BYTE, static_cast<int>(from), kHeaderTag,
                    comm_, &requests[0]),
          text);
    check(MPI_Irecv(words.data(), static_cast<int>(words.size()), MPI_FLOAT, static_cast<int>(from),
                    kWordsTag, comm_, &requests[1]),
          text);
    return std::make_unique<Message>(std::move(requests), nullptr, patience(), text);
  }

 private:
  class Message final : public Fetch {
   public:
    Message(std::vector<MPI_Request> requests, std::unique_ptr<MessageHeader> header,
            std::chrono::milliseconds patience, std::string text)
        : requests_(std::move(requests)),
          header_(std::move(header)),
          patience_(patience),
          text_(std::move(text)) {}
    void wait() noexcept override {
      try {
        finish();
      } catch (const std::exception&) {  // the caller's finish() says so
      }
    }
    void finish() override { await(requests_, patience_, text_); }

   private:
    std::vector<MPI_Request> requests_;
    std::unique_ptr<MessageHeader> header_;  // of a message that is sent
    std::chrono::milliseconds patience_;
    std::string text_;
  };

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::map<Index, std::uint64_t> received_;
};

}  // namespace

MpiJob::MpiJob() {
  int given = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
  transport_ = std::make_unique<MpiTransport>();
}

MpiJob::~MpiJob() {
  MPI_Finalize();
}

void MpiJob::abandon(int code) noexcept {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace redblue
