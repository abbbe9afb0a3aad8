#pragma once
// A matrix in a file of a store:
//
//   header, then groups of: a table with the checksums of the next granules, and these granules.
//
// A checksum covers a slot as it was last written. It is stored away from the slot, so it reveals a
// slot that is torn, flipped, misplaced or stale. The checksums of the tables stay in memory while
// the file is open (8 bytes for each 511 granules). The header of a closed file has a checksum of
// all of them. Words that were never written read as NaN, without a request.
//
// Each open file caches up to 8 tables and two granules: the last one partly read and the last one
// partly written. Several threads may read and write a matrix, but only one thread may use a
// granule that is being written.

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

// The file is damaged, or is not a matrix, or the store is in use. The text is one line.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The order of a window's words in memory: row after row, or as a tile that is the window or its
// transpose.
enum class WordOrder { rows, tile, transposed_tile };

// Lends channels to threads. It must outlive the files.
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
  // Makes a fresh file, which replaces any file at that path. Throws (all): std::system_error with
  // the file and the offset; StoreError.
  StoredMatrix(std::filesystem::path path, const StoreLayout& layout, bool direct,
               Channels& channels);
  // Opens a file that was closed or, to continue it, one that was left open.
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
  // Empty, or the reason why requests go through the system's cache.
  [[nodiscard]] const std::string& indirect() const { return indirect_; }
  // Returns a checksum of all written words, or 0 unless the file is closed.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

  void read(Range rows, Range columns, WordOrder order, std::span<float> to);
  void write(Range rows, Range columns, WordOrder order, std::span<const float> from);
  // Reads everything back and checks header, tables and granules against their checksums. Returns
  // the number of all granules and the number of granules that were never written.
  struct Verified {
    Index granules = 0, unwritten = 0;
  };
  Verified verify();

  // Writes cached data to the file, and forces the file to disk.
  void flush();
  // As flush(); then marks the file as complete in its header.
  void close();
  void rename(const std::filesystem::path& to);
  // Returns the size of a file of this layout.
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
  std::mutex mutex_;                            // guards the members below
  std::vector<std::uint64_t> table_checksums_;  // 0: never written
  bool trusted_ = true;                         // false only while read_header() reads the tables
  std::vector<std::unique_ptr<Page>> pages_;    // cached, the most recently used last
  std::unique_ptr<AtHand> read_, written_;      // cached
  std::uint64_t writes_ = 0;  // number of writes so far; a granule read before the last write may
                              // be stale
  std::uint64_t fingerprint_ = 0;
};

}  // namespace redblue
