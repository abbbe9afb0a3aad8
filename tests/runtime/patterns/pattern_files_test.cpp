// Tests files of patterns. SciPy's files are read in every format. A broken file is refused with
// one line that names the file and the fault. files/make.py made the committed files.

#include "runtime/patterns/pattern_files.hpp"

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/patterns/text_patterns.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/memory.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/zip_bytes.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

path committed(const std::string& name) {
  return path(REDBLUE_SOURCE_DIR) / "tests/runtime/patterns/files" / name;
}

// The pattern that files/make.py wrote, and its blocks.
const BlockPattern kPattern{6, 8, 1, 1, {0, 3, 4, 4, 6, 7, 9}, {1, 2, 7, 0, 3, 4, 4, 0, 6}};
const BlockPattern kBlocks{6, 8, 2, 4, {0, 1, 1, 3}, {1, 0, 1}};

using Members = std::vector<std::pair<std::string, std::string>>;

// Returns the members of a SciPy csr, 3 x 4: (0, 1), (0, 3), (2, 0).
Members csr_members() {
  return {{"indices.npy", npy_integers({1, 3, 0})},
          {"indptr.npy", npy_integers({0, 2, 2, 3})},
          {"format.npy", npy_file(npy_header("|S3", false, "()"), "csr")},
          {"shape.npy", npy_integers({3, 4})},
          {"data.npy", npy_bytes(3, 0, {1, 0, 2})}};
}

Members with(const std::string& name, const std::string& content) {
  Members members = csr_members();
  for (auto& [member, held] : members) {
    if (member == name) {
      held = content;
    }
  }
  return members;
}

class PatternFiles : public testing::Test {
 protected:
  void expect_refused(const std::string& name, const std::string& content, const std::string& why,
                      Index n = 3, Index m = 4) {
    const path file = directory_.write(name, content);
    const std::string said = thrown<InputError>([&] {
      if (file.extension() == ".npy") {
        read_layout(file, n, m);
      } else {
        read_pattern(file, n, m);
      }
    });
    EXPECT_TRUE(said.starts_with(file.string())) << said;
    EXPECT_TRUE(contains(said, why)) << said << "\nhas not\n" << why;
    EXPECT_FALSE(contains(said, "\n")) << said;
  }

  TemporaryDirectory directory_{TemporaryDirectory::in_memory()};
};

TEST_F(PatternFiles, OfSciPyInEveryFormat) {
  for (const char* name :
       {"csr.npz", "csr_stored.npz", "csc.npz", "coo.npz", "general.mtx", "pattern.mtx"}) {
    EXPECT_EQ(read_pattern(committed(name), 6, 8), kPattern) << name;
  }
  EXPECT_EQ(read_pattern(committed("bsr.npz"), 6, 8), kBlocks);
  EXPECT_EQ(read_layout(committed("layout.npy"), 6, 8), kBlocks);
  EXPECT_EQ(Mask::pattern(read_pattern(committed("bsr_as_csr.npz"), 6, 8)), Mask::pattern(kBlocks));
  const BlockPattern symmetric{5, 5, 1, 1, {0, 1, 3, 4, 6, 7}, {0, 1, 3, 2, 1, 3, 4}};
  EXPECT_EQ(read_pattern(committed("symmetric.mtx"), 5, 5), symmetric);
  EXPECT_EQ(read_offsets(committed("offsets.npy"), 6), (std::vector<Index>{0, 2, 2, 6}));
  EXPECT_EQ(read_offsets(committed("key_offsets.npy"), 8), (std::vector<Index>{0, 3, 8, 8}));
}

TEST_F(PatternFiles, ZipsOfEveryKind) {
  const BlockPattern expected{3, 4, 1, 1, {0, 2, 2, 3}, {1, 3, 0}};
  Members more = csr_members();
  more.emplace_back("_is_array.npy", "what nobody reads");
  for (const std::string& zip :
       {zip_bytes(csr_members()), zip_bytes(csr_members(), {.zip64 = true}),
        zip_bytes(csr_members(), {.comment = "PK\5\6, made by hand"}), zip_bytes(more),
        zip_bytes(with("format.npy", npy_file(npy_header("<U3", false, "()"),
                                              std::string("c\0\0\0s\0\0\0r\0\0\0", 12))))}) {
    EXPECT_EQ(read_pattern(directory_.write("a.npz", zip), 3, 4), expected);
  }
}

TEST_F(PatternFiles, TextOfMatrixMarketAndDlmc) {
  const BlockPattern expected{3, 4, 1, 1, {0, 2, 2, 3}, {1, 3, 0}};
  for (const std::string text :
       {"%%MatrixMarket matrix coordinate real general\n3 4 3\n3 1 nan\n1 4 0\n1 2 1e9",
        "%%matrixmarket MATRIX Coordinate Integer General\r\n% of\n\n%\n  3 4\t3 \r\n\n1 2 7\r\n3 "
        "1 "
        "8\r\n1 4 9\r\n\n",
        "%%MatrixMarket matrix coordinate pattern general\n3 4 3\n1 2\n1 4\n3 1\n% end\n"}) {
    EXPECT_EQ(read_pattern(directory_.write("a.mtx", text), 3, 4), expected) << text;
  }
  for (const std::string text : {"3, 4, 3\n0 2 2 3\n1 3 0\n", "3, 4, 3\n0 2 2 3 \n1 3 0 ",
                                 "3,4,3\r\n0 2 2 3\r\n1 3 0\r\n"}) {
    EXPECT_EQ(read_pattern(directory_.write("a.smtx", text), 3, 4), expected) << text;
  }
  const BlockPattern nothing{2, 2, 1, 1, {0, 0, 0}, {}};
  EXPECT_EQ(read_pattern(directory_.write("a.smtx", "2, 2, 0\n0 0 0\n\n"), 2, 2), nothing);
  EXPECT_EQ(read_pattern(
                directory_.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 0\n"),
                2, 2),
            nothing);
}

// A matrix has no duplicates, unsorted columns or indices out of range. The message says that the
// file is wrong.
TEST_F(PatternFiles, NpzIsRefused) {
  const auto refused = [&](const std::string& name, const std::string& content,
                           const std::string& why) {
    expect_refused("a.npz", zip_bytes(with(name, content)), why);
  };
  refused("indices.npy", npy_integers({3, 1, 0}), "row 0 has column 1 after 3; expected sorted");
  refused("indices.npy", npy_integers({1, 1, 0}), "row 0 has column 1 twice");
  refused("indices.npy", npy_integers({1, 4, 0}), "column 4; expected 0 to 3");
  refused("indices.npy", npy_integers({-1, 3, 0}), "column -1; expected 0 to 3");
  refused("indices.npy", npy_integers({1, 3}), "indices.npy: 2 numbers; expected 3, one for each");
  refused("indptr.npy", npy_integers({0, 2, 1, 3}), "offsets that do not rise from 0 to 3");
  refused("indptr.npy", npy_integers({0, 2, 2, 2}), "offsets that do not rise from 0 to 3");
  refused("indptr.npy", npy_integers({0, 9, 9, 3}), "offsets that do not rise from 0 to 3");
  refused("indptr.npy", npy_integers({0, 2, 3}), "3 offsets; expected 4");
  refused("indptr.npy", npy_bytes(4, 0, {0, 2, 2, 3}), "indptr.npy: elements of dtype \"<f4\"");
  refused("indptr.npy", npy_integers({0, 2, 2, 3}) + "x", "bytes of data; expected 32 for shape");
  refused("indptr.npy", "no array", "a foreign file; expected a .npy");
  refused("shape.npy", npy_integers({4, 4}), "a matrix of 4 x 4; expected 3 x 4, n queries and m");
  refused("shape.npy", npy_integers({3, 4, 1}), "a matrix of 3 x 4 x 1; expected");
  refused("format.npy", npy_file(npy_header("|S3", false, "()"), "dia"),
          "format \"dia\"; expected csr, bsr, csc or coo");
  refused("format.npy", npy_integers({1}), "no text");
  refused("data.npy", npy_bytes(2, 0, {1, 2}), "3 numbers; expected 2");
  refused("data.npy", npy_bytes(3, 1, {1, 2, 3}), "data.npy: 2 dimensions; expected 1");
  expect_refused("a.npz", zip_bytes({}),
                 "no member format.npy: not a sparse matrix of SciPy; write it with scipy.sparse");
  expect_refused("a.npz", zip_bytes(csr_members(), {.method = 12}), "is compressed by method 12");
  expect_refused("a.npz", zip_bytes(csr_members(), {.method = 8}), "is damaged");
  expect_refused("a.npz", zip_bytes(csr_members(), {.flags = 1}), "is encrypted");
  Members twice = csr_members();
  twice.push_back(twice.front());
  expect_refused("a.npz", zip_bytes(twice), "member indices.npy is there twice");
  expect_refused("a.npz", "no zip", "no .zip file, or a truncated one");
  expect_refused("a.txt", "1", "expected a name that ends in .npz, .mtx or .smtx");
  EXPECT_TRUE(contains(thrown<InputError>([] { read_pattern(committed("dia.npz"), 4, 4); }),
                       "format \"dia\""));
  EXPECT_THROW(read_pattern(directory_ / "none.npz", 3, 4), std::system_error);
  std::filesystem::create_directory(directory_ / "d.npz");
  EXPECT_TRUE(contains(thrown<InputError>([&] { read_pattern(directory_ / "d.npz", 3, 4); }),
                       "not a regular file"));
}

TEST_F(PatternFiles, TextIsRefused) {
  const std::string head = "%%MatrixMarket matrix coordinate real general\n3 4 2\n";
  const auto mtx = [&](const std::string& text, const std::string& why) {
    expect_refused("a.mtx", text, why);
  };
  mtx("", "line 0: ''; expected %%MatrixMarket");
  mtx("%%MatrixMarket matrix array real general\n", "line 1: 'array'; expected coordinate");
  mtx("%%MatrixMarket matrix coordinate complex general\n", "'complex'; expected real, integer");
  mtx("%%MatrixMarket matrix coordinate real hermitian\n", "'hermitian'; expected general or");
  mtx("%%MatrixMarket matrix coordinate real general\n", "the number of rows is missing");
  mtx("%%MatrixMarket matrix coordinate real general\n3 x 2\n", "line 2: the number of columns is");
  mtx("%%MatrixMarket matrix coordinate real general\n4 3 2\n",
      "a matrix of 4 x 3; expected 3 x 4");
  mtx("%%MatrixMarket matrix coordinate real general\n3 4 4294967296\n", "fewer than 2^32");
  mtx(head + "1 2 3\n", "1 entries; expected 2");
  mtx(head + "1 2 3\n1 2 4\n", "line 4: entry 1, 2 is in line 3, too; expected each entry once");
  expect_refused("a.mtx",
                 "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n3 1\n% \n2 1\n3 1\n",
                 "line 6: entry 3, 1 is in line 3, too", 3, 3);
  mtx(head + "0 2 3\n", "line 3: entry 0, 2; expected 1 to 3, 1 to 4");
  mtx(head + "1 5 3\n", "line 3: entry 1, 5; expected 1 to 3, 1 to 4");
  mtx(head + "1 2\n", "line 3: the value is missing");
  mtx(head + "1 2 3 4\n", "line 3: '4' is too much");
  mtx(head + "1 2 3\n1 3 4\n1 4 1\n", "line 5: more than 2 entries");
  expect_refused("a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 1\n1 2 1\n",
                 "entry 1, 2 of a symmetric matrix; expected its lower half alone", 3, 3);
  const auto smtx = [&](const std::string& text, const std::string& why) {
    expect_refused("a.smtx", text, why);
  };
  smtx("", "the number of rows is missing");
  smtx("3, 4\n", "line 1: the number of entries is missing");
  smtx("3, 4, 3, 1\n", "line 1: '1' is too much");
  smtx("3, 4, 3\n0 2 2 3\n", "0 columns; expected 3");
  smtx("3, 4, 3\n0 2 2 3\n1 3 4\n", "column 4; expected 0 to 3");
  smtx("3, 4, 3\n1 2 2 3\n1 3 0\n", "offsets that do not rise from 0 to 3");
  smtx("3, 4, 3\n0 2 3\n1 3 0\n", "3 offsets; expected 4");
  smtx("3, 4, 3\n0 2 2 3\n1 3 0\n7\n", "line 4: '7' is too much");
  smtx("3, 4, 3\n0 2 2 3\n1 3 0.5\n", "line 3: a column is '0.5'");
}

TEST_F(PatternFiles, LayoutsAndOffsetsAreRefused) {
  const auto layout = [&](const std::string& npy, const std::string& why) {
    expect_refused("a.npy", npy, why, 6, 8);
  };
  const std::string marks("\0\1\0\1\1\0", 6);
  layout(npy_file(npy_header("|b1", false, "(6,)"), marks), "1 dimensions; expected 2");
  layout(npy_file(npy_header("|i1", false, "(3, 2)"), marks), "expected bool or uint8");
  layout(npy_file(npy_header("|b1", false, "(2, 3)"), marks),
         "2 x 3 blocks; n = 6 and m = 8 are no multiples");
  layout(npy_file(npy_header("|b1", false, "(0, 2)"), ""), "0 x 2 blocks");
  layout(npy_file(npy_header("|b1", false, "(3, 2)"), marks.substr(1)), "5 bytes of data");
  const path fortran = directory_.write(
      "f.npy", npy_file(npy_header("|u1", true, "(3, 2)"), std::string("\0\0\2\7\0\xff", 6)));
  EXPECT_EQ(read_layout(fortran, 6, 8), kBlocks);

  const auto offsets = [&](const std::string& npy, const std::string& why) {
    const path file = directory_.write("o.npy", npy);
    const std::string said = thrown<InputError>([&] { read_offsets(file, 9); });
    EXPECT_TRUE(contains(said, why)) << said;
  };
  offsets(npy_integers({0, 4, 8}), "offsets from 0 to 8; expected from 0 to 9");
  offsets(npy_integers({1, 9}), "offsets from 1 to 9; expected from 0 to 9");
  offsets(npy_integers({}), "no offsets");
  offsets(npy_integers({0, 5, 4, 9}), "offset 4 after 5; expected none less");
  offsets(npy_bytes(2, 0, {0, 9}), "elements of dtype \"<f4\"; expected integers");
  offsets(npy_file(npy_header("<u8", false, "(1,)"), std::string(8, '\xff')), "below 2^63");
}

// Any byte of a file is replaced, or any end of it is cut. The reader returns a pattern of the same
// shape or refuses in one line. Members with a checksum are never read as other data.
class PatternFuzz : public PatternFiles, public testing::WithParamInterface<const char*> {
 protected:
  void try_it(const std::string& content) {
    { std::ofstream(file_, std::ios::binary) << content; }
    try {
      const BlockPattern found =
          file_.extension() == ".npy" ? read_layout(file_, 6, 8) : read_pattern(file_, 6, 8);
      if (file_.extension() == ".npz") {
        EXPECT_EQ(found, original_);
      }
      const Mask mask = Mask::pattern(found);
      EXPECT_LE(mask.pairs({0, 6}, {0, 8}), Words(48));
    } catch (const InputError& error) {
      EXPECT_FALSE(contains(error.what(), "\n")) << error.what();
    }
  }

  const std::string name_ = GetParam();
  const std::string good_ = content_of(committed(name_));
  const path file_ = directory_ / name_;
  const BlockPattern original_ =
      path(name_).extension() == ".npz" ? read_pattern(committed(name_), 6, 8) : kPattern;
};

TEST_P(PatternFuzz, EveryByteReplaced) {
  for (std::size_t at = 0; at < good_.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x08, 0x0a, 0x20, 0x2d, 0x30, 0x39, 0x7f, 0x80, 0xff}) {
      std::string bad = good_;
      bad[at] = static_cast<char>(value);
      try_it(bad);
    }
    std::string bad = good_;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    try_it(bad);
  }
}

TEST_P(PatternFuzz, EveryTruncation) {
  for (std::size_t size = 0; size < good_.size(); ++size) {
    try_it(good_.substr(0, size));
  }
}

TEST_P(PatternFuzz, GarbledBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good_;
    for (std::size_t changes = 1 + random() % 6; changes > 0; --changes) {
      const std::size_t at = random() % bad.size();
      switch (random() % 3) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad.insert(at, 1, bad[random() % bad.size()]);
          break;
        default:
          bad.erase(at, 1);
      }
    }
    try_it(bad);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PatternFuzz,
                         testing::Values("csr.npz", "csr_stored.npz", "bsr.npz", "coo.npz",
                                         "general.mtx", "layout.npy"));

// A file of 60 bytes may state 2^32 - 1 rows, almost all of them empty. A matrix has a number for
// each row. Memory for these is refused before it is requested.
TEST_F(PatternFiles, EmptyRowsThatNoMemoryHolds) {
  constexpr std::uint64_t kNeeded = std::uint64_t{64} << 30;
  if (memory_available() > kNeeded) {
    GTEST_SKIP() << "there is memory for as many rows as a file may have";
  }
  for (const std::string kind : {"general", "symmetric"}) {
    const std::string refused = thrown<InputError>([&] {
      static_cast<void>(parse_mtx_entries(
          "%%MatrixMarket matrix coordinate real " + kind + "\n4294967295 4294967295 1\n1 1 1\n",
          "a.mtx", nullptr));
    });
    EXPECT_TRUE(contains(refused, "a.mtx: a matrix of 4294967295 rows would need 64.0 GiB"))
        << refused;
  }
  // A SciPy coo states its rows in the same way. A bsr has few block rows with many rows each.
  Members members = {{"row.npy", npy_integers({0})},
                     {"col.npy", npy_integers({0})},
                     {"format.npy", npy_file(npy_header("|S3", false, "()"), "coo")},
                     {"shape.npy", npy_integers({4294967295, 4})},
                     {"data.npy", npy_bytes(1, 0, {1})}};
  directory_.write("a.npz", zip_bytes(members));
  EXPECT_TRUE(
      contains(thrown<InputError>([&] { static_cast<void>(read_entries(directory_ / "a.npz")); }),
               "a.npz: a matrix of 4294967295 rows would need"));
}

}  // namespace
}  // namespace redblue
