#pragma once
// A slow store on disk: matrices in the files of a directory (memsim/store/stored_matrix.hpp),
// which belongs to one process at a time. In memory are a few buffers for each thread that moves
// words at the same time, and for each open matrix some tables and two granules, whatever the
// matrices' size.
//
//   Store store("scratch");
//   const auto file = store.create("A1.rb", StoreLayout::row_major(n, d, store.granule_bytes()),
//                                  StoreFile::Life::lasting);
//   SlowMatrix A1 = store.matrix("A1", file);
//   StoreWorkspace workspace(store);
//   kernel.run(machine, plan, {{&A1, ...}, {&g}}, workspace);
//
// It outlives its matrices. Its functions may be called from several threads, but for the first
// access to a matrix that is laid out as it is accessed.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "memsim/slow_matrix.hpp"
#include "memsim/store/file.hpp"
#include "memsim/store/stored_matrix.hpp"
#include "memsim/store/threads.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

struct StoreOptions {
  std::optional<Engine> engine = std::nullopt;  // else io_uring, where the system offers it
  bool direct = true;  // requests pass by the system's cache, where they can
  Index granule_bytes = Index{64} * 1024;
  // Requests in flight of each thread that moves words, each with a buffer of its own, and reads
  // that go on ahead at the same time: 2 or more.
  int depth = 8;
  Index buffer_bytes = Index{512} * 1024;  // at least a granule's
  MakeQueue queue = nullptr;               // in place of the engine's
  // Before each window moves, also from threads that read ahead; throws to stop.
  std::function<void()> before_each = nullptr;
};

class Store;

// A matrix of a store: one that is there; or a fresh one, laid out when it is first written.
class StoreFile {
 public:
  // When it dies, it is removed or left as it is.
  enum class Life { temporary, lasting };

  // How a fresh one will be used.
  struct Use {
    // The windows that it will be read in; else those that it is written in first. Small ones, and
    // such as take whole rows, share a granule.
    std::optional<Window> mostly = std::nullopt;
    // Each in granules of its own: then who is killed while it writes one harms no other.
    bool apart = false;
  };

  StoreFile(Store& store, std::unique_ptr<StoredMatrix> matrix, Life life);
  StoreFile(Store& store, std::string file, Index rows, Index cols, Life life, Use use);
  StoreFile(const StoreFile&) = delete;
  StoreFile& operator=(const StoreFile&) = delete;
  ~StoreFile();

  [[nodiscard]] Store& store() const { return store_; }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  // Null while nothing was written.
  [[nodiscard]] StoredMatrix* matrix() const { return matrix_.get(); }
  // For a window that is to be written.
  StoredMatrix& laid_out_for(Window window);
  // Closes it, and reads back that it is what was written. Throws: as StoredMatrix.
  void seal();
  // The name by which it stays.
  void stay_as(const std::string& file);

 private:
  Store& store_;
  std::string file_;
  Index rows_, cols_;
  std::unique_ptr<StoredMatrix> matrix_;
  Life life_;
  Use use_;
};

class Store {
 public:
  static constexpr std::string_view kSuffix = ".rb";
  static constexpr std::string_view kTemporarySuffix = ".run.rb";
  static constexpr std::string_view kKeptSuffix = ".kept.rb";

  // Makes the directory where there is none. Requires: granules of whole sectors. Throws:
  // StoreError where another process, or another Store, has it; std::system_error.
  explicit Store(std::filesystem::path directory, StoreOptions options = {});
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] Index granule_bytes() const { return options_.granule_bytes; }
  [[nodiscard]] Ledger& ledger() { return channels_.ledger(); }
  [[nodiscard]] Engine engine() const { return engine_; }
  // Empty, or why it is not io_uring; why requests are not direct.
  [[nodiscard]] const std::string& no_uring() const { return no_uring_; }
  [[nodiscard]] std::string indirect() const;

  // The names of the matrices that stay, without suffix, in order.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::filesystem::path path(std::string_view file) const {
    return directory_ / file;
  }
  // For who reads in such windows, some of them at the same time if `ahead`: then no two that take
  // whole rows share a granule, which would come for each of them.
  [[nodiscard]] StoreLayout layout(Index rows, Index cols, Window window, bool ahead) const;
  // Throw: as StoredMatrix.
  [[nodiscard]] std::shared_ptr<StoreFile> create(const std::string& file,
                                                  const StoreLayout& layout, StoreFile::Life life);
  [[nodiscard]] std::shared_ptr<StoreFile> open(
      const std::string& file, StoredMatrix::Expect expect = StoredMatrix::Expect::closed);
  [[nodiscard]] std::shared_ptr<StoreFile> fresh(const std::string& file, Index rows, Index cols,
                                                 StoreFile::Life life, StoreFile::Use use = {});
  // For Machines and HostAccess.
  [[nodiscard]] SlowMatrix matrix(std::string name, std::shared_ptr<StoreFile> file);

  // Takes the room now, for files that come later: of those that are created from now on, each
  // takes its part of it. Throws: std::system_error that says how much is missing.
  void reserve(Words bytes);
  // Files that a run which was killed left.
  void remove_temporaries();

 private:
  friend class StoreFile;
  std::unique_ptr<StoredMatrix> create(const std::string& file, const StoreLayout& layout);
  void note(const StoredMatrix& matrix);

  std::filesystem::path directory_;
  StoreOptions options_;
  Engine engine_;
  std::string no_uring_;
  Descriptor lock_;
  mutable std::mutex mutex_;  // of what follows
  std::string indirect_;
  Descriptor reserve_;
  std::int64_t reserved_ = 0;
  Channels channels_;
  Threads fetchers_;  // each with a channel while it reads
};

// Intermediates in a store, which must outlive it, and the matrices that it gave: they are removed
// when they die; or are kept.
class StoreWorkspace : public Workspace {
 public:
  explicit StoreWorkspace(Store& store, bool keep = false) : store_(store), keep_(keep) {}
  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly = std::nullopt) override;
  // Those that are to be kept are whole, and stay under names that say so. Throws: as StoredMatrix.
  void finish();

 private:
  Store& store_;
  bool keep_;
  std::map<std::string, std::shared_ptr<StoreFile>> kept_;
};

}  // namespace redblue
