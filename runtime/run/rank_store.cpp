#include "runtime/run/rank_store.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "runtime/run/rank_checkpoint.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {
namespace {

constexpr std::array kCountsOfBytes = {
    &StoreBytes::requests,       &StoreBytes::moved,    &StoreBytes::words,
    &StoreBytes::whole_granules, &StoreBytes::padding,  &StoreBytes::checksums,
    &StoreBytes::headers,        &StoreBytes::repeated, &StoreBytes::at_hand};

}  // namespace

std::filesystem::path folder_of_rank(const Request& request, Index rank) {
  return request.store->directory / fmt::format("rank-{}", rank);
}

namespace {

// The folder of a rank without checkpoints; around it the run's directory is there.
std::filesystem::path free_folder(std::filesystem::path path) {
  std::filesystem::create_directories(path.parent_path());
  if (const auto left = RankCheckpoints::left_in(path)) {
    throw RequestError(fmt::format(
        "{}: a run left a checkpoint: add --resume to continue it, or remove it", left->string()));
  }
  return path;
}

}  // namespace

RankStore::RankStore(const Request& request, Index rank)
    : folder_(free_folder(folder_of_rank(request, rank))), store_(folder_, request.store->options) {
  store_.remove_temporaries();
}

// While the store holds the folder, which is no other run's then.
RankStore::~RankStore() {
  std::error_code not_empty;
  std::filesystem::remove(folder_, not_empty);
  std::filesystem::remove(folder_.parent_path(), not_empty);
}

void RankStore::note_buffered(Index words) {
  buffered_ = std::max(buffered_, words);
}

StoreReport::OfRank RankStore::report() {
  StoreReport::OfRank its{.traffic = {}, .buffered = buffered_, .resident = resident_bytes()};
  for (const Purpose purpose : kPurposes) {
    its.traffic[purpose] = store_.ledger().of(purpose);
  }
  return its;
}

std::string to_text(const StoreReport::OfRank& of_rank) {
  std::string text = fmt::format("{} {}", of_rank.buffered, of_rank.resident);
  for (const auto& [_, traffic] : of_rank.traffic) {
    for (const StoreBytes* bytes : {&traffic.read, &traffic.written}) {
      for (const auto count : kCountsOfBytes) {
        text += fmt::format(" {}", bytes->*count);
      }
    }
  }
  return text;
}

StoreReport::OfRank parse_rank_store(const std::string& text) {
  std::istringstream stream(text);
  StoreReport::OfRank its;
  stream >> its.buffered >> its.resident;
  for (const Purpose purpose : kPurposes) {
    StoreTraffic& traffic = its.traffic[purpose];
    for (StoreBytes* bytes : {&traffic.read, &traffic.written}) {
      for (const auto count : kCountsOfBytes) {
        stream >> bytes->*count;
      }
    }
  }
  return its;
}

}  // namespace redblue
