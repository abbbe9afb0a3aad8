#include "runtime/patterns/pattern_files.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/patterns/entries.hpp"
#include "runtime/patterns/npy_array.hpp"
#include "runtime/patterns/text_patterns.hpp"
#include "runtime/patterns/zip.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/tensor_path.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// A sparse matrix of SciPy.
class Npz {
 public:
  explicit Npz(const std::filesystem::path& file) : file_(file), zip_(read_whole(file), file) {
    if (!zip_.has_member("format.npy")) {
      throw InputError(
          fmt::format("{}: no member format.npy: not a sparse matrix of SciPy; write it with "
                      "scipy.sparse.save_npz, and a whole matrix with numpy.save, as .npy",
                      file.string()));
    }
  }

  [[nodiscard]] BlockPattern pattern(Index queries, Index keys) const {
    return stored(PatternFrame(file_, array("shape").integers(), queries, keys), nullptr);
  }
  [[nodiscard]] SparseMatrix matrix() const {
    const PatternFrame frame(file_, array("shape").integers());
    std::vector<Index> order;
    const BlockPattern found = stored(frame, &order);
    return frame.with_values(found, array("data").numbers(), order);
  }

 private:
  // `order` stays empty if entries are stored row by row.
  [[nodiscard]] BlockPattern stored(const PatternFrame& frame, std::vector<Index>* order) const {
    const std::string format = array("format").text();
    const bool blocks = format == "bsr";
    if (format != "csr" && !blocks && format != "csc" && format != "coo") {
      frame.refuse(fmt::format("format {:?}; expected csr, bsr, csc or coo", shortened(format)));
    }
    const NpyArray data = array("data");
    if (data.shape().size() != (blocks ? 3U : 1U)) {
      data.refuse(fmt::format("{} dimensions; expected {}", data.shape().size(), blocks ? 3 : 1));
    }
    const auto stored = static_cast<std::size_t>(data.shape().front());
    if (format == "coo") {
      return frame.of_entries(indices("row", stored), indices("col", stored), order);
    }
    if (format == "csc") {
      return frame.of_columns(array("indptr").integers(), indices("indices", stored), order);
    }
    BlockPattern found{
        frame.rows(), frame.cols(), 1, 1, array("indptr").integers(), indices("indices", stored)};
    if (blocks) {
      found.block_rows = data.shape()[1];
      found.block_cols = data.shape()[2];
    }
    return frame.checked(std::move(found));
  }
  [[nodiscard]] NpyArray array(const std::string& name) const {
    const std::string member = name + ".npy";
    return {zip_.member(member), fmt::format("{}, {}", file_.string(), member)};
  }
  // Returns the indices, one for each stored entry or block.
  [[nodiscard]] std::vector<Index> indices(const std::string& name, std::size_t stored) const {
    const NpyArray numbers = array(name);
    std::vector<Index> found = numbers.integers();
    if (found.size() != stored) {
      numbers.refuse(
          fmt::format("{} numbers; expected {}, one for each of data.npy", found.size(), stored));
    }
    return found;
  }

  const std::filesystem::path& file_;
  ZipFile zip_;
};

void check_name(const std::filesystem::path& file) {
  if (!is_sparse_file(file)) {
    throw InputError(
        fmt::format("{}: expected a name that ends in .npz, .mtx or .smtx", file.string()));
  }
}

}  // namespace

bool is_sparse_file(const std::filesystem::path& file) {
  const std::string kind = file.extension().string();
  return !tensor_path(file) && (kind == ".npz" || kind == ".mtx" || kind == ".smtx");
}

BlockPattern read_pattern(const std::filesystem::path& file, Index queries, Index keys) {
  check_name(file);
  const std::string kind = file.extension().string();
  return kind == ".npz"   ? Npz(file).pattern(queries, keys)
         : kind == ".mtx" ? parse_mtx(read_whole(file), file, queries, keys)
                          : parse_smtx(read_whole(file), file, queries, keys);
}

SparseMatrix read_entries(const std::filesystem::path& file) {
  check_name(file);
  const std::string kind = file.extension().string();
  return kind == ".npz"   ? Npz(file).matrix()
         : kind == ".mtx" ? parse_mtx_entries(read_whole(file), file)
                          : parse_smtx_entries(read_whole(file), file);
}

BlockPattern marked(BlockPattern of, const std::vector<bool>& marks) {
  auto mark = marks.begin();
  for (Index row = 0; row < of.rows / of.block_rows; ++row) {
    for (Index col = 0; col < of.cols / of.block_cols; ++col) {
      if (*mark++) {
        of.columns.push_back(col);
      }
    }
    of.offsets.push_back(of.stored());
  }
  return of;
}

BlockPattern read_layout(const std::filesystem::path& file, Index queries, Index keys) {
  const NpyArray layout(read_whole(file), file);
  const std::vector<bool> marks = layout.marks();  // refuses other than two dimensions
  const Index rows = layout.shape().front();
  const Index cols = layout.shape().back();
  if (rows == 0 || cols == 0 || queries % rows != 0 || keys % cols != 0) {
    layout.refuse(fmt::format("{} blocks; n = {} and m = {} are no multiples",
                              in_words(layout.shape()), queries, keys));
  }
  return marked({queries, keys, queries / rows, keys / cols}, marks);
}

std::vector<Index> read_offsets(const std::filesystem::path& file, Index last) {
  const NpyArray array(read_whole(file), file);
  std::vector<Index> offsets = array.integers();
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != last) {
    array.refuse(offsets.empty() ? fmt::format("no offsets; expected some from 0 to {}", last)
                                 : fmt::format("offsets from {} to {}; expected from 0 to {}",
                                               offsets.front(), offsets.back(), last));
  }
  if (const auto falls = std::ranges::adjacent_find(offsets, std::greater<>());
      falls != offsets.end()) {
    array.refuse(fmt::format("offset {} after {}; expected none less than the one before",
                             *std::next(falls), *falls));
  }
  return offsets;
}

}  // namespace redblue
