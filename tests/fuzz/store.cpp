// Files of a store. The first byte of an input gives its kind:
//
//   even   a header of 128 bytes and the bytes after its sector. The file is read unchanged, and
//          again with the header's correct checksum. Otherwise the checksum stops most damage.
//   odd    damage of a file that redblue wrote. If the file still opens, it has the words that were
//          written, or the error gives the offset of the damage.

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <system_error>

#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "memsim/store/stored_matrix.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {
namespace {

constexpr std::size_t kSector = StoreLayout::kSector;
constexpr Index kBufferBytes = 16 * StoreLayout::kSector;

// Does requests at once, in this thread.
class AtOnce final : public TransferQueue {
 public:
  void submit(Transfer& transfer) override {
    const bool reads = transfer.kind == Transfer::Kind::read;
    auto* const bytes = transfer.bytes.data();
    const std::size_t size = transfer.bytes.size();
    transfer.result = reads ? ::pread(transfer.file, bytes, size, transfer.offset)
                            : ::pwrite(transfer.file, bytes, size, transfer.offset);
    done_.push_back(&transfer);
  }
  Transfer& wait() override {
    Transfer& transfer = *done_.back();
    done_.pop_back();
    return transfer;
  }

 private:
  std::vector<Transfer*> done_;
};

Channels& channels() {
  static Channels channels([] { return std::make_unique<AtOnce>(); }, 2, kBufferBytes);
  return channels;
}

std::vector<float> words_of(StoredMatrix& matrix) {
  constexpr Index kMost = Index{1} << 16;  // for a file that claims many words and has none
  const Index rows = std::min(matrix.rows(), std::max<Index>(kMost / matrix.cols(), 1));
  const Index cols = std::min(matrix.cols(), kMost);
  std::vector<float> words(static_cast<std::size_t>(rows * cols));
  matrix.read({0, rows}, {0, cols}, WordOrder::rows, words);
  return words;
}

// Returns the words of the file, or no value if it is refused.
std::optional<std::vector<float>> read(const std::filesystem::path& file,
                                       StoredMatrix::Expect expect) {
  return read_or_refused<StoreError, std::system_error>(file.string(), [&] {
    StoredMatrix matrix(file, false, channels(), expect);
    matrix.verify();
    return words_of(matrix);
  });
}

void feed_file(std::string_view header, std::string_view rest, StoredMatrix::Expect expect) {
  std::string content(header);
  content.resize(kSector);
  content += rest;
  content.resize((content.size() + kSector - 1) / kSector * kSector);
  read(scratch("a.rb", content), expect);
}

std::string with_checksum(std::string header) {
  constexpr std::size_t kBefore = 80;  // the bytes before the checksum
  const std::uint64_t sum = XXH3_64bits_withSeed(header.data(), kBefore, 0);
  std::memcpy(header.data() + kBefore, &sum, sizeof sum);
  return header;
}

struct Written {
  std::vector<float> words;
  std::string file;
};

// Makes a closed file with a layout chosen by five bytes.
using Choice = std::array<unsigned char, 5>;
Written written_as(const Choice& choice) {
  constexpr Index kMost = 7;
  const Index rows = choice[0] % kMost + 1;
  const Index cols = choice[1] % kMost + 1;
  const StoreLayout layout = StoreLayout::for_blocks(
      rows, cols, {choice[2] % kMost + 1, choice[3] % kMost + 1}, StoreLayout::kSector, choice[4]);
  Written written;
  for (Index k = 0; k < rows * cols; ++k) {
    written.words.push_back(static_cast<float>(k) + 0.5F);
  }
  const std::filesystem::path file = scratch("a.rb", "");
  {
    StoredMatrix matrix(file, layout, false, channels());
    matrix.write({0, rows}, {0, cols}, WordOrder::rows, written.words);
    matrix.close();
  }
  demand(read(file, StoredMatrix::Expect::closed) == written.words,
         "other words than were written");
  written.file = content_of(file);
  return written;
}

void feed_damaged(std::string_view input) {
  Choice choice{};
  if (input.size() < choice.size()) {
    return;
  }
  std::memcpy(choice.data(), input.data(), choice.size());
  input.remove_prefix(choice.size());
  const Written written = written_as(choice);
  std::string content = written.file;
  for (; input.size() >= 4; input.remove_prefix(4)) {  // a place, and the change of its byte
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(input[k]); };
    const std::size_t place =
        std::size_t{byte(0)} << 16U | std::size_t{byte(1)} << 8U | std::size_t{byte(2)};
    char& at = content[place % content.size()];
    at = static_cast<char>(at ^ input[3]);
  }
  const auto damaged = read(scratch("a.rb", content), StoredMatrix::Expect::closed);
  demand(!damaged || *damaged == written.words, "damage that nobody noticed");
  demand(damaged.has_value() || content != written.file, "a file without damage is refused");
}

}  // namespace

void store(std::string_view input) {
  constexpr std::size_t kHeader = 128;
  if (input.empty()) {
    return;
  }
  const auto kind = static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  if (kind % 2 != 0) {
    feed_damaged(input);
  } else {
    const auto expect =
        kind / 2 % 2 != 0 ? StoredMatrix::Expect::left_open : StoredMatrix::Expect::closed;
    std::string header(input.substr(0, kHeader));
    const std::string_view rest = input.substr(std::min(kHeader, input.size()));
    feed_file(header, rest, expect);
    header.resize(kHeader);
    feed_file(with_checksum(header), rest, expect);
  }
  demand_nothing_left();
}

}  // namespace redblue::fuzz
