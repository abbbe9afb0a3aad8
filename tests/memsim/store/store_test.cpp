// A store on disk returns the words that were written, to the bit, or reports that it cannot. This
// holds for all windows, engines, granules and buffers. Its ledger accounts for every byte.

#include "memsim/store/store.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memsim/backing.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "memsim/sanitized.hpp"
#include "tests/support/faulty_queue.hpp"
#include "tests/support/print.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/words.hpp"

namespace redblue {
namespace {

namespace fs = std::filesystem;
using Expect = StoredMatrix::Expect;
using Life = StoreFile::Life;

constexpr Index kChecksums = 511;  // in one table

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

bool same_bits(float a, float b) {
  return same_bits({&a, 1}, {&b, 1});
}

constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();

template <class Error, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

void expect_balanced(Store& store) {
  for (const Purpose purpose : kPurposes) {
    const StoreTraffic traffic = store.ledger().of(purpose);
    EXPECT_EQ(traffic.read.itemised(), traffic.read.moved) << to_string(purpose);
    EXPECT_EQ(traffic.written.itemised(), traffic.written.moved) << to_string(purpose);
  }
}

Index words_of(const StoredMatrix& matrix) {
  return matrix.rows() * matrix.cols();
}

void put(StoredMatrix& matrix, const Buffer& words) {
  matrix.write({0, matrix.rows()}, {0, matrix.cols()}, WordOrder::rows, words);
}

Buffer all_of(StoredMatrix& matrix) {
  Buffer words(static_cast<std::size_t>(words_of(matrix)));
  matrix.read({0, matrix.rows()}, {0, matrix.cols()}, WordOrder::rows, words);
  return words;
}

Buffer row_of(StoredMatrix& matrix, Index row) {
  Buffer words(static_cast<std::size_t>(matrix.cols()));
  matrix.read({row, row + 1}, {0, matrix.cols()}, WordOrder::rows, words);
  return words;
}

// Reads the bytes of a file directly, without the store.
std::string bytes_at(const fs::path& path, Index offset, Index size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::ifstream in(path, std::ios::binary);
  in.seekg(offset);
  in.read(bytes.data(), size);
  EXPECT_TRUE(in.good());
  return bytes;
}

void set_bytes(const fs::path& path, Index offset, const std::string& bytes) {
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(offset);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(out.good());
}

void flip(const fs::path& path, Index offset, int bit = 0) {
  std::string byte = bytes_at(path, offset, 1);
  byte[0] = static_cast<char>(byte[0] ^ (1 << bit));
  set_bytes(path, offset, byte);
}

// The file's layout: a header, then groups of a table and its granules.
Index table_offset(const StoreLayout& layout, Index table) {
  return kSector + table * (kSector + kChecksums * layout.slot_bytes());
}
Index granule_offset(const StoreLayout& layout, Index granule) {
  return table_offset(layout, granule / kChecksums) + kSector +
         granule % kChecksums * layout.slot_bytes();
}

// Rows of one sector each. Each row is a granule.
StoreLayout sector_rows(Index rows) {
  return StoreLayout::row_major(rows, kSectorWords, kSector);
}

// Makes a closed file of such rows. Row i begins with the word 1024 i.
fs::path make_closed(const TemporaryDirectory& directory, Index rows) {
  Store store(directory / "store", {.direct = false});
  const auto file = store.create("A.rb", sector_rows(rows), Life::lasting);
  put(*file->matrix(), numbered(rows * kSectorWords));
  file->seal();
  return store.path("A.rb");
}

MakeQueue threads_queue(int depth = 8) {
  return [depth] { return make_queue(Engine::threads, depth); };
}

// ---- Any store ---------------------------------------------------------------------------

struct Way {
  Engine engine;
  bool direct;
  Index granule_bytes;
  bool small;

  [[nodiscard]] StoreOptions options() const {
    return {.engine = engine,
            .direct = direct,
            .granule_bytes = granule_bytes,
            .depth = small ? 2 : 8,
            .buffer_bytes = small ? granule_bytes : Index{512} * 1024};
  }
};

class AnyStore : public testing::TestWithParam<std::tuple<Engine, bool, Index, bool>> {
 protected:
  void SetUp() override {
    if (const std::string why = unavailable(way().engine); !why.empty()) {
      GTEST_SKIP() << to_string(way().engine) << ": " << why;
    }
  }
  [[nodiscard]] static Way way() {
    const auto& [engine, direct, granule_bytes, small] = GetParam();
    return {engine, direct, granule_bytes, small};
  }
};

StoreLayout draw_layout(Random& random, Index granule_bytes) {
  const Index rows = between(random, 1, 130);
  const Index cols = between(random, 1, 130);
  if (between(random, 0, 3) == 0) {
    return StoreLayout::row_major(rows, cols, granule_bytes);
  }
  return StoreLayout::for_blocks(rows, cols, {between(random, 1, 130), between(random, 1, 130)},
                                 granule_bytes, between(random, 0, 1) == 0 ? 1 : kSectorWords);
}

// Returns the words of a window in any order, read from a matrix in memory.
Buffer expected(const Backing& model, Range rows, Range columns, WordOrder order) {
  Buffer words(static_cast<std::size_t>(rows.size() * columns.size()));
  switch (order) {
    case WordOrder::rows:
      model.read(rows, columns, words);
      break;
    case WordOrder::tile:
      model.read_tile(rows, columns, Orientation::straight, words);
      break;
    case WordOrder::transposed_tile:
      model.read_tile(rows, columns, Orientation::transposed, words);
      break;
  }
  return words;
}

void put(Backing& model, Range rows, Range columns, WordOrder order, const Buffer& words) {
  switch (order) {
    case WordOrder::rows:
      model.write(rows, columns, words);
      break;
    case WordOrder::tile:
      model.write_tile(rows, columns, Orientation::straight, words);
      break;
    case WordOrder::transposed_tile:
      model.write_tile(rows, columns, Orientation::transposed, words);
      break;
  }
}

TEST_P(AnyStore, RandomWindowsInAllOrdersAreThoseOfAMatrixInMemory) {
  constexpr int kMatrices = 4;
  constexpr int kMoves = 50;
  Random random(7);
  const TemporaryDirectory directory;
  Store store(directory / "store", way().options());
  for (int k = 0; k < kMatrices; ++k) {
    const StoreLayout layout = draw_layout(random, way().granule_bytes);
    const Index rows = layout.rows.extent;
    const Index cols = layout.columns.extent;
    auto file = store.create("A.rb", layout, Life::lasting);
    RamBacking model(rows, cols);
    std::set<Index> written;
    for (int move = 0; move < kMoves; ++move) {
      const Range I = draw_range(random, rows);
      const Range J = draw_range(random, cols);
      const auto order = static_cast<WordOrder>(between(random, 0, 2));
      const Index what = between(random, 0, 11);
      SCOPED_TRACE("matrix " + std::to_string(k) + " move " + std::to_string(move));
      if (what < 5) {
        const Buffer words = draw_words(random, I.size() * J.size());
        file->matrix()->write(I, J, order, words);
        put(model, I, J, order, words);
        layout.for_granules(I, J, [&](const Granule& granule) { written.insert(granule.number); });
      } else if (what < 10) {
        Buffer words(static_cast<std::size_t>(I.size() * J.size()));
        file->matrix()->read(I, J, order, words);
        ASSERT_TRUE(same_bits(words, expected(model, I, J, order)));
      } else if (what == 10) {
        const StoredMatrix::Verified verified = file->matrix()->verify();
        EXPECT_EQ(verified.granules, layout.granules());
        EXPECT_EQ(verified.unwritten, layout.granules() - static_cast<Index>(written.size()));
      } else {
        const bool closed = between(random, 0, 1) == 0;
        closed ? file->matrix()->close() : file->matrix()->flush();
        file.reset();
        file = store.open("A.rb", closed ? Expect::closed : Expect::left_open);
      }
    }
    file->seal();
    file = store.open("A.rb");
    ASSERT_TRUE(
        same_bits(all_of(*file->matrix()), expected(model, {0, rows}, {0, cols}, WordOrder::rows)));
  }
  expect_balanced(store);
}

// A machine and a host can use a matrix of a store exactly like one in memory.
TEST_P(AnyStore, WordsPassToAndFromSlowMatrices) {
  constexpr Index kRows = 150;
  constexpr Index kCols = 70;
  Random random(11);
  const Buffer words = draw_words(random, kRows * kCols);
  const TemporaryDirectory directory;
  Store store(directory / "store", way().options());
  const auto run = [&](SlowMatrix& A, SlowMatrix& B, SlowMatrix& T) {
    for (const Range I : blocks(kRows, 64)) {
      HostAccess::put(A, I,
                      std::span(words).subspan(static_cast<std::size_t>(I.begin * kCols),
                                               static_cast<std::size_t>(I.size() * kCols)));
    }
    store.ledger().begin(Purpose::kernel);
    Machine machine(2000);
    for (const Range I : blocks(kRows, 33)) {
      for (const Range J : blocks(kCols, 47)) {
        const Tile a = machine.read(A.block(I, J));
        machine.write(a, B.block(I, J));
        machine.write(a, transposed(T.block(J, I)));
      }
    }
    for (const Range I : blocks(kCols, 20)) {  // once more, from the transpose
      for (const Range J : blocks(kRows, 50)) {
        machine.write(machine.read(transposed(T.block(I, J))), B.block(J, I));
      }
    }
    store.ledger().begin(Purpose::results);
    Buffer back(words.size());
    HostAccess::get(B, {0, 99}, std::span(back).first(99 * kCols));
    HostAccess::get(B, {99, kRows}, std::span(back).subspan(99 * kCols));
    EXPECT_TRUE(same_bits(back, words));
    return total(machine.phases()).io;
  };
  const auto stored = [&](const char* name, Index rows, Index cols) {
    return store.matrix(name, store.fresh(std::string(name) + ".rb", rows, cols, Life::temporary));
  };
  SlowMatrix A = stored("A", kRows, kCols);
  SlowMatrix B = stored("B", kRows, kCols);
  SlowMatrix T = stored("T", kCols, kRows);
  const IoCount io = run(A, B, T);
  const StoreTraffic traffic = store.ledger().of(Purpose::kernel);
  EXPECT_EQ(traffic.read.words, kWord * io.reads);
  EXPECT_EQ(traffic.written.words, kWord * io.writes);
  expect_balanced(store);

  SlowMatrix in_memory[] = {{"A", kRows, kCols}, {"B", kRows, kCols}, {"T", kCols, kRows}};
  EXPECT_EQ(run(in_memory[0], in_memory[1], in_memory[2]), io);
}

std::string way_name(const testing::TestParamInfo<AnyStore::ParamType>& tested) {
  const auto& [engine, direct, granule_bytes, small] = tested.param;
  return std::string(engine == Engine::uring ? "uring" : "threads") +
         (direct ? "_direct_" : "_cached_") + std::to_string(granule_bytes) +
         (small ? "_small" : "_large");
}

INSTANTIATE_TEST_SUITE_P(Stores, AnyStore,
                         testing::Combine(testing::Values(Engine::uring, Engine::threads),
                                          testing::Bool(),
                                          testing::Values(Index{4096}, Index{8192}, Index{32768}),
                                          testing::Bool()),
                         way_name);

// ---- Store -------------------------------------------------------------------------------

TEST(Store, BelongsToOneAtATime) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  {
    const Store store(path);
    const std::string message = message_of<StoreError>([&] { const Store second(path); });
    expect_parts(message, {path.string(), "in use"});
    const Store other(directory / "other");
  }
  const Store after(path);
}

// Ends a child process without running the parent's cleanup.
[[noreturn]] void leave(bool well) {
  ::_exit(well ? 0 : 1);
}

bool ended_well(pid_t child) {
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Runs `part` in a child process, which then waits to be killed.
template <class Part>
pid_t begin_child(const Part& part) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      part();
      static_cast<void>(!::write(ready[1], "", 1));
      for (;;) {
        ::pause();
      }
    } catch (...) {
      leave(false);
    }
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "it did not get that far";
  ::close(ready[0]);
  return child;
}

void kill_child(pid_t child) {
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_FALSE(ended_well(child));
}

TEST(Store, BelongsToOneProcess) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  {
    const Store store(path);
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        const Store second(path);
      } catch (const StoreError&) {
        leave(true);
      }
      leave(false);
    }
    EXPECT_TRUE(ended_well(child)) << "two processes have it";
  }
  std::unique_ptr<Store> others;  // destroyed when the process ends
  const pid_t child = begin_child([&] { others = std::make_unique<Store>(path); });
  EXPECT_THROW(const Store store(path), StoreError);
  kill_child(child);
  EXPECT_NO_THROW(const Store store(path)) << "no lock is left by who was killed";
}

TEST(Store, FilesLiveAsLongAsTheyAreToldTo) {
  const TemporaryDirectory directory;
  Store store(directory / "store");
  const StoreLayout layout = sector_rows(3);
  {
    const auto temporary = store.create("t.rb", layout, Life::temporary);
    const auto lasting = store.create("l.rb", layout, Life::lasting);
    const auto fresh = store.fresh("f.rb", 3, 5, Life::lasting);
    const auto promoted = store.create("p.run.rb", layout, Life::temporary);
    promoted->seal();
    promoted->stay_as("p.rb");
    EXPECT_TRUE(fs::exists(store.path("t.rb")) && fs::exists(store.path("l.rb")));
    EXPECT_FALSE(fs::exists(store.path("f.rb"))) << "nothing was written yet";
    EXPECT_EQ(fresh->matrix(), nullptr);
    lasting->seal();
  }
  EXPECT_FALSE(fs::exists(store.path("t.rb")));
  EXPECT_FALSE(fs::exists(store.path("f.rb")));
  EXPECT_FALSE(fs::exists(store.path("p.run.rb")));
  EXPECT_EQ(store.names(), (std::vector<std::string>{"l", "p"}));
  {  // an opened file stays, and so does the target of a refused rename
    const auto opened = store.open("l.rb");
    fs::create_directory(store.path("taken.rb"));
    const auto promoted = store.create("q.run.rb", layout, Life::temporary);
    const std::string message =
        message_of<std::system_error>([&] { promoted->stay_as("taken.rb"); });
    expect_parts(message, {"q.run.rb", "taken.rb"});
  }
  fs::remove(store.path("taken.rb"));
  EXPECT_EQ(store.names(), (std::vector<std::string>{"l", "p"}));
  EXPECT_FALSE(fs::exists(store.path("q.run.rb"))) << "temporary, as it does not stay";
}

// A new file that replaces another does not contain its words.
TEST(Store, FilesTakeThePlaceOfOthers) {
  const TemporaryDirectory directory;
  Store store(directory / "store");
  {
    const auto file = store.create("A.rb", sector_rows(9), Life::lasting);
    put(*file->matrix(), numbered(9 * kSectorWords));
    file->seal();
  }
  const auto file = store.create("A.rb", sector_rows(5), Life::lasting);
  for (const float word : all_of(*file->matrix())) {
    ASSERT_TRUE(same_bits(word, kUnwritten));
  }
  EXPECT_EQ(file->matrix()->verify().unwritten, 5);
}

TEST(Store, HasTwoBuffersOfWholeSectorsOrMore) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  EXPECT_THROW(const Store store(path, {.depth = 1}), ShapeMismatch);
  EXPECT_THROW(const Store store(path, {.granule_bytes = 0}), ShapeMismatch);
  EXPECT_THROW(const Store store(path, {.granule_bytes = 5000}), ShapeMismatch);
  EXPECT_THROW(const Store store(path, {.granule_bytes = -4096}), ShapeMismatch);
  // A buffer holds at least a granule, whatever size was requested.
  for (const Index buffer_bytes : {Index{0}, Index{1}, Index{4097}, Index{70000}}) {
    Store store(path, {.granule_bytes = 8192, .depth = 2, .buffer_bytes = buffer_bytes});
    const auto file = store.create("A.rb", StoreLayout::row_major(6, 2048, 8192), Life::temporary);
    const Buffer words = numbered(6 * 2048);
    put(*file->matrix(), words);
    EXPECT_TRUE(same_bits(all_of(*file->matrix()), words));
  }
}

TEST(Store, IntermediatesAreRemovedOrKeptAndClosed) {
  const TemporaryDirectory directory;
  Store store(directory / "store");
  const fs::path running = store.path("S.intermediate.run.rb");
  const fs::path kept = store.path("S.intermediate.kept.rb");
  const Buffer words = numbered(7 * 9);
  const auto use = [&](Workspace& workspace) {
    SlowMatrix S = workspace.matrix("S", 7, 9);
    SlowMatrix T = workspace.matrix("T", 7, 9);
    EXPECT_EQ(S.name(), "S");
    Machine machine(100);
    {
      const Tile s = machine.read(S.whole());
      EXPECT_TRUE(same_bits(s(6, 8), kUnwritten));
    }
    HostAccess::put(S, words);
    EXPECT_TRUE(fs::exists(running));
    const Tile s = machine.read(S.whole());
    EXPECT_EQ(s(6, 8), 62);
  };
  StoreWorkspace workspace(store);
  use(workspace);
  EXPECT_FALSE(fs::exists(running)) << "removed when it dies";
  use(workspace);  // with the same name again
  workspace.finish();
  EXPECT_TRUE(fs::is_empty(store.directory()));
  {
    StoreWorkspace failing(store, true);
    use(failing);
  }
  EXPECT_TRUE(fs::is_empty(store.directory())) << "no run finished";
  {
    StoreWorkspace keeping(store, true);
    use(keeping);
    EXPECT_TRUE(fs::exists(running));
    keeping.finish();
    EXPECT_TRUE(fs::exists(kept) && !fs::exists(running));
  }
  EXPECT_EQ(store.names(), std::vector<std::string>{"S.intermediate.kept"});
  EXPECT_TRUE(same_bits(all_of(*store.open("S.intermediate.kept.rb")->matrix()), words));
}

TEST(Store, MakesItsDirectoryAndNamesWhatItCannotMake) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "new";
  {
    const Store store(path);
    EXPECT_TRUE(fs::is_directory(path));
    EXPECT_EQ(store.directory(), path);
  }
  { const Store store(path); }
  const fs::path deep = directory / "not/there";
  expect_parts(message_of<std::system_error>([&] { const Store store(deep); }),
               {deep.string(), "No such file or directory"});
  const fs::path file = directory.write("file", "words");
  expect_parts(message_of<std::system_error>([&] { const Store store(file); }),
               {file.string(), "Not a directory"});
  Store store(path);
  const auto make = [&](const std::string& name) {
    static_cast<void>(store.create(name, sector_rows(2), Life::lasting));
  };
  expect_parts(message_of<std::system_error>([&] { make("not/there.rb"); }),
               {(path / "not/there.rb").string(), "No such file or directory"});
  expect_parts(message_of<std::system_error>([&] { static_cast<void>(store.open("none.rb")); }),
               {(path / "none.rb").string(), "No such file or directory"});
  EXPECT_TRUE(fs::is_empty(path));
}

TEST(Store, RemovesWhatAKilledRunLeft) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  std::vector<std::shared_ptr<StoreFile>> files;
  std::unique_ptr<Store> others;
  const pid_t child = begin_child([&] {
    others = std::make_unique<Store>(path, StoreOptions{.direct = false});
    files.push_back(others->create("S.intermediate.run.rb", sector_rows(2), Life::temporary));
    files.push_back(others->create("g.run.rb", sector_rows(2), Life::temporary));
    files.push_back(others->create("A.rb", sector_rows(2), Life::lasting));
    files.back()->matrix()->close();
  });
  kill_child(child);
  Store store(path);
  EXPECT_TRUE(fs::exists(path / "g.run.rb")) << "the child made it";
  EXPECT_EQ(store.names(), std::vector<std::string>{"A"});
  store.remove_temporaries();
  EXPECT_FALSE(fs::exists(path / "S.intermediate.run.rb"));
  EXPECT_FALSE(fs::exists(path / "g.run.rb"));
  EXPECT_EQ(store.open("A.rb")->rows(), 2);
}

// Returns the bytes of nameless files in the directory that this process has open.
Index nameless_bytes(const fs::path& directory) {
  Index bytes = 0;
  const std::string inside = fs::canonical(directory).string() + "/";
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = fs::read_symlink(entry.path(), gone).string();
    if (file.starts_with(inside) && file.ends_with(" (deleted)")) {
      bytes += static_cast<Index>(fs::file_size(entry.path()));
    }
  }
  return bytes;
}

TEST(Store, SaysHowMuchRoomIsMissing) {
  const TemporaryDirectory directory;
  Store store(directory / "store");
  struct statvfs status {};
  ASSERT_EQ(::statvfs(directory.path().c_str(), &status), 0);
  const Index free = static_cast<Index>(status.f_bavail) * static_cast<Index>(status.f_frsize);
  try {
    store.reserve(Words(free) * 2);
    FAIL() << "twice of what is free";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_space_on_device);
    const std::string message = error.what();
    expect_parts(message, {store.directory().string(), " bytes free", " more for this run"});
    // The message gives both numbers. The tolerance allows for other users of the disk.
    const auto number_after = [&](const std::string& text) {
      return std::stod(message.substr(message.find(text) + text.size()));
    };
    EXPECT_NEAR(number_after(" has "), static_cast<double>(free), 0.2 * static_cast<double>(free));
    EXPECT_NEAR(number_after(" needs "), static_cast<double>(free),
                0.2 * static_cast<double>(free));
  }
  expect_parts(message_of<std::system_error>(
                   [&] { store.reserve(Words(std::numeric_limits<Index>::max()) * 3); }),
               {"far more"});
  EXPECT_EQ(nameless_bytes(store.directory()), 0);
}

// Reserved room is taken at once, and each new file takes its part from it.
TEST(Store, FilesTakeTheirPartOfTheRoomThatWasReserved) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  {
    Store store(path);
    const StoreLayout layout = sector_rows(10);
    const Index bytes = StoredMatrix::file_bytes(layout).value();
    store.reserve(Words(bytes) * 3);
    const Index reserved = nameless_bytes(path);
    if (reserved == 0) {
      GTEST_SKIP() << "the file system has no files without a name";
    }
    EXPECT_EQ(reserved, 3 * bytes);
    const auto first = store.create("1.rb", layout, Life::temporary);
    EXPECT_EQ(static_cast<Index>(fs::file_size(store.path("1.rb"))), bytes);
    EXPECT_EQ(nameless_bytes(path), 2 * bytes);
    store.reserve(bytes);  // replaces the earlier reservation
    EXPECT_EQ(nameless_bytes(path), bytes);
    const auto second = store.create("2.rb", layout, Life::temporary);
    const auto third = store.create("3.rb", layout, Life::temporary);  // more than was reserved
    EXPECT_EQ(nameless_bytes(path), 0);
    store.reserve(bytes);
  }
  EXPECT_EQ(nameless_bytes(path), 0) << "given back";
}

TEST(Store, SaysWhyItsRequestsAreOtherThanTheyMightBe) {
  const TemporaryDirectory directory;
  const std::string no_uring = unavailable(Engine::uring);
  {
    Store store(directory / "default");
    EXPECT_EQ(store.no_uring(), no_uring);
    EXPECT_EQ(store.engine(), no_uring.empty() ? Engine::uring : Engine::threads);
    EXPECT_EQ(store.indirect(), "") << "no request yet";
    const auto file = store.create("A.rb", sector_rows(2), Life::temporary);
    EXPECT_EQ(store.indirect(), file->matrix()->indirect());
    EXPECT_TRUE(store.indirect().empty() ||
                store.indirect() == "the file system has no direct I/O");
  }
  {
    Store store(directory / "cached", {.engine = Engine::threads, .direct = false});
    EXPECT_EQ(store.no_uring(), "not asked for");
    EXPECT_EQ(store.engine(), Engine::threads);
    const auto file = store.create("A.rb", sector_rows(2), Life::temporary);
    EXPECT_EQ(store.indirect(), "not asked for");
  }
  EXPECT_STREQ(to_string(Engine::uring), "io_uring");
  EXPECT_STREQ(to_string(Engine::threads), "threads");
  EXPECT_EQ(unavailable(Engine::threads), "");
  if (!no_uring.empty()) {
    Store store(directory / "asked", {.engine = Engine::uring});
    expect_parts(message_of<std::system_error>([&] {
                   static_cast<void>(store.create("A.rb", sector_rows(2), Life::temporary));
                 }),
                 {"io_uring"});
  }
}

// Holds a read back when it has ended, and releases it on request.
class Gate {
 public:
  [[nodiscard]] MakeQueue around(MakeQueue make) {
    return [this, make = std::move(make)] { return std::make_unique<Queue>(*this, make()); };
  }
  void hold_next_read() {
    const std::lock_guard lock(mutex_);
    state_ = State::waiting;
  }
  [[nodiscard]] bool holds_one() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return state_ == State::holding; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    state_ = State::open;
    changed_.notify_all();
  }

 private:
  enum class State { open, waiting, holding };

  class Queue final : public TransferQueue {
   public:
    Queue(Gate& gate, std::unique_ptr<TransferQueue> inner)
        : gate_(gate), inner_(std::move(inner)) {}
    void submit(Transfer& transfer) override { inner_->submit(transfer); }
    Transfer& wait() override {
      Transfer& transfer = inner_->wait();
      if (transfer.kind == Transfer::Kind::read) {
        gate_.pass();
      }
      return transfer;
    }

   private:
    Gate& gate_;
    std::unique_ptr<TransferQueue> inner_;
  };

  void pass() {
    std::unique_lock lock(mutex_);
    if (state_ == State::waiting) {
      state_ = State::holding;
      changed_.notify_all();
      changed_.wait(lock, [&] { return state_ == State::open; });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::open;
};

// Each thread has some rows of a shared matrix, in separate granules. It also reads other rows that
// do not change. The cached granules change between the threads all the time.
TEST(Store, ServesSeveralThreads) {
  constexpr Index kThreads = 4;
  constexpr Index kRows = 24;  // of each thread
  constexpr Index kCols = 200;
  constexpr int kMoves = kSanitized ? 40 : 120;
  const TemporaryDirectory directory;
  for (const bool small : {true, false}) {
    Store store(directory / "store", {.granule_bytes = kSector,
                                      .depth = small ? 2 : 4,
                                      .buffer_bytes = small ? kSector : 4 * kSector});
    const auto shared =
        store.create("A.rb", StoreLayout::for_blocks(kThreads * kRows, kCols, {8, kCols}, kSector),
                     Life::temporary);
    const auto constant =
        store.create("B.rb", StoreLayout::row_major(kRows, kCols, kSector), Life::temporary);
    const Buffer words = numbered(kRows * kCols);
    put(*constant->matrix(), words);
    {
      std::vector<std::jthread> threads;
      for (Index t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          Random random(static_cast<std::uint64_t>(t));
          RamBacking model(kRows, kCols);
          for (int move = 0; move < kMoves; ++move) {
            const Range I = draw_range(random, kRows);
            const Range J = draw_range(random, kCols);
            const Range its{t * kRows + I.begin, t * kRows + I.end};
            Buffer moved = draw_words(random, I.size() * J.size());
            if (between(random, 0, 1) == 0) {
              shared->matrix()->write(its, J, WordOrder::rows, moved);
              model.write(I, J, moved);
            } else {
              shared->matrix()->read(its, J, WordOrder::rows, moved);
              EXPECT_TRUE(same_bits(moved, expected(model, I, J, WordOrder::rows)));
            }
            EXPECT_TRUE(same_bits(
                row_of(*constant->matrix(), I.begin),
                std::span(words).subspan(static_cast<std::size_t>(I.begin * kCols), kCols)));
          }
        });
      }
    }
    shared->seal();
    expect_balanced(store);
  }
  // A granule read in part while another thread writes it is never cached with its old words.
  for (const bool whole : {false, true}) {
    Gate gate;
    Store store(directory / "store",
                {.granule_bytes = kSector, .queue = gate.around(threads_queue())});
    const auto file =
        store.create("A.rb", StoreLayout::row_major(8, 512, kSector), Life::temporary);
    StoredMatrix& matrix = *file->matrix();
    put(matrix, numbered(8 * 512));
    const Buffer words(whole ? 2 * 512 : 512, -1.0F);
    gate.hold_next_read();
    std::jthread reader([&] {  // row 3 of the granule of rows 2 and 3
      const Buffer row = row_of(matrix, 3);
      EXPECT_TRUE(row[0] == 3 * 512 || row[0] == -1);
    });
    ASSERT_TRUE(gate.holds_one());
    matrix.write({2, whole ? 4 : 3}, {0, 512}, WordOrder::rows, words);
    matrix.flush();
    gate.open();
    reader.join();
    EXPECT_EQ(row_of(matrix, 2)[0], -1);
    EXPECT_EQ(row_of(matrix, 3)[0], whole ? -1 : 3 * 512);
    EXPECT_EQ(row_of(matrix, 2)[511], -1);
  }
}

// Any of many requests in flight may fail. The failure is reported once, and the other requests
// end. Words that were not written are never taken for the new words.
TEST(Store, GoesOnAfterARequestThatFailed) {
  constexpr Index kRows = 20;
  const TemporaryDirectory directory;
  const Buffer old = numbered(kRows * kSectorWords);
  const Buffer words = numbered(kRows * kSectorWords, 1);
  for (Index k = 0; k < kRows; ++k) {
    for (const bool reads : {true, false}) {
      Faults faults({.kind = Fault::eio,
                     .which = reads ? k : 1 + kRows + k,  // header and old words first
                     .of = reads ? Fault::Of::reads : Fault::Of::writes});
      Store store(directory / "store", {.direct = false,
                                        .granule_bytes = kSector,
                                        .depth = 4,
                                        .buffer_bytes = kSector,
                                        .queue = faults.around(threads_queue(4))});
      const auto file = store.create("A.rb", sector_rows(kRows), Life::temporary);
      StoredMatrix& matrix = *file->matrix();
      put(matrix, old);
      if (reads) {
        const Index offset = granule_offset(matrix.layout(), k);
        expect_parts(message_of<std::system_error>([&] { all_of(matrix); }),
                     {"A.rb", "cannot read 4096 bytes at offset " + std::to_string(offset) + ":",
                      "Input/output error"});
        EXPECT_TRUE(same_bits(all_of(matrix), old));
      } else {
        EXPECT_THROW(put(matrix, words), std::system_error);
        Index lost = 0;
        for (Index row = 0; row < kRows; ++row) {
          try {
            const Buffer now = row_of(matrix, row);
            EXPECT_TRUE(now == numbered(kSectorWords, row * kSectorWords) ||
                        now == numbered(kSectorWords, row * kSectorWords + 1));
          } catch (const StoreError&) {
            ++lost;
          }
        }
        EXPECT_GE(lost, 1);
      }
      put(matrix, words);
      EXPECT_TRUE(same_bits(all_of(matrix), words));
      file->seal();
    }
  }
}

TEST(Store, StopsBeforeAnyWindow) {
  struct Stopped {};
  const TemporaryDirectory directory;
  int left = std::numeric_limits<int>::max();
  Store store(directory / "store", {.before_each = [&] {
                if (left-- == 0) {
                  throw Stopped();
                }
              }});
  SlowMatrix A = store.matrix("A", store.fresh("A.rb", 4, 5, Life::temporary));
  SlowMatrix B = store.matrix("B", store.fresh("B.rb", 4, 5, Life::temporary));
  HostAccess::put(A, numbered(20));
  Machine machine(40);
  const auto run = [&] {
    for (const Range I : blocks(4, 1)) {
      machine.write(machine.read(A.row_block(I)), B.row_block(I));
    }
  };
  for (int moves = 0; moves < 8; ++moves) {
    const IoCount before = total(machine.phases()).io;
    const StoreTraffic traffic = store.ledger().of(Purpose::inputs);
    left = moves;
    EXPECT_THROW(run(), Stopped);
    EXPECT_EQ((total(machine.phases()).io - before),
              (IoCount{5 * ((moves + 1) / 2), 5 * (moves / 2)}));
    const StoreTraffic now = store.ledger().of(Purpose::inputs);
    EXPECT_EQ(now.read.words - traffic.read.words, 5 * kWord * ((moves + 1) / 2));
    EXPECT_EQ(now.written.words - traffic.written.words, 5 * kWord * (moves / 2));
    EXPECT_EQ(machine.live(), 0);
  }
  left = 8;
  run();
  left = std::numeric_limits<int>::max();
  Buffer back(20);
  HostAccess::get(B, back);
  EXPECT_EQ(back, numbered(20));
}

Index resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  Index total_pages = 0;
  Index resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

TEST(Store, TakesLittleMemoryWhateverTheSizeOfItsMatrices) {
  if (kSanitized) {
    GTEST_SKIP() << "sanitizers keep what was freed";
  }
  constexpr Index kRows = 8192;  // 32 MiB
  constexpr Index kStep = 32;
  constexpr Index kBuffers = Index{8} * 128 * 1024;
  const TemporaryDirectory directory;
  Store store(directory / "store", {.granule_bytes = kSector, .buffer_bytes = kBuffers / 8});
  Buffer words(kStep * kSectorWords);
  const Index before = resident_bytes();
  Index most = before;
  const auto file = store.create("A.rb", sector_rows(kRows), Life::temporary);
  for (const bool write : {true, false}) {
    for (const Range I : blocks(kRows, kStep)) {
      if (write) {
        file->matrix()->write(I, {0, kSectorWords}, WordOrder::rows, words);
      } else {
        file->matrix()->read(I, {0, kSectorWords}, WordOrder::rows, words);
      }
      most = std::max(most, resident_bytes());
    }
  }
  EXPECT_LT(most - before, kBuffers + Index{1024} * 1024);
}

// ---- Ledger ------------------------------------------------------------------------------

StoreBytes operator-(StoreBytes a, const StoreBytes& b) {
  StoreBytes minus{.requests = -b.requests,
                   .moved = -b.moved,
                   .words = -b.words,
                   .whole_granules = -b.whole_granules,
                   .padding = -b.padding,
                   .checksums = -b.checksums,
                   .headers = -b.headers,
                   .repeated = -b.repeated,
                   .at_hand = -b.at_hand};
  return a += minus;
}

// Whole blocks move without extra bytes, each in the fewest requests that the buffers allow.
TEST(StoreLedger, WholeBlocksMoveOnceAndOnlyThey) {
  constexpr Index kGranule = 8192;
  const TemporaryDirectory directory;
  for (const auto& [buffer_bytes, requests] :
       {std::pair(kGranule, Index{5}), std::pair(4 * kGranule, Index{2}),
        std::pair(Index{512} * 1024, Index{1})}) {
    Store store(directory / "store", {.granule_bytes = kGranule, .buffer_bytes = buffer_bytes});
    // 12 blocks of 100 x 100 in 5 granules of 20 x 100 each, with 192 bytes behind each of them.
    const StoreLayout layout = store.layout(400, 300, {100, 100}, false);
    ASSERT_EQ(layout.granules(), 60);
    const auto file = store.create("A.rb", layout, Life::temporary);
    StoreTraffic created = store.ledger().of(Purpose::inputs);
    EXPECT_EQ(created.written.headers, kSector);
    EXPECT_EQ(created.written.moved, kSector);
    Buffer words(10000);
    const auto for_blocks = [&](const auto& move) {
      for (const Range I : blocks(400, 100)) {
        for (const Range J : blocks(300, 100)) {
          move(I, J);
        }
      }
    };
    const auto expect_blocks = [&, requests = requests](const StoreBytes& bytes) {
      EXPECT_EQ(bytes.words, kWord * 400 * 300);
      EXPECT_EQ(bytes.padding, 60 * 192);
      EXPECT_EQ(bytes.moved, 60 * kGranule);
      EXPECT_EQ(bytes.moved, bytes.itemised());
      EXPECT_EQ(bytes.requests, 12 * requests);
      EXPECT_EQ(
          bytes.whole_granules + bytes.checksums + bytes.headers + bytes.repeated + bytes.at_hand,
          0);
    };
    store.ledger().begin(Purpose::kernel);
    for_blocks([&](Range I, Range J) { file->matrix()->write(I, J, WordOrder::tile, words); });
    expect_blocks(store.ledger().of(Purpose::kernel).written);
    for_blocks(
        [&](Range I, Range J) { file->matrix()->read(I, J, WordOrder::transposed_tile, words); });
    expect_blocks(store.ledger().of(Purpose::kernel).read);
    EXPECT_EQ(store.ledger().of(Purpose::inputs).written.moved, created.written.moved)
        << "each for its purpose";

    store.ledger().begin(Purpose::results);
    file->seal();
    const StoreTraffic sealed = store.ledger().of(Purpose::results);
    EXPECT_EQ(sealed.written.moved, 2 * kSector);  // the table and the header
    EXPECT_EQ(sealed.written.checksums, kSector);
    EXPECT_EQ(sealed.written.headers, kSector);
    EXPECT_EQ(sealed.read.moved, 2 * kSector + 60 * kGranule) << "all is read back";
    expect_balanced(store);
  }
}

// Reading a part of a granule reads all of it, once while it is cached. A granule that was never
// written needs no read.
TEST(StoreLedger, PartsOfGranulesAreItemised) {
  const TemporaryDirectory directory;
  Store store(directory / "store", {.granule_bytes = kSector});
  const auto now = [&] { return store.ledger().of(Purpose::inputs); };
  // Granules of 2 rows of 500 words, and 96 bytes.
  const auto file = store.create("A.rb", StoreLayout::row_major(8, 500, kSector), Life::temporary);
  StoredMatrix& matrix = *file->matrix();
  StoreTraffic before = now();
  static_cast<void>(row_of(matrix, 0));
  StoreBytes bytes = now().read - before.read;
  EXPECT_EQ(bytes.words, 2000);
  EXPECT_EQ(bytes.at_hand, 2000) << "never written";
  EXPECT_EQ(bytes.requests, 0);

  put(matrix, numbered(8 * 500));
  before = now();
  static_cast<void>(row_of(matrix, 2));
  bytes = now().read - before.read;
  EXPECT_EQ(bytes.words, 2000);
  EXPECT_EQ(bytes.whole_granules, 2000);
  EXPECT_EQ(bytes.padding, 96);
  EXPECT_EQ(bytes.moved, kSector);
  EXPECT_EQ(bytes.at_hand, 0);

  before = now();
  static_cast<void>(row_of(matrix, 3));
  bytes = now().read - before.read;
  EXPECT_EQ(bytes.at_hand, 2000) << "it came with row 2";
  EXPECT_EQ(bytes.moved, 0);

  before = now();
  for (const Index i : {3, 2, 3}) {  // all cached
    matrix.write({i, i + 1}, {0, 500}, WordOrder::rows, numbered(500));
  }
  EXPECT_EQ((now().written - before.written).moved, 0);
  matrix.write({4, 5}, {0, 500}, WordOrder::rows, numbered(500));  // writes out rows 2 and 3
  bytes = now().written - before.written;
  EXPECT_EQ(bytes.words, 4 * 2000);
  EXPECT_EQ(bytes.at_hand, 4 * 2000);
  EXPECT_EQ(bytes.whole_granules, 4000);
  EXPECT_EQ(bytes.padding, 96);
  EXPECT_EQ(bytes.moved, kSector);
  EXPECT_EQ((now().read - before.read).moved, kSector);
  expect_balanced(store);

  // A matrix without a file is counted like one with a file.
  before = now();
  const SlowMatrix F = store.matrix("F", store.fresh("F.rb", 3, 4, Life::temporary));
  Buffer fresh(12);
  HostAccess::get(F, fresh);
  bytes = now().read - before.read;
  EXPECT_EQ(bytes.words, 12 * kWord);
  EXPECT_EQ(bytes.at_hand, 12 * kWord);
}

// A request that was cut short resumes where it was cut, and bytes that moved twice are reported.
TEST(StoreLedger, SaysWhatMovedTwice) {
  constexpr Index kGranules = 16;
  const TemporaryDirectory directory;
  Index repeated = 0;
  for (const Fault::Kind kind : {Fault::short_read, Fault::short_write}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      Faults faults({.kind = kind, .which = 1, .seed = seed});  // write 0 is the header
      Store store(directory / "store", {.granule_bytes = kSector,
                                        .buffer_bytes = kGranules / 2 * kSector,
                                        .queue = faults.around(threads_queue())});
      const auto file = store.create("A.rb", sector_rows(kGranules), Life::temporary);
      const Buffer words = numbered(kGranules * kSectorWords);
      put(*file->matrix(), words);
      EXPECT_TRUE(same_bits(all_of(*file->matrix()), words));
      ASSERT_EQ(faults.injected(), 1);
      expect_balanced(store);
      const StoreTraffic traffic = store.ledger().of(Purpose::inputs);
      const StoreBytes& bytes = kind == Fault::short_read ? traffic.read : traffic.written;
      EXPECT_EQ(bytes.requests, kind == Fault::short_read ? 3 : 4) << faults.text();
      EXPECT_EQ(bytes.moved - bytes.repeated - bytes.headers, kGranules * kSector);
      EXPECT_LT(bytes.repeated, kSector);
      repeated += bytes.repeated;
    }
  }
  EXPECT_GT(repeated, 0);
}

// ---- Files -------------------------------------------------------------------------------

// Opening a file, or reading all of it, finds any changed bit. A message about granules gives the
// offset.
TEST(StoredFile, AFlippedByteIsFoundWhereverItIs) {
  constexpr Index kRows = 3;
  const TemporaryDirectory directory;
  fs::path path;
  {
    Store store(directory / "store", {.direct = false});
    // Granules of 1 row of 700 words, and 1296 bytes behind them.
    const auto file =
        store.create("A.rb", StoreLayout::row_major(kRows, 700, kSector), Life::lasting);
    put(*file->matrix(), numbered(kRows * 700));
    file->seal();
    path = store.path("A.rb");
  }
  const Index size = static_cast<Index>(fs::file_size(path));
  ASSERT_EQ(size, (1 + 1 + kRows) * kSector);
  std::set<Index> places;
  for (Index byte = 0; byte < 100; ++byte) {
    places.insert(byte);                    // the header, and some of the bytes behind it
    places.insert(kSector + byte);          // the checksums of granules
    places.insert(2 * kSector - 1 - byte);  // and of the table
  }
  places.insert({kSector - 1, kSector + 2000});
  for (Index row = 0; row < kRows; ++row) {
    const Index begin = (2 + row) * kSector;
    places.insert(
        {begin, begin + 1, begin + 1400, begin + 2799, begin + 2800, begin + kSector - 1});
  }
  Store store(directory / "store", {.direct = false});
  int bit = 0;
  for (const Index place : places) {
    flip(path, place, bit % 8);
    const Index block = place / kSector * kSector;
    const std::string message = message_of<StoreError>([&] {
      const auto file = store.open("A.rb");
      file->matrix()->verify();
    });
    expect_parts(message, {path.string()});
    if (block > 0) {
      expect_parts(message, {"at offset " + std::to_string(block) + " "});
    }
    flip(path, place, bit % 8);
    ++bit;
  }
  EXPECT_EQ(store.open("A.rb")->matrix()->verify().granules, kRows) << "all is back";
}

// An old copy of a table is consistent in itself, but differs from the header or from memory.
TEST(StoredFile, AnOutdatedTableIsFound) {
  constexpr Index kRows = 4;
  const TemporaryDirectory directory;
  const fs::path path = make_closed(directory, kRows);
  const StoreLayout layout = sector_rows(kRows);
  const auto everything = [&] { return bytes_at(path, 0, (2 + kRows) * kSector); };
  const std::string old = everything();
  Store store(directory / "store", {.direct = false});
  {
    const auto file = store.open("A.rb");
    file->matrix()->write({1, 2}, {0, kSectorWords}, WordOrder::rows, numbered(kSectorWords));
    file->matrix()->close();
    // While the file is open, verify() does not rely on the copy in memory.
    const std::string table = bytes_at(path, kSector, kSector);
    set_bytes(path, kSector, old.substr(kSector, kSector));
    expect_parts(message_of<StoreError>([&] { file->matrix()->verify(); }),
                 {path.string(), "at offset 4096 "});
    set_bytes(path, kSector, table);
    EXPECT_EQ(file->matrix()->verify().granules, kRows);
  }
  const std::string now = everything();
  // The table alone, and the table together with its granule.
  for (const bool with_granule : {false, true}) {
    set_bytes(path, 0, now);
    set_bytes(path, kSector, old.substr(kSector, kSector));
    if (with_granule) {
      const Index offset = granule_offset(layout, 1);
      set_bytes(path, offset, old.substr(static_cast<std::size_t>(offset), kSector));
    }
    expect_parts(message_of<StoreError>([&] { static_cast<void>(store.open("A.rb")); }),
                 {path.string(), "tables of checksums"});
  }
  set_bytes(path, 0, now);
  EXPECT_NO_THROW(store.open("A.rb")->matrix()->verify());
}

// A checksum covers the granule's place and its present words.
TEST(StoredFile, ExchangedAndOutdatedGranulesAreFound) {
  constexpr Index kRows = 4;
  const TemporaryDirectory directory;
  const fs::path path = make_closed(directory, kRows);
  const StoreLayout layout = sector_rows(kRows);
  const auto granule = [&](Index k) { return bytes_at(path, granule_offset(layout, k), kSector); };
  const auto set = [&](Index k, const std::string& bytes) {
    set_bytes(path, granule_offset(layout, k), bytes);
  };
  const auto expect_found = [&](StoredMatrix& matrix, Index k) {
    const std::string where = "at offset " + std::to_string(granule_offset(layout, k)) + " ";
    expect_parts(message_of<StoreError>([&] { row_of(matrix, k); }), {path.string(), where});
    expect_parts(message_of<StoreError>([&] { matrix.verify(); }), {path.string(), where});
  };
  Store store(directory / "store", {.direct = false});
  {
    const std::string first = granule(0);
    const std::string third = granule(2);
    set(0, third);
    set(2, first);
    const auto file = store.open("A.rb");
    EXPECT_EQ(row_of(*file->matrix(), 1)[0], kSectorWords) << "the others are as they were";
    expect_found(*file->matrix(), 0);
    set(0, first);
    expect_found(*file->matrix(), 2);
    set(2, third);
    EXPECT_EQ(file->matrix()->verify().granules, kRows);
  }
  // Two granules with equal words also have different checksums, because their places differ.
  {
    const auto file = store.open("A.rb");
    put(*file->matrix(), Buffer(kRows * kSectorWords, 1.5F));
    file->seal();
    const std::string table = bytes_at(path, kSector, kSector);
    EXPECT_NE(table.substr(0, 8), table.substr(8, 8));
  }
  const std::string old = granule(3);
  const auto file = store.open("A.rb");
  for (const bool flushed : {false, true}) {
    const Buffer words(kSectorWords, flushed ? 3.0F : 2.0F);
    file->matrix()->write({3, 4}, {0, kSectorWords}, WordOrder::rows, words);
    if (flushed) {
      file->matrix()->flush();
    }
    set(3, old);
    expect_found(*file->matrix(), 3);
  }
}

// Equal words in the same layout have one fingerprint, however they were written. Other words have
// another fingerprint.
TEST(StoredFile, FingerprintsAreOfTheWords) {
  Random random(3);
  const TemporaryDirectory directory;
  Store store(directory / "store", {.direct = false, .granule_bytes = kSector});
  const StoreLayout layout = StoreLayout::for_blocks(60, 90, {25, 40}, kSector);
  const Buffer words = draw_words(random, 60 * 90);
  const auto fingerprint_of = [&](const auto& write) {
    const auto file = store.create("A.rb", layout, Life::lasting);
    write(*file->matrix());
    file->seal();
    const std::uint64_t fingerprint = file->matrix()->fingerprint();
    EXPECT_NE(fingerprint, 0U);
    EXPECT_EQ(store.open("A.rb")->matrix()->fingerprint(), fingerprint);
    return fingerprint;
  };
  const std::uint64_t whole = fingerprint_of([&](StoredMatrix& matrix) { put(matrix, words); });
  RamBacking model(60, 90);
  model.write({0, 60}, {0, 90}, words);
  const std::uint64_t in_parts = fingerprint_of([&](StoredMatrix& matrix) {
    put(matrix, draw_words(random, 60 * 90));  // earlier words do not count
    for (const Range J : blocks(90, 7)) {
      for (const Range I : blocks(60, 11)) {
        matrix.write(I, J, WordOrder::tile, expected(model, I, J, WordOrder::tile));
      }
    }
  });
  EXPECT_EQ(in_parts, whole);
  // Other words that went through the buffers do not count either.
  put(*store.create("B.rb", sector_rows(1024), Life::temporary)->matrix(),
      draw_words(random, 1024 * kSectorWords));
  EXPECT_EQ(fingerprint_of([&](StoredMatrix& matrix) { put(matrix, words); }), whole);
  std::set<std::uint64_t> others{whole};
  for (int k = 0; k < 20; ++k) {
    Buffer other = words;
    auto& word = other[static_cast<std::size_t>(between(random, 0, 60 * 90 - 1))];
    word = std::bit_cast<float>(std::bit_cast<std::uint32_t>(word) ^ 1U << between(random, 0, 31));
    others.insert(fingerprint_of([&](StoredMatrix& matrix) { put(matrix, other); }));
  }
  EXPECT_GT(others.size(), 19U);
  others.insert(fingerprint_of([](StoredMatrix&) {}));
  EXPECT_GT(others.size(), 20U);
}

TEST(StoredFile, GranulesLargerThanTheBuffersAreRefused) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  const StoreLayout layout = StoreLayout::row_major(20, 4096, Index{64} * 1024);
  {
    Store store(path, {.buffer_bytes = Index{64} * 1024});
    const auto file = store.create("A.rb", layout, Life::lasting);
    file->seal();
  }
  Store store(path, {.granule_bytes = kSector, .buffer_bytes = Index{60} * 1024});
  expect_parts(message_of<StoreError>([&] { static_cast<void>(store.open("A.rb")); }),
               {(path / "A.rb").string(), "65536 bytes", "61440", "larger"});
  expect_parts(message_of<StoreError>(
                   [&] { static_cast<void>(store.create("B.rb", layout, Life::lasting)); }),
               {(path / "B.rb").string(), "65536 bytes", "61440"});
  EXPECT_FALSE(fs::exists(path / "B.rb"));
}

// After a run was killed, flushed words can be read, and unflushed words are never taken for
// written ones.
TEST(StoredFile, LeftOpenIsOpenedByWhoAsksForIt) {
  constexpr Index kRows = 6;
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  std::unique_ptr<Store> others;
  std::shared_ptr<StoreFile> file;
  const pid_t child = begin_child([&] {
    others = std::make_unique<Store>(path, StoreOptions{.direct = false});
    file = others->create("A.rb", sector_rows(kRows), Life::lasting);
    file->matrix()->write({0, 3}, {0, kSectorWords}, WordOrder::rows, numbered(3 * kSectorWords));
    file->matrix()->write({3, 4}, {0, 1}, WordOrder::rows, Buffer{42});
    file->matrix()->flush();
    file->matrix()->write({2, 3}, {0, kSectorWords}, WordOrder::rows, Buffer(kSectorWords, 7.0F));
    file->matrix()->write({4, 5}, {0, kSectorWords}, WordOrder::rows, Buffer(kSectorWords, 8.0F));
    file->matrix()->write({3, 4}, {1, 2}, WordOrder::rows, Buffer{43});
  });
  kill_child(child);
  Store store(path, {.direct = false});
  expect_parts(message_of<StoreError>([&] { static_cast<void>(store.open("A.rb")); }),
               {(path / "A.rb").string(), "never finished"});
  {
    const auto left = store.open("A.rb", Expect::left_open);
    StoredMatrix& matrix = *left->matrix();
    EXPECT_EQ(row_of(matrix, 0), numbered(kSectorWords));
    EXPECT_EQ(row_of(matrix, 1), numbered(kSectorWords, kSectorWords));
    EXPECT_THROW(row_of(matrix, 2), StoreError) << "neither what was flushed nor known";
    EXPECT_EQ(row_of(matrix, 3)[0], 42);
    EXPECT_TRUE(same_bits(row_of(matrix, 3)[1], kUnwritten)) << "not flushed";
    EXPECT_TRUE(same_bits(row_of(matrix, 4)[0], kUnwritten)) << "not known";
    EXPECT_TRUE(same_bits(row_of(matrix, 5)[0], kUnwritten));
    EXPECT_THROW(left->seal(), StoreError);
    matrix.write({2, 3}, {0, kSectorWords}, WordOrder::rows, Buffer(kSectorWords, 9.0F));
    EXPECT_EQ(matrix.verify().unwritten, 2);
    left->seal();
  }
  EXPECT_EQ(row_of(*store.open("A.rb")->matrix(), 2)[0], 9);
  EXPECT_NO_THROW(store.open("A.rb", Expect::left_open)->matrix()->verify()) << "closed will do";
}

TEST(StoredFile, TruncatedForeignAndNewerFilesAreRefused) {
  const TemporaryDirectory directory;
  const fs::path path = make_closed(directory, 3);
  const std::string whole = content_of(path);
  Store store(directory / "store");
  const auto refusal = [&](const std::string& content) {
    directory.write("store/A.rb", content);
    return message_of<StoreError>([&] { static_cast<void>(store.open("A.rb")); });
  };
  for (const std::size_t size : {whole.size() - 1, whole.size() - 4096, std::size_t{8192}}) {
    expect_parts(refusal(whole.substr(0, size)),
                 {path.string(), "truncated: " + std::to_string(size) + " bytes",
                  "expected " + std::to_string(whole.size())});
  }
  for (const std::string& content :
       {std::string(), std::string("\x93RBSTORE"), whole.substr(0, 4095), std::string(20480, '\0'),
        "\x93NUMPY" + std::string(20480, ' '), std::string(20480, '\xff')}) {
    expect_parts(refusal(content), {path.string(), "a foreign file"});
  }
  std::string newer = whole;
  newer[8] = 2;
  expect_parts(refusal(newer), {path.string(), "version (2 ", "reads version 1"});
  std::string doubles = whole;
  doubles[12] = 2;
  expect_parts(refusal(doubles), {path.string(), "elements 2"});
  std::string damaged = whole;
  damaged[16] = 4;  // rows
  expect_parts(refusal(damaged), {path.string(), "header at offset 0 is damaged"});
  directory.write("store/A.rb", whole);
  EXPECT_EQ(row_of(*store.open("A.rb")->matrix(), 2)[0], 2 * kSectorWords);
}

// verify() reads everything in the file, and does not rely on memory.
TEST(StoredFile, VerifyFindsWhatNobodyReads) {
  constexpr Index kRows = 4;
  const TemporaryDirectory directory;
  const fs::path path = directory / "store/A.rb";
  Store store(directory / "store", {.direct = false, .granule_bytes = kSector});
  for (const bool closed : {false, true}) {
    const auto file =
        store.create("A.rb", StoreLayout::row_major(2 * kRows, 512, kSector), Life::lasting);
    StoredMatrix& matrix = *file->matrix();
    put(matrix, numbered(2 * kRows * 512));
    closed ? matrix.close() : matrix.flush();
    for (const Index offset : {Index{0}, Index{80}, kSector - 1, kSector, kSector + 24,
                               2 * kSector - 1, 2 * kSector, 5 * kSector + 7, 6 * kSector - 1}) {
      static_cast<void>(row_of(matrix, 6));  // caches the last granule
      flip(path, offset);
      const std::string message = message_of<StoreError>([&] { matrix.verify(); });
      expect_parts(message, {path.string(),
                             "at offset " + std::to_string(offset / kSector * kSector) + " "});
      flip(path, offset);
      EXPECT_EQ(matrix.verify().unwritten, 0);
    }
    EXPECT_TRUE(same_bits(all_of(matrix), numbered(2 * kRows * 512)));
  }
}

// Returns the bytes that were read from disks for this process.
Index bytes_from_disks() {
  std::ifstream io("/proc/self/io");
  std::string what;
  for (Index bytes = 0; io >> what >> bytes;) {
    if (what == "read_bytes:") {
      return bytes;
    }
  }
  return 0;
}

// Words are read back from the disk, even if requests go through the system's cache, which holds
// all words just after they were written.
TEST(StoredFile, IsReadBackFromTheDisk) {
  constexpr Index kRows = 256;
  const TemporaryDirectory directory;
  Store store(directory / "store", {.direct = false, .granule_bytes = kSector});
  const auto file = store.create("A.rb", sector_rows(kRows), Life::lasting);
  put(*file->matrix(), numbered(kRows * kSectorWords));
  file->matrix()->close();
  // Checks whether this system reports reads.
  const Descriptor other(::open(store.path("A.rb").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::posix_fadvise(other.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  Index before = bytes_from_disks();
  static_cast<void>(content_of(store.path("A.rb")));
  if (bytes_from_disks() - before < kRows * kSector) {
    GTEST_SKIP() << "the file system reads from memory, or does not tell";
  }
  before = bytes_from_disks();
  static_cast<void>(all_of(*file->matrix()));
  EXPECT_LT(bytes_from_disks() - before, kRows * kSector) << "from the cache";
  before = bytes_from_disks();
  EXPECT_EQ(file->matrix()->verify().granules, kRows);
  EXPECT_GE(bytes_from_disks() - before, kRows * kSector);
}

TEST(StoredFile, WrittenAfterItWasClosedIsLeftOpen) {
  const TemporaryDirectory directory;
  make_closed(directory, 3);
  Store store(directory / "store", {.direct = false});
  {
    const auto file = store.open("A.rb");
    static_cast<void>(all_of(*file->matrix()));
    EXPECT_NE(file->matrix()->fingerprint(), 0U);
  }
  EXPECT_NO_THROW(static_cast<void>(store.open("A.rb"))) << "reading changes nothing";
  for (const Index columns : {kSectorWords, Index{1}}) {  // a whole granule, or a part of it
    {
      const auto file = store.open("A.rb");
      file->matrix()->write({1, 2}, {0, columns}, WordOrder::rows,
                            Buffer(static_cast<std::size_t>(columns), -5.0F));
      EXPECT_EQ(file->matrix()->fingerprint(), 0U);
      file->matrix()->flush();
    }
    expect_parts(message_of<StoreError>([&] { static_cast<void>(store.open("A.rb")); }),
                 {"A.rb", "never finished"});
    const auto left = store.open("A.rb", Expect::left_open);
    EXPECT_EQ(row_of(*left->matrix(), 1)[0], -5);
    EXPECT_EQ(row_of(*left->matrix(), 2)[0], 2 * kSectorWords);
    left->seal();
  }
  EXPECT_EQ(row_of(*store.open("A.rb")->matrix(), 1)[0], -5);
}

// Each window has separate granules, so killing a process that writes one window harms no other.
// Windows begin at multiples of the first window's rows, or anywhere if rows are apart.
void harms_no_other(StoreFile::Use::Apart apart, Index first, Index granules) {
  const TemporaryDirectory directory;
  const fs::path path = directory / "store";
  const Range done{first, first + 3}, killed{first + 3, first + 6};
  std::unique_ptr<Store> others;
  std::shared_ptr<StoreFile> file;
  constexpr Index kCols = 10;
  const pid_t child = begin_child([&] {
    others = std::make_unique<Store>(path, StoreOptions{.direct = false});
    file = others->fresh("A.rb", 12, kCols, Life::lasting, {.apart = apart});
    StoredMatrix& matrix = file->laid_out_for({3, kCols});
    matrix.write(done, {0, kCols}, WordOrder::rows, numbered(3 * kCols));
    matrix.write(killed, {0, kCols}, WordOrder::rows, numbered(3 * kCols));
    matrix.flush();
    matrix.write(killed, {0, kCols}, WordOrder::rows, Buffer(3 * kCols, 1.0F));
  });
  kill_child(child);
  Store store(path, {.direct = false});
  const auto left = store.open("A.rb", Expect::left_open);
  EXPECT_EQ(left->matrix()->layout().granules(), granules);
  EXPECT_EQ(row_of(*left->matrix(), done.end - 1), numbered(kCols, 2 * kCols));
  EXPECT_THROW(row_of(*left->matrix(), killed.begin), StoreError);
  EXPECT_TRUE(same_bits(row_of(*left->matrix(), killed.end)[0], kUnwritten));
}

TEST(StoredFile, WindowsApartHarmNoOther) {
  using Apart = StoreFile::Use::Apart;
  harms_no_other(Apart::windows, 0, 4);
  for (const Index first : {0, 1, 2, 5}) {
    harms_no_other(Apart::rows, first, 12);
  }
}

// ---- Tables ------------------------------------------------------------------------------

// The file has more tables than memory keeps. Each table returns unchanged, and a table that was
// changed in the file meanwhile is found.
TEST(StoredTables, MayLeaveMemory) {
  constexpr Index kTables = 11;
  constexpr Index kRows = (kTables - 1) * kChecksums + 100;
  Random random(5);
  const TemporaryDirectory directory;
  Store store(directory / "store", {.direct = false, .granule_bytes = kSector, .depth = 2});
  const StoreLayout layout = sector_rows(kRows);
  auto file = store.create("A.rb", layout, Life::temporary);
  std::vector<float> first(kRows, kUnwritten);
  for (int k = 0; k < 600; ++k) {
    const Index row = between(random, 0, kTables - 1) * kChecksums + between(random, 0, 99);
    const float word = static_cast<float>(k);
    const Index columns = k % 3 == 0 ? 1 : kSectorWords;
    if (k % 4 == 0) {
      ASSERT_TRUE(same_bits(row_of(*file->matrix(), row)[0], first[static_cast<std::size_t>(row)]));
    } else {
      file->matrix()->write({row, row + 1}, {0, columns}, WordOrder::rows,
                            Buffer(static_cast<std::size_t>(columns), word));
      first[static_cast<std::size_t>(row)] = word;
    }
  }
  const Index unwritten = std::ranges::count_if(first, [](float word) { return word != word; });
  EXPECT_EQ(file->matrix()->verify().unwritten, unwritten);
  const auto expect_all = [&] {
    const Buffer words = all_of(*file->matrix());
    for (Index i = 0; i < kRows; ++i) {
      ASSERT_TRUE(same_bits(words[static_cast<std::size_t>(i * kSectorWords)],
                            first[static_cast<std::size_t>(i)]))
          << i;
    }
  };
  expect_all();
  expect_balanced(store);
  // Table 0 is only on disk by now. An old copy of it is detected.
  const std::string old = bytes_at(store.path("A.rb"), table_offset(layout, 0), kSector);
  const auto touch = [&](Index table) {
    const Index row = table * kChecksums;
    file->matrix()->write({row, row + 1}, {0, kSectorWords}, WordOrder::rows,
                          Buffer(kSectorWords, 0.5F));
    first[static_cast<std::size_t>(row)] = 0.5F;
  };
  for (Index table = 0; table < kTables; ++table) {
    touch(table);
  }
  const std::string now = bytes_at(store.path("A.rb"), table_offset(layout, 0), kSector);
  EXPECT_NE(now, old) << "it has left memory";
  set_bytes(store.path("A.rb"), table_offset(layout, 0), old);
  expect_parts(message_of<StoreError>([&] { row_of(*file->matrix(), 0); }),
               {"A.rb", "table of checksums at offset " + std::to_string(table_offset(layout, 0))});
  set_bytes(store.path("A.rb"), table_offset(layout, 0), now);
  expect_all();

  file->seal();
  file->stay_as("B.rb");
  file = store.open("B.rb");
  expect_all();
}

// Granules on both sides of a table need separate requests. All others are read together.
TEST(StoredTables, CutRequests) {
  constexpr Index kRows = 2 * kChecksums + 10;
  const TemporaryDirectory directory;
  Store store(directory / "store",
              {.granule_bytes = kSector, .depth = 2, .buffer_bytes = kRows * kSector});
  const auto file = store.create("A.rb", sector_rows(kRows), Life::temporary);
  const Buffer words = numbered(kRows * kSectorWords);
  store.ledger().begin(Purpose::kernel);
  put(*file->matrix(), words);
  EXPECT_EQ(store.ledger().of(Purpose::kernel).written.requests, 3);
  EXPECT_TRUE(same_bits(all_of(*file->matrix()), words));
  EXPECT_EQ(store.ledger().of(Purpose::kernel).read.requests, 3);
  for (const Index row : {kChecksums - 1, kChecksums, kRows - 1}) {
    EXPECT_EQ(row_of(*file->matrix(), row), numbered(kSectorWords, row * kSectorWords));
  }
  file->seal();
}

}  // namespace
}  // namespace redblue
