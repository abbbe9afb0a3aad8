#include "memsim/store/ledger.hpp"

namespace redblue {

StoreBytes& StoreBytes::operator+=(const StoreBytes& other) {
  requests += other.requests;
  moved += other.moved;
  words += other.words;
  whole_granules += other.whole_granules;
  padding += other.padding;
  checksums += other.checksums;
  headers += other.headers;
  repeated += other.repeated;
  at_hand += other.at_hand;
  return *this;
}

const char* to_string(Purpose purpose) {
  switch (purpose) {
    case Purpose::inputs:
      return "inputs";
    case Purpose::kernel:
      return "kernel";
    case Purpose::links:
      return "links";
    case Purpose::results:
      return "results";
    case Purpose::checkpoints:
      break;
  }
  return "checkpoints";
}

void Ledger::add(Direction direction, const StoreBytes& bytes) {
  const std::lock_guard lock(mutex_);
  StoreTraffic& traffic = traffic_[static_cast<std::size_t>(purpose_)];
  (direction == Direction::read ? traffic.read : traffic.written) += bytes;
}

void Ledger::begin(Purpose purpose) {
  const std::lock_guard lock(mutex_);
  purpose_ = purpose;
}

StoreTraffic Ledger::of(Purpose purpose) const {
  const std::lock_guard lock(mutex_);
  return traffic_[static_cast<std::size_t>(purpose)];
}

}  // namespace redblue
