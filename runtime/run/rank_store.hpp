#pragma once
// The store of one rank's homes on disk: a folder of the run's directory, which is removed with it.

#include <filesystem>
#include <string>

#include "memsim/store/store.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

// Requires: a request with a store.
std::filesystem::path folder_of_rank(const Request& request, Index rank);

class RankStore {
 public:
  // Throws: RequestError where a run left checkpoints of this rank; as Store().
  RankStore(const Request& request, Index rank);
  RankStore(const RankStore&) = delete;
  RankStore& operator=(const RankStore&) = delete;
  ~RankStore();

  [[nodiscard]] Store& store() { return store_; }
  // So many words of messages were in memory beside homes.
  void note_buffered(Index words);
  // What it moved so far.
  [[nodiscard]] StoreReport::OfRank report();

 private:
  std::filesystem::path folder_;
  Store store_;
  Index buffered_ = 0;
};

// As one rank tells another of it.
std::string to_text(const StoreReport::OfRank& of_rank);
StoreReport::OfRank parse_rank_store(const std::string& text);

}  // namespace redblue
