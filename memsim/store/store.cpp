#include "memsim/store/store.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <future>
#include <limits>
#include <mutex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace redblue {
namespace {

class Later final : public Fetch {
 public:
  Later(Threads& fetchers, std::function<void()> read) {
    const auto task = std::make_shared<std::packaged_task<void()>>(std::move(read));
    ended_ = task->get_future();
    fetchers.give([task] { (*task)(); });
  }
  ~Later() override { wait(); }
  void wait() noexcept override {
    if (ended_.valid()) {
      ended_.wait();
    }
  }
  void finish() override { ended_.get(); }

 private:
  std::future<void> ended_;
};

class FileBacking final : public Backing {
 public:
  FileBacking(std::shared_ptr<StoreFile> file, std::function<void()> before_each, Threads& fetchers)
      : file_(std::move(file)), before_each_(std::move(before_each)), fetchers_(fetchers) {}

  void read(Range rows, Range columns, std::span<float> to) const override {
    read(rows, columns, WordOrder::rows, to);
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    write(rows, columns, WordOrder::rows, from);
  }
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override {
    read(rows, columns, order(orientation), to);
  }
  void write_tile(Range rows, Range columns, Orientation orientation,
                  std::span<const float> from) override {
    write(rows, columns, order(orientation), from);
  }
  std::unique_ptr<Fetch> fetch_tile(Range rows, Range columns, Orientation orientation,
                                    std::span<float> to) const override {
    return std::make_unique<Later>(fetchers_,
                                   [=, this] { read_tile(rows, columns, orientation, to); });
  }

 private:
  static WordOrder order(Orientation orientation) {
    return orientation == Orientation::straight ? WordOrder::tile : WordOrder::transposed_tile;
  }
  void read(Range rows, Range columns, WordOrder order, std::span<float> to) const {
    before();
    if (file_->matrix() == nullptr) {
      std::ranges::fill(to, std::numeric_limits<float>::quiet_NaN());
      const auto bytes = static_cast<Index>(to.size_bytes());
      file_->store().ledger().add(Ledger::Direction::read, {.words = bytes, .at_hand = bytes});
      return;
    }
    file_->matrix()->read(rows, columns, order, to);
  }
  void write(Range rows, Range columns, WordOrder order, std::span<const float> from) {
    before();
    file_->laid_out_for({rows.size(), columns.size()}).write(rows, columns, order, from);
  }
  void before() const {
    if (before_each_) {
      before_each_();
    }
  }

  std::shared_ptr<StoreFile> file_;
  std::function<void()> before_each_;
  Threads& fetchers_;
};

}  // namespace

// ---- StoreFile ---------------------------------------------------------------------------

StoreFile::StoreFile(Store& store, std::unique_ptr<StoredMatrix> matrix, Life life)
    : store_(store),
      rows_(matrix->rows()),
      cols_(matrix->cols()),
      matrix_(std::move(matrix)),
      life_(life) {}

StoreFile::StoreFile(Store& store, std::string file, Index rows, Index cols, Life life, Use use)
    : store_(store), file_(std::move(file)), rows_(rows), cols_(cols), life_(life), use_(use) {}

StoreFile::~StoreFile() {
  if (matrix_ != nullptr && life_ == Life::temporary) {
    ::unlink(matrix_->path().c_str());
  }
}

StoredMatrix& StoreFile::laid_out_for(Window window) {
  if (matrix_ == nullptr) {
    Window block = use_.mostly.value_or(window);
    if (block.cols >= cols_) {
      // Taller blocks cost readers of whole rows no words. A writer of parts of rows writes all
      // parts of some rows, and their granules contain no other rows.
      block.rows = std::max(block.rows, window.rows);
    }
    if (use_.apart == Use::Apart::rows) {
      block.rows = 1;
    }
    matrix_ = store_.create(
        file_, use_.apart != Use::Apart::none
                   ? StoreLayout::for_blocks(rows_, cols_, block, store_.granule_bytes(), 1)
                   : store_.layout(rows_, cols_, block, false));
  }
  return *matrix_;
}

void StoreFile::seal() {
  StoredMatrix& matrix = laid_out_for({rows_, cols_});
  matrix.close();
  matrix.verify();
}

void StoreFile::stay_as(const std::string& file) {
  const std::filesystem::path to = store_.path(file);
  try {
    matrix_->rename(to);
  } catch (...) {  // renamed, perhaps, but not forced to disk
    life_ = matrix_->path() == to ? Life::lasting : life_;
    throw;
  }
  life_ = Life::lasting;
}

// ---- Store -------------------------------------------------------------------------------

Store::Store(std::filesystem::path directory, StoreOptions options)
    : directory_(std::move(directory)),
      options_(std::move(options)),
      engine_(options_.engine.value_or(Engine::uring)),
      channels_(
          options_.queue ? options_.queue : [this] { return make_queue(engine_, options_.depth); },
          options_.depth,
          ceil_div(std::max(options_.buffer_bytes, options_.granule_bytes), StoreLayout::kSector) *
              StoreLayout::kSector),
      fetchers_(static_cast<std::size_t>(options_.depth)) {
  require(options_.depth >= 2, "a store has two buffers or more");
  require(options_.granule_bytes > 0 && options_.granule_bytes % StoreLayout::kSector == 0,
          "a granule is some whole sectors of 4096 bytes");
  if (::mkdir(directory_.c_str(), 0777) != 0 && errno != EEXIST) {
    fail(errno, "make the directory", directory_);
  }
  lock_ = Descriptor(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_.get() < 0) {
    fail(errno, "open the directory", directory_);
  }
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      throw StoreError("the store " + directory_.string() +
                       " is in use by another process: wait for it, or take another directory");
    }
    fail(errno, "lock", directory_);
  }
  if (!options_.engine) {
    no_uring_ = unavailable(Engine::uring);
    engine_ = no_uring_.empty() ? Engine::uring : Engine::threads;
  } else if (engine_ == Engine::threads) {
    no_uring_ = "not asked for";
  }
}

Store::~Store() = default;

std::vector<std::string> Store::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(kSuffix) && !file.ends_with(kTemporarySuffix)) {
      names.push_back(file.substr(0, file.size() - kSuffix.size()));
    }
  }
  std::ranges::sort(names);
  return names;
}

bool Store::has(const std::string& file) const {
  return std::ifstream(path(file), std::ios::binary).get() > 0;
}

StoreLayout Store::layout(Index rows, Index cols, Window window, bool ahead) const {
  const Index least = window.cols >= cols && !ahead ? options_.granule_bytes : StoreLayout::kSector;
  return StoreLayout::for_blocks(rows, cols, window, options_.granule_bytes,
                                 least / Index{sizeof(float)});
}

std::shared_ptr<StoreFile> Store::create(const std::string& file, const StoreLayout& layout,
                                         StoreFile::Life life) {
  return std::make_shared<StoreFile>(*this, create(file, layout), life);
}

std::shared_ptr<StoreFile> Store::open(const std::string& file, StoredMatrix::Expect expect) {
  auto matrix = std::make_unique<StoredMatrix>(path(file), options_.direct, channels_, expect);
  note(*matrix);
  return std::make_shared<StoreFile>(*this, std::move(matrix), StoreFile::Life::lasting);
}

std::shared_ptr<StoreFile> Store::fresh(const std::string& file, Index rows, Index cols,
                                        StoreFile::Life life, StoreFile::Use use) {
  return std::make_shared<StoreFile>(*this, file, rows, cols, life, use);
}

SlowMatrix Store::matrix(std::string name, std::shared_ptr<StoreFile> file) {
  const Index rows = file->rows();
  const Index cols = file->cols();
  return {std::move(name), rows, cols, backing(std::move(file))};
}

std::unique_ptr<Backing> Store::backing(std::shared_ptr<StoreFile> file) {
  return std::make_unique<FileBacking>(std::move(file), options_.before_each, fetchers_);
}

std::unique_ptr<StoredMatrix> Store::create(const std::string& file, const StoreLayout& layout) {
  {
    const std::lock_guard lock(mutex_);
    if (reserved_ > 0) {
      const Words bytes = StoredMatrix::file_bytes(layout);
      reserved_ -= std::min(reserved_, bytes.value());
      if (::ftruncate(reserve_.get(), reserved_) != 0) {
        fail(errno, "give back room in", directory_);
      }
    }
  }
  auto matrix = std::make_unique<StoredMatrix>(path(file), layout, options_.direct, channels_);
  note(*matrix);
  return matrix;
}

std::string Store::indirect() const {
  const std::lock_guard lock(mutex_);
  return indirect_;
}

void Store::note(const StoredMatrix& matrix) {
  const std::lock_guard lock(mutex_);
  if (indirect_.empty()) {
    indirect_ = matrix.indirect();
  }
}

void Store::reserve(Words bytes) {
  const std::lock_guard lock(mutex_);
  reserve_ = Descriptor();  // frees the rest of an earlier reservation
  reserved_ = 0;
  struct statvfs status {};
  if (::statvfs(directory_.c_str(), &status) != 0) {
    fail(errno, "look at", directory_);
  }
  const Words free =
      Words(static_cast<Index>(status.f_bavail)) * static_cast<Index>(status.f_frsize);
  if (bytes > free) {
    const std::string missing =
        bytes.overflowed() ? "far more" : std::to_string(bytes.value() - free.value()) + " more";
    throw std::system_error(ENOSPC, std::generic_category(),
                            "the store " + directory_.string() + " has " +
                                std::to_string(free.value()) + " bytes free and needs " + missing +
                                " for this run");
  }
  // A file without a name vanishes with its process. If the file system cannot make one, only the
  // check of free bytes protects the run.
  reserve_ = Descriptor(::open(directory_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (reserve_.get() >= 0 && bytes > Words(0)) {
    const int error = allocate(reserve_.get(), bytes.value());
    if (error == 0) {
      reserved_ = bytes.value();
    } else {
      reserve_ = Descriptor();  // it may hold a part of the reservation
      if (error != EOPNOTSUPP) {
        fail(error, "reserve " + std::to_string(bytes.value()) + " bytes in", directory_);
      }
    }
  }
}

void Store::remove_temporaries() {
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().filename().string().ends_with(kTemporarySuffix)) {
      std::filesystem::remove(entry.path());
    }
  }
}

// ---- StoreWorkspace ----------------------------------------------------------------------

SlowMatrix StoreWorkspace::matrix(std::string name, Index rows, Index cols,
                                  std::optional<Window> mostly) {
  auto fresh = store_.fresh(name + ".intermediate" + std::string(Store::kTemporarySuffix), rows,
                            cols, StoreFile::Life::temporary, {.mostly = mostly});
  keep(name, fresh);
  return store_.matrix(std::move(name), std::move(fresh));
}

void StoreWorkspace::keep(const std::string& name, std::shared_ptr<StoreFile> file) {
  if (keep_) {
    kept_[name + ".intermediate"] = std::move(file);
  }
}

void StoreWorkspace::finish() {
  for (const auto& [name, file] : kept_) {
    if (file->matrix() != nullptr) {
      file->matrix()->close();
      file->stay_as(name + std::string(Store::kKeptSuffix));
    }
  }
  kept_.clear();
}

}  // namespace redblue
