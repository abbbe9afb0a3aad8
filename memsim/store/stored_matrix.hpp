#pragma once
// A matrix in a file of a store:
//
//   header, then groups of: a table with the checksums of the next granules, and these granules.
//
// A checksum is of a slot as it was last written, and tells of torn, flipped, misplaced and stale
// ones, because it lies elsewhere; those of the tables stay in memory while the file is open (8
// bytes for each 511 granules), and a checksum of them all is in the header once it is closed. What
// was never written is NaN, and costs nothing.
//
// Beside its tables, of which a few are in memory, a file has two granules at hand: those of which
// parts were read last, and written last. May be read and written from several threads, but a
// granule only by one of them while it is written.

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "memsim/layout.hpp"
#include "memsim/store/channel.hpp"
#include "memsim/store/file.hpp"
#include "memsim/store/layout.hpp"

namespace redblue {

// What a file holds is not what was written, or not a matrix; or the store is in use. One line.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The words of a window in memory: row after row, or a tile that is the window or its transpose.
enum class WordOrder { rows, tile, transposed_tile };

// Lends channels to threads. It outlives the files.
class Channels {
 public:
  Channels(MakeQueue make, int depth, Index buffer_bytes)
      : make_(std::move(make)), depth_(depth), buffer_bytes_(buffer_bytes) {}

  struct Return {
    Channels* from;
    void operator()(Channel* channel) const noexcept;
  };
  using Lease = std::unique_ptr<Channel, Return>;
  [[nodiscard]] Lease lend();
  [[nodiscard]] Index buffer_bytes() const { return buffer_bytes_; }
  [[nodiscard]] Ledger& ledger() { return ledger_; }

 private:
  MakeQueue make_;
  int depth_;
  Index buffer_bytes_;
  Ledger ledger_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Channel>> all_;
  std::vector<Channel*> free_;
};

class StoredMatrix {
 public:
  // A fresh file, in place of what lies there. Throws (all): std::system_error, with the file and
  // where in it; StoreError.
  StoredMatrix(std::filesystem::path path, const StoreLayout& layout, bool direct,
               Channels& channels);
  // A file that was closed; or, to go on with, one that was not.
  enum class Expect { closed, left_open };
  StoredMatrix(std::filesystem::path path, bool direct, Channels& channels,
               Expect expect = Expect::closed);
  StoredMatrix(const StoredMatrix&) = delete;
  StoredMatrix& operator=(const StoredMatrix&) = delete;
  ~StoredMatrix();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const StoreLayout& layout() const { return layout_; }
  [[nodiscard]] Index rows() const { return layout_.rows.extent; }
  [[nodiscard]] Index cols() const { return layout_.columns.extent; }
  // Empty, or why requests go through the system's cache.
  [[nodiscard]] const std::string& indirect() const { return indirect_; }
  // Of all that was written; of a file that is closed.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

  void read(Range rows, Range columns, WordOrder order, std::span<float> to);
  void write(Range rows, Range columns, WordOrder order, std::span<const float> from);
  // Reads it all back: header, tables and granules are what was written. Returns how many granules
  // there are, and were never written.
  struct Verified {
    Index granules = 0, unwritten = 0;
  };
  Verified verify();

  // Whatever is in memory goes to the file, and that to the disk.
  void flush();
  // The same, and says in the header that all is there.
  void close();
  void rename(const std::filesystem::path& to);
  // The bytes that a file of this layout takes.
  static Words file_bytes(const StoreLayout& layout);

 private:
  struct Member {
    Granule granule;
    std::uint64_t checksum;
  };
  struct Page;
  struct AtHand;
  struct Run;

  void open(int flags, bool direct);
  void check_buffers() const;
  void write_header(bool closed, Channel& channel);
  void read_header(Expect expect);
  void check_header(Channel& channel);
  [[nodiscard]] std::int64_t page_offset(Index page) const;
  [[nodiscard]] std::int64_t offset(Index granule) const;
  [[nodiscard]] std::uint64_t checksum_of_tables() const;
  Page& page(Index which, Channel& channel);
  void write_page(Page& page, Channel& channel);
  std::uint64_t& checksum(Index granule, Channel& channel);
  void check(Index granule, std::uint64_t expected, std::span<const std::byte> slot) const;
  void transfer(Channel& channel, Transfer::Kind kind, std::int64_t offset,
                std::span<std::byte> bytes);
  template <class Arrived>
  void bring(Channel& channel, const std::vector<Member>& members, const Arrived& arrived) const;
  void take_in_hand(const Granule& granule, Channel& channel);
  void send_written(Channel& channel);
  void flush(Channel& channel);
  void sync() const;

  std::filesystem::path path_;
  StoreLayout layout_;
  Channels& channels_;
  Descriptor file_;
  std::string indirect_;
  std::mutex mutex_;                            // of what follows
  std::vector<std::uint64_t> table_checksums_;  // 0: never written
  bool trusted_ = true;  // they are those of the tables on disk; not of a file left open
  std::vector<std::unique_ptr<Page>> pages_;  // in memory; the last was used last
  std::unique_ptr<AtHand> read_, written_;    // at hand
  std::uint64_t writes_ = 0;  // so far: what was read before the last of them may be old
  std::uint64_t fingerprint_ = 0;
};

}  // namespace redblue
