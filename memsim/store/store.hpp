#pragma once
// A slow store on disk: matrices in the files of a directory (memsim/store/stored_matrix.hpp). The
// directory belongs to one process at a time. Memory holds a few buffers for each of the threads
// that move words at the same time, and some tables and two granules for each open matrix, whatever
// the size of the matrices.
//
//   Store store("scratch");
//   const auto file = store.create("A1.rb", StoreLayout::row_major(n, d, store.granule_bytes()),
//                                  StoreFile::Life::lasting);
//   SlowMatrix A1 = store.matrix("A1", file);
//   StoreWorkspace workspace(store);
//   kernel.run(machine, plan, {{&A1, ...}, {&g}}, workspace);
//
// The store must outlive its matrices. Its functions may be called from several threads. One
// exception: no other access to a fresh matrix may run beside its first write, which lays it out.

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
  // By default io_uring where the system offers it, else threads.
  std::optional<Engine> engine = std::nullopt;
  bool direct = true;  // requests bypass the system's cache where they can
  Index granule_bytes = Index{64} * 1024;
  // The requests in flight of each thread that moves words, each with a buffer, and the number of
  // reads ahead at the same time. Requires: 2 or more.
  int depth = 8;
  Index buffer_bytes = Index{512} * 1024;  // raised to granule_bytes if smaller
  MakeQueue queue = nullptr;               // replaces the engine's queue
  // Called before each window moves, also by threads that read ahead. An exception stops the move.
  std::function<void()> before_each = nullptr;
};

class Store;

// A matrix of a store: an existing one, or a fresh one that its first write lays out.
class StoreFile {
 public:
  // The destructor removes a temporary file and leaves a lasting one.
  enum class Life { temporary, lasting };

  // The expected use of a fresh matrix.
  struct Use {
    // The windows in which it will be read; by default those of its first write. Small windows, and
    // windows of whole rows, share granules.
    std::optional<Window> mostly = std::nullopt;
    // No two windows share a granule: a process that is killed while it writes one harms no other.
    // Windows begin at multiples of the first one's rows, or anywhere: then no two rows share one.
    enum class Apart { none, windows, rows };
    Apart apart = Apart::none;
  };

  StoreFile(Store& store, std::unique_ptr<StoredMatrix> matrix, Life life);
  StoreFile(Store& store, std::string file, Index rows, Index cols, Life life, Use use);
  StoreFile(const StoreFile&) = delete;
  StoreFile& operator=(const StoreFile&) = delete;
  ~StoreFile();

  [[nodiscard]] Store& store() const { return store_; }
  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  // Null until the first write.
  [[nodiscard]] StoredMatrix* matrix() const { return matrix_.get(); }
  // The matrix. A fresh one is laid out for `window`, which is about to be written.
  StoredMatrix& laid_out_for(Window window);
  // Closes the file, and verifies by reading back. Throws: as StoredMatrix.
  void seal();
  // Renames the file to `file`, its lasting name.
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

  // Makes the directory if it is missing. Requires: granules of whole sectors. Throws: StoreError
  // if another process, or another Store, holds the directory; std::system_error.
  explicit Store(std::filesystem::path directory, StoreOptions options = {});
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] Index granule_bytes() const { return options_.granule_bytes; }
  [[nodiscard]] Ledger& ledger() { return channels_.ledger(); }
  [[nodiscard]] Engine engine() const { return engine_; }
  // Empty, or the reason: why the engine is not io_uring; why requests are not direct.
  [[nodiscard]] const std::string& no_uring() const { return no_uring_; }
  [[nodiscard]] std::string indirect() const;

  // The names of the lasting matrices, without suffix, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::filesystem::path path(std::string_view file) const {
    return directory_ / file;
  }
  // Whether the file is there, with a header: that is written last when a matrix is made.
  [[nodiscard]] bool has(const std::string& file) const;
  // The layout for reading in such windows. `ahead` means that several windows are read at the same
  // time: then no two windows of whole rows share a granule, which would be read for each.
  [[nodiscard]] StoreLayout layout(Index rows, Index cols, Window window, bool ahead) const;
  // Throw: as StoredMatrix.
  [[nodiscard]] std::shared_ptr<StoreFile> create(const std::string& file,
                                                  const StoreLayout& layout, StoreFile::Life life);
  [[nodiscard]] std::shared_ptr<StoreFile> open(
      const std::string& file, StoredMatrix::Expect expect = StoredMatrix::Expect::closed);
  [[nodiscard]] std::shared_ptr<StoreFile> fresh(const std::string& file, Index rows, Index cols,
                                                 StoreFile::Life life, StoreFile::Use use = {});
  // The matrix for Machine and HostAccess; and its words alone.
  [[nodiscard]] SlowMatrix matrix(std::string name, std::shared_ptr<StoreFile> file);
  [[nodiscard]] std::unique_ptr<Backing> backing(std::shared_ptr<StoreFile> file);

  // Reserves room now for files that are created later; each of these takes its part of it. Throws:
  // std::system_error that says how much is missing.
  void reserve(Words bytes);
  // Removes the files that a killed run left.
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
  mutable std::mutex mutex_;  // guards indirect_, reserve_ and reserved_
  std::string indirect_;
  Descriptor reserve_;
  std::int64_t reserved_ = 0;
  Channels channels_;
  Threads fetchers_;  // each has a channel while it reads
};

// Intermediates in a store. The store must outlive the workspace and its matrices. An intermediate
// is removed when its matrix dies, unless it is kept.
class StoreWorkspace : public Workspace {
 public:
  explicit StoreWorkspace(Store& store, bool keep = false) : store_(store), keep_(keep) {}
  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly = std::nullopt) override;
  // Adds an intermediate, under its name, to those that are kept, if some are.
  void keep(const std::string& name, std::shared_ptr<StoreFile> file);
  // Closes the matrices that are kept, and renames them to end in kKeptSuffix. Throws: as
  // StoredMatrix.
  void finish();

 private:
  Store& store_;
  bool keep_;
  std::map<std::string, std::shared_ptr<StoreFile>> kept_;
};

}  // namespace redblue
