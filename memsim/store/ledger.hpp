#pragma once
// What the files of a store really moved, itemised, so that counted words can be held against it:
//
//   moved = words + whole_granules + padding + checksums + headers + repeated - at_hand

#include <array>
#include <mutex>

#include "memsim/words.hpp"

namespace redblue {

// Bytes, in one direction.
struct StoreBytes {
  Index requests = 0;
  Index moved = 0;           // as the requests returned
  Index words = 0;           // of windows: 4 for each word that is counted
  Index whole_granules = 0;  // words that moved because their granule did
  Index padding = 0;         // to whole sectors
  Index checksums = 0;       // tables of them
  Index headers = 0;
  Index repeated = 0;  // of requests that were cut short
  Index at_hand = 0;   // words that needed no request: the granule was there, or was never written

  [[nodiscard]] Index itemised() const {
    return words + whole_granules + padding + checksums + headers + repeated - at_hand;
  }
  StoreBytes& operator+=(const StoreBytes& other);
};

// Why bytes move: to bring inputs, for a kernel's moves, to hand over results, to keep a
// checkpoint.
enum class Purpose { inputs, kernel, results, checkpoints };
inline constexpr std::array kPurposes = {Purpose::inputs, Purpose::kernel, Purpose::results,
                                         Purpose::checkpoints};
const char* to_string(Purpose purpose);

struct StoreTraffic {
  StoreBytes read, written;
};

// Shared between threads.
class Ledger {
 public:
  enum class Direction { read, write };

  void add(Direction direction, const StoreBytes& bytes);
  // What is added from now on is for this.
  void begin(Purpose purpose);
  [[nodiscard]] StoreTraffic of(Purpose purpose) const;

 private:
  mutable std::mutex mutex_;
  Purpose purpose_ = Purpose::inputs;
  std::array<StoreTraffic, kPurposes.size()> traffic_;
};

}  // namespace redblue
