// Tests entries with their values. They are the same from every SciPy format and from text, with
// explicit zeros. A value that is not a finite number is refused with the file and the place.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/patterns/pattern_files.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/zip_bytes.hpp"

namespace redblue {
namespace {

using std::filesystem::path;
using Members = std::vector<std::pair<std::string, std::string>>;

// 4 x 6: the blocks (0, 1) and (1, 0) of 2 x 3, with a 0 at (0, 4).
const BlockPattern kStored{4, 6, 1, 1, {0, 3, 6, 9, 12}, {3, 4, 5, 3, 4, 5, 0, 1, 2, 0, 1, 2}};
const std::vector<float> kValues = {1.5F, 0, 3, 4, 5, -6, 7, 8, 9, 10, 11, 12};

Members members(const std::string& format, const std::string& data) {
  return {{"format.npy", npy_file(npy_header("|S3", false, "()"), format)},
          {"shape.npy", npy_integers({4, 6})},
          {"data.npy", data}};
}

Members csr(const std::string& data) {
  Members found = members("csr", data);
  found.emplace_back("indptr.npy", npy_integers(kStored.offsets));
  found.emplace_back("indices.npy", npy_integers(kStored.columns));
  return found;
}

std::string array(const std::vector<float>& values, NpyForm form = {}) {
  return npy_bytes(std::ssize(values), 0, values, form);
}

class EntriesOfFiles : public testing::Test {
 protected:
  void expect_read(const std::string& name, const std::string& content) {
    const SparseMatrix found = read_entries(directory_.write(name, content));
    EXPECT_EQ(found.pattern, kStored);
    EXPECT_EQ(found.values, kValues);
  }
  void expect_refused(const std::string& name, const std::string& content, const std::string& why) {
    const path file = directory_.write(name, content);
    const std::string said = thrown<InputError>([&] { static_cast<void>(read_entries(file)); });
    EXPECT_TRUE(said.starts_with(file.string())) << said;
    EXPECT_TRUE(said.find(why) != std::string::npos) << said << "\nhas not\n" << why;
    EXPECT_EQ(said.find('\n'), std::string::npos);
  }

  TemporaryDirectory directory_{TemporaryDirectory::in_memory()};
};

TEST_F(EntriesOfFiles, OfEveryFormat) {
  expect_read("csr.npz", zip_bytes(csr(array(kValues))));
  expect_read("csr64.npz", zip_bytes(csr(array(kValues, {.float64 = true}))));
  // Stored by columns.
  Members csc = members("csc", array({7, 10, 8, 11, 9, 12, 1.5F, 4, 0, 5, 3, -6}));
  csc.emplace_back("indptr.npy", npy_integers({0, 2, 4, 6, 8, 10, 12}));
  csc.emplace_back("indices.npy", npy_integers({2, 3, 2, 3, 2, 3, 0, 1, 0, 1, 0, 1}));
  expect_read("csc.npz", zip_bytes(csc));
  // Stored from the last entry to the first.
  std::vector<Index> rows, columns;
  for (Index row = 0; row < 4; ++row) {
    for (const Index column : kStored.row(row)) {
      rows.insert(rows.begin(), row);
      columns.insert(columns.begin(), column);
    }
  }
  Members coo = members("coo", array({kValues.rbegin(), kValues.rend()}));
  coo.emplace_back("row.npy", npy_integers(rows));
  coo.emplace_back("col.npy", npy_integers(columns));
  expect_read("coo.npz", zip_bytes(coo));
  Members bsr = members("bsr", npy_bytes({2, 2, 3}, kValues));
  bsr.emplace_back("indptr.npy", npy_integers({0, 1, 2}));
  bsr.emplace_back("indices.npy", npy_integers({1, 0}));
  expect_read("bsr.npz", zip_bytes(bsr));
  std::string text = "%%MatrixMarket matrix coordinate real general\n4 6 12\n";
  for (std::size_t k = 0; k < kValues.size(); ++k) {
    text += std::to_string(rows[k] + 1) + " " + std::to_string(columns[k] + 1) + " " +
            std::to_string(kValues[kValues.size() - 1 - k]) + "\n";
  }
  expect_read("real.mtx", text);
}

TEST_F(EntriesOfFiles, OnesOfPatternsAndBothHalves) {
  const SparseMatrix ones = read_entries(
      directory_.write("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n2 3\n"));
  EXPECT_EQ(ones.values, std::vector<float>{1});
  EXPECT_EQ(ones.pattern, (BlockPattern{2, 3, 1, 1, {0, 0, 1}, {2}}));
  EXPECT_EQ(read_entries(directory_.write("a.smtx", "2, 3, 2\n0 1 2\n2 0\n")).values,
            (std::vector<float>{1, 1}));
  const SparseMatrix both = read_entries(directory_.write(
      "s.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n1 1 7\n2 1 -3\n"));
  EXPECT_EQ(both.values, (std::vector<float>{7, -3, -3}));
  EXPECT_EQ(read_entries(directory_.write("n.smtx", "2, 3, 0\n0 0 0\n\n")).pattern.stored(), 0);
}

TEST_F(EntriesOfFiles, Refused) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> values = kValues;
  values[7] = kNaN;
  expect_refused("a.npz", zip_bytes(csr(array(values))),
                 "nan at row 2, column 1; expected finite float32 numbers");
  values[7] = -kInf;
  expect_refused("a.npz", zip_bytes(csr(array(values))), "-inf at row 2, column 1");
  std::string large = array(kValues, {.float64 = true});
  large[large.size() - 1] = '\x7e';  // the exponent of the last value
  expect_refused("a.npz", zip_bytes(csr(large)), "at row 3, column 2; expected finite float32");
  expect_refused("a.npz", zip_bytes(csr(npy_integers(std::vector<Index>(12, 1)))),
                 "data.npy: elements of dtype \"<i8\"; expected float32 or float64");
  const std::string whole = zip_bytes(csr(array(kValues)));
  expect_refused("a.npz", whole.substr(0, whole.size() / 2), "");
  const std::string head = "%%MatrixMarket matrix coordinate real general\n2 2 1\n";
  expect_refused("a.mtx", head + "1 2 x\n", "line 3: the value is 'x'");
  expect_refused("a.mtx", head + "1 2 nan\n", "nan at row 0, column 1");
  expect_refused("a.mtx", head + "1 2 1e39\n", "1e+39 at row 0, column 1");
  expect_refused("a.mtx", "%%MatrixMarket matrix coordinate real general\n0 2 0\n",
                 "a matrix of 0 x 2; expected rows and columns");
  expect_refused("a.npy", array({1}), "expected a name that ends in .npz, .mtx or .smtx");
}

}  // namespace
}  // namespace redblue
