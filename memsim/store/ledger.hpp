#pragma once
// The bytes that the files of a store moved, itemised, so that they can be compared with the
// counted words:
//
//   moved = words + whole_granules + padding + checksums + headers + repeated - at_hand

#include <array>
#include <mutex>

#include "memsim/words.hpp"

namespace redblue {

// Requests and bytes in one direction.
struct StoreBytes {
  Index requests = 0;
  Index moved = 0;           // as the requests returned
  Index words = 0;           // words of the windows: 4 bytes for each counted word
  Index whole_granules = 0;  // words that moved only because their granule moved
  Index padding = 0;         // up to whole sectors
  Index checksums = 0;       // tables of checksums
  Index headers = 0;
  Index repeated = 0;  // moved again after a request was cut short
  Index at_hand = 0;   // words without a request: their granule was cached, or never written

  [[nodiscard]] Index itemised() const {
    return words + whole_granules + padding + checksums + headers + repeated - at_hand;
  }
  StoreBytes& operator+=(const StoreBytes& other);
};

// The reason why bytes move: to bring inputs, for a kernel's moves, for messages between ranks, to
// deliver results, or to keep a checkpoint.
enum class Purpose { inputs, kernel, links, results, checkpoints };
inline constexpr std::array kPurposes = {Purpose::inputs, Purpose::kernel, Purpose::links,
                                         Purpose::results, Purpose::checkpoints};
const char* to_string(Purpose purpose);

struct StoreTraffic {
  StoreBytes read, written;
};

// Safe to use from several threads.
class Ledger {
 public:
  enum class Direction { read, write };

  void add(Direction direction, const StoreBytes& bytes);
  // The purpose of all bytes that are added from now on.
  void begin(Purpose purpose);
  [[nodiscard]] StoreTraffic of(Purpose purpose) const;

 private:
  mutable std::mutex mutex_;
  Purpose purpose_ = Purpose::inputs;
  std::array<StoreTraffic, kPurposes.size()> traffic_;
};

}  // namespace redblue
