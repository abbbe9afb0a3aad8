#include "memsim/store/stored_matrix.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace redblue {
namespace {

using FilePath = std::filesystem::path;

static_assert(std::endian::native == std::endian::little, "files hold little-endian words");

constexpr Index kDiskSector = StoreLayout::kSector;
// The number of granules in a table. A table's last entry is its own checksum.
constexpr Index kChecksums = kDiskSector / Index{sizeof(std::uint64_t)} - 1;
constexpr std::size_t kMostPages = 8;

struct Header {
  static constexpr std::array<char, 8> kMagic = {'\x93', 'R', 'B', 'S', 'T', 'O', 'R', 'E'};
  static constexpr std::uint32_t kVersion = 1;
  static constexpr std::uint32_t kFloat32 = 1;

  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t element = kFloat32;
  Index rows = 0, cols = 0, block_rows = 0, block_cols = 0, granule_rows = 0, granule_cols = 0;
  std::uint64_t closed = 0;
  std::uint64_t tables = 0;    // checksum of the tables' checksums; 0 until the file is closed
  std::uint64_t checksum = 0;  // checksum of all members above; zeros fill the sector
};

using Sector = std::array<std::byte, kDiskSector>;

Sector sector_of(const Header& header) {
  Sector sector{};
  std::memcpy(sector.data(), &header, sizeof(header));
  return sector;
}

// True if the two slots are adjacent, with no table between them.
bool follows(const Granule& granule, const Granule& before) {
  return granule.number == before.number + 1 && granule.number % kChecksums != 0;
}

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t place) {
  const std::uint64_t sum = XXH3_64bits_withSeed(bytes.data(), bytes.size(), place);
  return sum == 0 ? 1 : sum;  // 0 means no checksum
}

std::uint64_t checksum_of(const Header& header) {
  return checksum_of(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)), 0);
}

// Returns the header. `tables` is 0 for a file that is not closed.
Sector header_of(const StoreLayout& layout, std::uint64_t tables) {
  Header header{.rows = layout.rows.extent,
                .cols = layout.columns.extent,
                .block_rows = layout.rows.block,
                .block_cols = layout.columns.block,
                .granule_rows = layout.rows.piece,
                .granule_cols = layout.columns.piece,
                .closed = tables != 0 ? 1U : 0U,
                .tables = tables};
  header.checksum = checksum_of(header);
  return sector_of(header);
}

Range relative(Range range, Index begin) {
  return {range.begin - begin, range.end - begin};
}

// The words of a window in memory. Its functions find the part that a granule holds.
struct InMemory {
  Range rows, columns;
  WordOrder order;

  [[nodiscard]] bool covers(const Granule& granule) const {
    return common(rows, granule.rows) == granule.rows &&
           common(columns, granule.columns) == granule.columns;
  }
  [[nodiscard]] Index words_of(const Granule& granule) const {
    return common(rows, granule.rows).size() * common(columns, granule.columns).size();
  }
  // Calls visit(index in the granule's slot, index in memory, words) for each run contiguous in
  // both.
  template <class Visit>
  void for_runs(const Granule& granule, const Visit& visit) const {
    const Range I = relative(common(rows, granule.rows), rows.begin);
    const Range J = relative(common(columns, granule.columns), columns.begin);
    const Index stride = granule.columns.size();
    const Index first =
        (rows.begin - granule.rows.begin) * stride + columns.begin - granule.columns.begin;
    const Index height = rows.size();
    const Index width = columns.size();
    switch (order) {
      case WordOrder::rows:
        for (Index i = I.begin; i < I.end; ++i) {
          visit(first + i * stride + J.begin, i * width + J.begin, J.size());
        }
        return;
      case WordOrder::tile:
        for_tile_runs(height, width, I, J, [&](Index i, Index j, Index place, Index words) {
          visit(first + i * stride + j, place, words);
        });
        return;
      case WordOrder::transposed_tile:
        for_transposed_runs(height, width, I, J, [&](Index i, Index j, Index place, Index words) {
          for (Index k = 0; k < words; ++k) {
            visit(first + (i + k) * stride + j, place + k, Index{1});
          }
        });
        return;
    }
  }
  void fetch(const Granule& granule, const float* slot, std::span<float> to) const {
    for_runs(granule, [&](Index at, Index place, Index words) {
      std::copy_n(slot + at, words, to.data() + place);
    });
  }
  void put(const Granule& granule, std::span<const float> from, float* slot) const {
    for_runs(granule, [&](Index at, Index place, Index words) {
      std::copy_n(from.data() + place, words, slot + at);
    });
  }
};

float* words_of(std::byte* bytes) {
  return reinterpret_cast<float*>(bytes);
}

constexpr Index kWord = sizeof(float);

}  // namespace

// ---- Channels ----------------------------------------------------------------------------

Channels::Lease Channels::lend() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.reserve(all_.size() + 1);  // so that returning a channel cannot fail
    all_.push_back(std::make_unique<Channel>(make_, depth_, buffer_bytes_, ledger_));
    free_.push_back(all_.back().get());
  }
  Channel* channel = free_.back();
  free_.pop_back();
  return {channel, {this}};
}

void Channels::Return::operator()(Channel* channel) const noexcept {
  channel->abandon();
  const std::lock_guard lock(from->mutex_);
  from->free_.push_back(channel);
}

// ---- Caches ------------------------------------------------------------------------------

struct StoredMatrix::Page {
  Index which = 0;
  bool changed = false;
  std::array<std::uint64_t, kChecksums + 1> checksums{};  // the last is the table's own

  [[nodiscard]] std::span<std::byte> bytes() {
    return std::as_writable_bytes(std::span(checksums));
  }
  [[nodiscard]] std::uint64_t own() {
    return checksum_of(bytes().first(kChecksums * sizeof(std::uint64_t)),
                       static_cast<std::uint64_t>(which) + 1);
  }
};

struct StoredMatrix::AtHand {
  explicit AtHand(Index slot_bytes) : slot(static_cast<std::size_t>(slot_bytes)) {}
  std::optional<Granule> granule;
  bool changed = false;  // changed since it was last written to the file
  std::vector<std::byte> slot;

  [[nodiscard]] bool is(const Granule& other) const {
    return granule && granule->number == other.number;
  }
  void drop() {
    granule.reset();
    changed = false;
  }
  [[nodiscard]] float* words() { return words_of(slot.data()); }
};

// Adjacent granules of the file, in one buffer.
struct StoredMatrix::Run {
  Channel::Buffer* buffer = nullptr;
  Index size = 0;
  Granule first, last;
};

// ---- The file ----------------------------------------------------------------------------

StoredMatrix::StoredMatrix(FilePath path, const StoreLayout& layout, bool direct,
                           Channels& channels)
    : path_(std::move(path)),
      layout_(layout),
      channels_(channels),
      table_checksums_(static_cast<std::size_t>(ceil_div(layout.granules(), kChecksums))),
      read_(std::make_unique<AtHand>(layout.slot_bytes())),
      written_(std::make_unique<AtHand>(layout.slot_bytes())) {
  check_buffers();
  open(O_RDWR | O_CREAT | O_TRUNC, direct);
  try {
    const std::int64_t size = file_bytes(layout_).value();
    // A disk without room fails here rather than later. A file system that cannot reserve room
    // fails at a write.
    if (const int error = allocate(file_.get(), size); error != 0 && error != EOPNOTSUPP) {
      fail(error, "make room for " + std::to_string(size) + " bytes in", path_);
    }
    if (::ftruncate(file_.get(), size) != 0) {
      fail(errno, "size", path_);
    }
    write_header(false, *channels_.lend());
  } catch (...) {
    ::unlink(path_.c_str());
    throw;
  }
}

StoredMatrix::StoredMatrix(FilePath path, bool direct, Channels& channels, Expect expect)
    : path_(std::move(path)), channels_(channels) {
  open(O_RDWR, direct);
  read_header(expect);
}

StoredMatrix::~StoredMatrix() = default;

void StoredMatrix::open(int flags, bool direct) {
  if (direct) {
    file_ = Descriptor(::open(path_.c_str(), flags | O_DIRECT | O_CLOEXEC, 0666));
    if (file_.get() < 0 && errno != EINVAL) {
      fail(errno, "open", path_);
    }
    indirect_ = "the file system has no direct I/O";
  } else {
    indirect_ = "not asked for";
  }
  if (file_.get() < 0) {
    file_ = Descriptor(::open(path_.c_str(), flags | O_CLOEXEC, 0666));
    if (file_.get() < 0) {
      fail(errno, "open", path_);
    }
  } else {
    indirect_.clear();
  }
}

// The file may come from a store with larger buffers.
void StoredMatrix::check_buffers() const {
  if (layout_.slot_bytes() > channels_.buffer_bytes()) {
    throw StoreError(path_.string() + ": its granules are of " +
                     std::to_string(layout_.slot_bytes()) + " bytes, the store's buffers of " +
                     std::to_string(channels_.buffer_bytes()) + ": open it with larger ones");
  }
}

Words StoredMatrix::file_bytes(const StoreLayout& layout) {
  const Index granules = layout.granules();
  return Words(granules) * layout.slot_bytes() +
         Words(1 + ceil_div(granules, kChecksums)) * kDiskSector;
}

std::int64_t StoredMatrix::page_offset(Index page) const {
  return kDiskSector + page * (kDiskSector + kChecksums * layout_.slot_bytes());
}

std::int64_t StoredMatrix::offset(Index granule) const {
  return page_offset(granule / kChecksums) + kDiskSector +
         granule % kChecksums * layout_.slot_bytes();
}

// Makes one request and waits for it.
void StoredMatrix::transfer(Channel& channel, Transfer::Kind kind, std::int64_t offset,
                            std::span<std::byte> bytes) {
  Channel::Buffer& buffer = channel.free_buffer();
  if (kind == Transfer::Kind::write) {
    std::ranges::copy(bytes, buffer.all.begin());
  }
  channel.start(buffer, kind, file_.get(), path_, offset, static_cast<Index>(bytes.size()), [&] {
    if (kind == Transfer::Kind::read) {
      std::ranges::copy(buffer.all.first(bytes.size()), bytes.begin());
    }
  });
  channel.finish();
}

std::uint64_t StoredMatrix::checksum_of_tables() const {
  return checksum_of(std::as_bytes(std::span(table_checksums_)), 0);
}

void StoredMatrix::write_header(bool closed, Channel& channel) {
  const std::uint64_t tables = closed ? checksum_of_tables() : 0;
  Sector bytes = header_of(layout_, tables);
  transfer(channel, Transfer::Kind::write, 0, bytes);
  channels_.ledger().add(Ledger::Direction::write, {.headers = kDiskSector});
  fingerprint_ = tables;
}

void StoredMatrix::check_header(Channel& channel) {
  Sector bytes{};
  transfer(channel, Transfer::Kind::read, 0, bytes);
  channels_.ledger().add(Ledger::Direction::read, {.headers = kDiskSector});
  if (bytes != header_of(layout_, fingerprint_)) {
    throw StoreError(path_.string() +
                     ": the header at offset 0 is not what was written (torn, flipped or stale)");
  }
}

void StoredMatrix::read_header(Expect expect) {
  const auto refuse = [&](const std::string& why) {
    throw StoreError(path_.string() + ": " + why);
  };
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) {
    fail(errno, "look at", path_);
  }
  if (status.st_size < kDiskSector) {
    refuse("a foreign file; expected a matrix of a store");
  }
  Sector bytes{};
  const Channels::Lease channel = channels_.lend();
  transfer(*channel, Transfer::Kind::read, 0, bytes);
  channels_.ledger().add(Ledger::Direction::read, {.headers = kDiskSector});
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != Header::kMagic) {
    refuse("a foreign file; expected a matrix of a store");
  }
  if (header.version != Header::kVersion || header.element != Header::kFloat32) {
    refuse("its header at offset 0 is of another version (" + std::to_string(header.version) +
           " of elements " + std::to_string(header.element) +
           "; this redblue reads version 1 of float32), or damaged");
  }
  if (header.checksum != checksum_of(header) || bytes != sector_of(header)) {
    refuse("its header at offset 0 is damaged: import the matrix again");
  }
  layout_ = {.rows = {header.rows, header.block_rows, header.granule_rows},
             .columns = {header.cols, header.block_cols, header.granule_cols}};
  for (const Cut& cut : {layout_.rows, layout_.columns}) {
    if (cut.piece < 1 || cut.block < cut.piece || cut.extent < cut.block) {
      refuse("its header at offset 0 makes no sense: import the matrix again");
    }
  }
  const bool countable = !(Words(header.rows) * header.cols * kWord + kDiskSector).overflowed();
  if (!countable || file_bytes(layout_).overflowed()) {
    refuse("its header at offset 0 says 2^63 bytes or more: import the matrix again");
  }
  if (const Words expected = file_bytes(layout_); !(Words(status.st_size) == expected)) {
    refuse((Words(status.st_size) < expected ? "truncated: " : "too long: ") +
           std::to_string(status.st_size) + " bytes; expected " + std::to_string(expected.value()));
  }
  if (header.closed == 0 && expect == Expect::closed) {
    refuse("it was never finished: its writer ended before; import or make the matrix again");
  }
  check_buffers();
  read_ = std::make_unique<AtHand>(layout_.slot_bytes());
  written_ = std::make_unique<AtHand>(layout_.slot_bytes());
  table_checksums_.resize(static_cast<std::size_t>(ceil_div(layout_.granules(), kChecksums)));
  // The true checksums of the tables are not known yet, so each table's own entry is trusted.
  trusted_ = false;
  for (std::size_t k = 0; k < table_checksums_.size(); ++k) {
    table_checksums_[k] = page(static_cast<Index>(k), *channel).checksums.back();
  }
  trusted_ = true;
  if (header.closed != 0 && checksum_of_tables() != header.tables) {
    refuse("its tables of checksums are not those that were written: import the matrix again");
  }
  fingerprint_ = header.tables;
}

// ---- Checksums ---------------------------------------------------------------------------

StoredMatrix::Page& StoredMatrix::page(Index which, Channel& channel) {
  const auto known = std::ranges::find(pages_, which, [](const auto& page) { return page->which; });
  if (known != pages_.end()) {
    std::rotate(known, known + 1, pages_.end());
    return *pages_.back();
  }
  std::unique_ptr<Page> page;
  if (pages_.size() < kMostPages) {
    page = std::make_unique<Page>();
  } else {
    if (pages_.front()->changed) {
      write_page(*pages_.front(), channel);
    }
    page = std::move(pages_.front());
    pages_.erase(pages_.begin());
    *page = Page();
  }
  page->which = which;
  const std::uint64_t expected = table_checksums_[static_cast<std::size_t>(which)];
  if (expected != 0 || !trusted_) {
    transfer(channel, Transfer::Kind::read, page_offset(which), page->bytes());
    channels_.ledger().add(Ledger::Direction::read, {.checksums = kDiskSector});
    const std::uint64_t own = page->checksums.back();
    const bool unwritten = !trusted_ && page->checksums == Page().checksums;
    if (!unwritten && (own != page->own() || (trusted_ && own != expected))) {
      throw StoreError(path_.string() + ": the table of checksums at offset " +
                       std::to_string(page_offset(which)) +
                       " is not what was written (torn, flipped or stale)");
    }
  }
  pages_.push_back(std::move(page));
  return *pages_.back();
}

void StoredMatrix::write_page(Page& page, Channel& channel) {
  page.checksums.back() = page.own();
  transfer(channel, Transfer::Kind::write, page_offset(page.which), page.bytes());
  channels_.ledger().add(Ledger::Direction::write, {.checksums = kDiskSector});
  table_checksums_[static_cast<std::size_t>(page.which)] = page.checksums.back();
  page.changed = false;
}

std::uint64_t& StoredMatrix::checksum(Index granule, Channel& channel) {
  return page(granule / kChecksums, channel)
      .checksums[static_cast<std::size_t>(granule % kChecksums)];
}

void StoredMatrix::check(Index granule, std::uint64_t expected,
                         std::span<const std::byte> slot) const {
  if (checksum_of(slot, static_cast<std::uint64_t>(granule) + 1) != expected) {
    throw StoreError(path_.string() + ": the " + std::to_string(slot.size()) + " bytes at offset " +
                     std::to_string(offset(granule)) +
                     " are not what was written (torn, flipped or stale)");
  }
}

// ---- Words -------------------------------------------------------------------------------

// Reads adjacent granules in one request.
template <class Arrived>
void StoredMatrix::bring(Channel& channel, const std::vector<Member>& members,
                         const Arrived& arrived) const {
  const Index slot = layout_.slot_bytes();
  const auto most = static_cast<std::size_t>(channel.buffer_bytes() / slot);
  for (std::size_t first = 0; first < members.size();) {
    std::size_t end = first + 1;
    while (end < members.size() && end - first < most &&
           follows(members[end].granule, members[end - 1].granule)) {
      ++end;
    }
    Channel::Buffer& buffer = channel.free_buffer();
    channel.start(
        buffer, Transfer::Kind::read, file_.get(), path_, offset(members[first].granule.number),
        static_cast<Index>(end - first) * slot, [&, first, end] {
          for (std::size_t k = first; k < end; ++k) {
            const auto its = buffer.all.subspan((k - first) * static_cast<std::size_t>(slot),
                                                static_cast<std::size_t>(slot));
            check(members[k].granule.number, members[k].checksum, its);
            arrived(members[k].granule, its);
          }
        });
    first = end;
  }
  channel.finish();
}

// Cached granules are copied under the lock. Other granules are read without it, so that several
// threads can have requests in flight.
void StoredMatrix::read(Range rows, Range columns, WordOrder order, std::span<float> to) {
  const InMemory window{rows, columns, order};
  const Channels::Lease channel = channels_.lend();
  StoreBytes bytes{.words = kWord * rows.size() * columns.size()};
  std::vector<Member> members;
  std::uint64_t writes = 0;
  {
    const std::lock_guard lock(mutex_);
    writes = writes_;
    layout_.for_granules(rows, columns, [&](const Granule& granule) {
      const Index wanted = kWord * window.words_of(granule);
      for (AtHand* at_hand : {written_.get(), read_.get()}) {
        if (at_hand->is(granule)) {
          window.fetch(granule, at_hand->words(), to);
          bytes.at_hand += wanted;
          return;
        }
      }
      const std::uint64_t expected = checksum(granule.number, *channel);
      if (expected == 0) {
        window.for_runs(granule, [&](Index, Index place, Index words) {
          std::fill_n(to.data() + place, words, std::numeric_limits<float>::quiet_NaN());
        });
        bytes.at_hand += wanted;
        return;
      }
      members.push_back({granule, expected});
      bytes.whole_granules += kWord * granule.words() - wanted;
      bytes.padding += layout_.slot_bytes() - kWord * granule.words();
    });
  }
  bring(*channel, members, [&](const Granule& granule, std::span<std::byte> slot) {
    window.fetch(granule, words_of(slot.data()), to);
    if (!window.covers(granule)) {
      const std::lock_guard lock(mutex_);
      if (writes_ == writes) {
        read_->granule = granule;
        std::ranges::copy(slot, read_->slot.begin());
      }
    }
  });
  channels_.ledger().add(Ledger::Direction::read, bytes);
}

void StoredMatrix::write(Range rows, Range columns, WordOrder order, std::span<const float> from) {
  const InMemory window{rows, columns, order};
  const Index slot = layout_.slot_bytes();
  const Channels::Lease channel = channels_.lend();
  const std::lock_guard lock(mutex_);
  ++writes_;
  StoreBytes bytes{.words = kWord * rows.size() * columns.size()};
  Run run;
  if (fingerprint_ != 0) {  // the header must stop saying closed
    write_header(false, *channel);
  }

  const auto start = [&] {
    if (run.size > 0) {
      channel->start(*run.buffer, Transfer::Kind::write, file_.get(), path_,
                     offset(run.first.number), run.size * slot);
      run.size = 0;
    }
  };

  layout_.for_granules(rows, columns, [&](const Granule& granule) {
    if (!window.covers(granule)) {
      if (!written_->is(granule)) {
        start();  // so that no buffer is held back
        channel->finish();
        take_in_hand(granule, *channel);
      }
      window.put(granule, from, written_->words());
      written_->changed = true;
      bytes.at_hand += kWord * window.words_of(granule);
      return;
    }
    for (AtHand* at_hand : {written_.get(), read_.get()}) {
      if (at_hand->is(granule)) {
        at_hand->drop();
      }
    }
    if (run.size == 0 || run.size == channel->buffer_bytes() / slot ||
        !follows(granule, run.last)) {
      start();
      run.buffer = &channel->free_buffer();
      run.first = granule;
    }
    const auto its = run.buffer->all.subspan(static_cast<std::size_t>(run.size * slot),
                                             static_cast<std::size_t>(slot));
    window.put(granule, from, words_of(its.data()));
    const auto used = static_cast<std::size_t>(kWord * granule.words());
    std::ranges::fill(its.subspan(used), std::byte{0});
    Page& table = page(granule.number / kChecksums, *channel);
    table.checksums[static_cast<std::size_t>(granule.number % kChecksums)] =
        checksum_of(its, static_cast<std::uint64_t>(granule.number) + 1);
    table.changed = true;
    run.last = granule;
    ++run.size;
    bytes.padding += slot - kWord * granule.words();
  });
  start();
  channel->finish();
  channels_.ledger().add(Ledger::Direction::write, bytes);
}

// Caches a granule for writing: its words in the file, or NaN if it was never written.
void StoredMatrix::take_in_hand(const Granule& granule, Channel& channel) {
  send_written(channel);
  if (read_->is(granule)) {
    std::swap(read_, written_);
    return;
  }
  written_->drop();
  const std::uint64_t expected = checksum(granule.number, channel);
  if (expected == 0) {
    std::ranges::fill(written_->slot, std::byte{0});
    std::fill_n(written_->words(), granule.words(), std::numeric_limits<float>::quiet_NaN());
  } else {
    transfer(channel, Transfer::Kind::read, offset(granule.number), written_->slot);
    check(granule.number, expected, written_->slot);
    channels_.ledger().add(Ledger::Direction::read,
                           {.whole_granules = kWord * granule.words(),
                            .padding = layout_.slot_bytes() - kWord * granule.words()});
  }
  written_->granule = granule;
}

void StoredMatrix::send_written(Channel& channel) {
  if (!written_->changed) {
    return;
  }
  const Granule& granule = *written_->granule;
  Page& table = page(granule.number / kChecksums, channel);
  table.checksums[static_cast<std::size_t>(granule.number % kChecksums)] =
      checksum_of(written_->slot, static_cast<std::uint64_t>(granule.number) + 1);
  table.changed = true;
  transfer(channel, Transfer::Kind::write, offset(granule.number), written_->slot);
  channels_.ledger().add(Ledger::Direction::write,
                         {.whole_granules = kWord * granule.words(),
                          .padding = layout_.slot_bytes() - kWord * granule.words()});
  written_->changed = false;
}

StoredMatrix::Verified StoredMatrix::verify() {
  const Channels::Lease channel = channels_.lend();
  const std::lock_guard lock(mutex_);
  flush(*channel);
  read_->drop();
  written_->drop();
  pages_.clear();
  if (!indirect_.empty()) {  // drops the system's cache as far as it allows: the disk is read
    static_cast<void>(::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED));
  }
  check_header(*channel);
  Verified verified{.granules = layout_.granules()};
  std::vector<Member> members;
  const auto bring_them = [&] {
    bring(*channel, members, [](const Granule&, std::span<std::byte>) {});
    channels_.ledger().add(
        Ledger::Direction::read,
        {.whole_granules = static_cast<Index>(members.size()) * layout_.slot_bytes()});
    members.clear();
  };
  for (Index granule = 0; granule < verified.granules; ++granule) {
    if (const std::uint64_t expected = checksum(granule, *channel); expected == 0) {
      ++verified.unwritten;
    } else {
      members.push_back({{granule, {}, {}}, expected});
    }
    // Large batches, because the disk is idle between them.
    if (static_cast<Index>(members.size()) == Index{kMostPages} * kChecksums) {
      bring_them();
    }
  }
  bring_them();
  return verified;
}

void StoredMatrix::flush(Channel& channel) {
  send_written(channel);
  for (const auto& page : pages_) {
    if (page->changed) {
      write_page(*page, channel);
    }
  }
}

void StoredMatrix::sync() const {
  if (::fdatasync(file_.get()) != 0) {
    fail(errno, "force to disk", path_);
  }
}

void StoredMatrix::flush() {
  const Channels::Lease channel = channels_.lend();
  const std::lock_guard lock(mutex_);
  flush(*channel);
  sync();
}

void StoredMatrix::close() {
  const Channels::Lease channel = channels_.lend();
  const std::lock_guard lock(mutex_);
  flush(*channel);
  sync();
  write_header(true, *channel);
  sync();
}

void StoredMatrix::rename(const FilePath& to) {
  if (::rename(path_.c_str(), to.c_str()) != 0) {
    fail(errno, "rename " + path_.string() + " to", to);
  }
  path_ = to;
  force_name(to);
}

}  // namespace redblue
