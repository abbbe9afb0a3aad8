#pragma once
// A slow memory on disk: matrices in the files of a directory (memsim/store/stored_matrix.hpp).
// Only one process may use the directory. Memory use does not depend on the size of the matrices: a
// few buffers for each thread that is moving words, and some tables and two granules for each open
// matrix.
//
//   Store store("scratch");
//   const auto file = store.create("A1.rb", StoreLayout::row_major(n, d, store.granule_bytes()),
//                                  StoreFile::Life::lasting);
//   SlowMatrix A1 = store.matrix("A1", file);
//   StoreWorkspace workspace(store);
//   kernel.run(machine, plan, {{&A1, ...}, {&g}}, workspace);
//
// The store must outlive its matrices. Several threads may call its functions. One exception: the
// first write to a fresh matrix lays it out, so no other access to that matrix may run at the same
// time.

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
  // By default io_uring if the system offers it, else threads.
  std::optional<Engine> engine = std::nullopt;
  bool direct = true;  // requests bypass the system's cache where possible
  Index granule_bytes = Index{64} * 1024;
  // The number of requests in flight for each thread that moves words, each with a buffer. Also the
  // number of parallel reads ahead. Requires: 2 or more.
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
    // The windows in which the matrix will be read. By default these are the windows of its first
    // write. Small windows, and windows of whole rows, share granules.
    std::optional<Window> mostly = std::nullopt;
    // Keeps windows in separate granules, so that a process killed while writing one window damages
    // no other. `windows`: windows begin at multiples of the first window's rows. `rows`: windows
    // begin anywhere, so no two rows share a granule.
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
  // Returns the matrix. A fresh one is laid out for `window`, which is about to be written.
  StoredMatrix& laid_out_for(Window window);
  // Closes the file and verifies it by reading it back. Throws: as StoredMatrix.
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
  // if another process or another Store holds the directory; std::system_error.
  explicit Store(std::filesystem::path directory, StoreOptions options = {});
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  [[nodiscard]] Index granule_bytes() const { return options_.granule_bytes; }
  [[nodiscard]] Ledger& ledger() { return channels_.ledger(); }
  [[nodiscard]] Engine engine() const { return engine_; }
  // Each is empty, or a reason: why the engine is not io_uring, or why requests are not direct.
  [[nodiscard]] const std::string& no_uring() const { return no_uring_; }
  [[nodiscard]] std::string indirect() const;

  // Returns the sorted names of the lasting matrices, without suffix.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::filesystem::path path(std::string_view file) const {
    return directory_ / file;
  }
  // True if the file exists and has a header. A matrix's header is written last when it is made.
  [[nodiscard]] bool has(const std::string& file) const;
  // Returns the layout for reading in windows of this size. `ahead` means that several windows are
  // read in parallel. Then windows of whole rows share no granule, which would be read once for
  // each window.
  [[nodiscard]] StoreLayout layout(Index rows, Index cols, Window window, bool ahead) const;
  // Throw (all): as StoredMatrix.
  [[nodiscard]] std::shared_ptr<StoreFile> create(const std::string& file,
                                                  const StoreLayout& layout, StoreFile::Life life);
  [[nodiscard]] std::shared_ptr<StoreFile> open(
      const std::string& file, StoredMatrix::Expect expect = StoredMatrix::Expect::closed);
  [[nodiscard]] std::shared_ptr<StoreFile> fresh(const std::string& file, Index rows, Index cols,
                                                 StoreFile::Life life, StoreFile::Use use = {});
  // Returns the file as a matrix for Machine and HostAccess, or as a backing.
  [[nodiscard]] SlowMatrix matrix(std::string name, std::shared_ptr<StoreFile> file);
  [[nodiscard]] std::unique_ptr<Backing> backing(std::shared_ptr<StoreFile> file);

  // Reserves room for files that are created later; each such file takes its part of it. Throws:
  // std::system_error that says how much room is missing.
  void reserve(Words bytes);
  // Removes the files left by a killed run.
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
  Threads fetchers_;  // each uses a channel while it reads
};

// Intermediates in a store. The store must outlive the workspace and its matrices. An intermediate
// is removed when its matrix dies, unless it is kept.
class StoreWorkspace : public Workspace {
 public:
  explicit StoreWorkspace(Store& store, bool keep = false) : store_(store), keep_(keep) {}
  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly = std::nullopt) override;
  // Keeps an intermediate under its name, if this workspace keeps any.
  void keep(const std::string& name, std::shared_ptr<StoreFile> file);
  // Closes the kept matrices, and renames their files to end in kKeptSuffix. Throws: as
  // StoredMatrix.
  void finish();

 private:
  Store& store_;
  bool keep_;
  std::map<std::string, std::shared_ptr<StoreFile>> kept_;
};

}  // namespace redblue
