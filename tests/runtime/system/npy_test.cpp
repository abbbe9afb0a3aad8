// Tests .npy files. NumPy's files are read bit for bit. A broken file is refused with one line that
// names the file and the fault. An output appears completely or not at all.

#include "runtime/system/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <csignal>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

// Returns a file made by hand. The text is the header, unchanged, and the version decides the
// length field.
std::string npy(const std::string& header, const std::string& data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += {major, '\0'};
  for (std::size_t i = 0; i < (major == 1 ? 2U : 4U); ++i) {
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return file + header + data;
}

std::string dict(const std::string& descr, bool fortran, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

template <typename Number>
std::string npy_bytes_of(const std::vector<Number>& numbers, bool big_endian = false) {
  std::string bytes;
  for (const Number number : numbers) {
    std::array<char, sizeof(Number)> b = std::bit_cast<std::array<char, sizeof(Number)>>(number);
    if (big_endian != (std::endian::native == std::endian::big)) {
      std::reverse(b.begin(), b.end());
    }
    bytes.append(b.data(), b.size());
  }
  return bytes;
}

// 3 x 2: rows (0.5, -1), (2, 3), (4, 5).
const std::vector<float> kNpyRows = {0.5F, -1, 2, 3, 4, 5};
const std::vector<float> kColumns = {0.5F, 2, 4, -1, 3, 5};

std::vector<float> read_all(const NpyReader& reader) {
  std::vector<float> out(static_cast<std::size_t>(reader.rows() * reader.cols()));
  reader.read_rows({0, reader.rows()}, out);
  return out;
}

class Npy : public ::testing::Test {
 protected:
  // Opens a file and reads all of it. Returns the message of the InputError without the file's
  // name, or "".
  std::string refusal(const std::string& content) {
    const path file = directory_.write("in.npy", content);
    try {
      read_all(NpyReader(file));
    } catch (const InputError& error) {
      const std::string message = error.what();
      const std::string name = file.string() + ": ";
      EXPECT_TRUE(message.starts_with(name)) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return message.substr(name.size());
    }
    return "";
  }
  void expect_refusal(const std::string& content, const std::string& words) {
    EXPECT_NE(refusal(content).find(words), std::string::npos)
        << '"' << refusal(content) << "\" has not \"" << words << '"';
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_.path()), {}));
  }

  TemporaryDirectory directory_;
};

using NpyReaderTest = Npy;
using NpyWriterTest = Npy;

std::string message_of(const std::function<void()>& call, std::errc code) {
  try {
    call();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::make_error_condition(code)) << error.what();
    return error.what();
  }
  return "no std::system_error";
}

// ---- Reading

TEST_F(NpyReaderTest, EveryVersionTypeByteOrderAndLayout) {
  for (const char major : {'\1', '\2', '\3'}) {
    for (const bool big : {false, true}) {
      for (const bool fortran : {false, true}) {
        for (const bool wide : {false, true}) {
          const std::vector<float>& stored = fortran ? kColumns : kNpyRows;
          const std::string data =
              wide ? npy_bytes_of(std::vector<double>(stored.begin(), stored.end()), big)
                   : npy_bytes_of(stored, big);
          const std::string descr = std::string(big ? ">" : "<") + (wide ? "f8" : "f4");
          const NpyReader reader(
              directory_.write("a.npy", npy(dict(descr, fortran, "(3, 2)"), data, major)));
          EXPECT_EQ(reader.shape(), (std::vector<Index>{3, 2}));
          EXPECT_EQ(reader.rows(), 3);
          EXPECT_EQ(reader.cols(), 2);
          EXPECT_EQ(reader.type(), wide ? ElementType::float64 : ElementType::float32);
          EXPECT_EQ(read_all(reader), kNpyRows);
        }
      }
    }
  }
}

// Two-byte numbers: kNpyRows in float16 and in bfloat16. bfloat16 has two names, one of them from
// ml_dtypes.
TEST_F(NpyReaderTest, HalvesOfBothKinds) {
  const std::vector<std::uint16_t> half = {0x3800, 0xbc00, 0x4000, 0x4200, 0x4400, 0x4500};
  const std::vector<std::uint16_t> brain = {0x3f00, 0xbf80, 0x4000, 0x4040, 0x4080, 0x40a0};
  const std::vector<std::uint16_t> columns = {0x3800, 0x4000, 0x4400, 0xbc00, 0x4200, 0x4500};
  const auto read = [&](const std::string& descr, bool fortran, const std::string& data) {
    const NpyReader reader(directory_.write("a.npy", npy(dict(descr, fortran, "(3, 2)"), data)));
    return std::pair(reader.type(), read_all(reader));
  };
  EXPECT_EQ(read("<f2", false, npy_bytes_of(half)), std::pair(ElementType::float16, kNpyRows));
  EXPECT_EQ(read(">f2", false, npy_bytes_of(half, true)),
            std::pair(ElementType::float16, kNpyRows));
  EXPECT_EQ(read("<f2", true, npy_bytes_of(columns)), std::pair(ElementType::float16, kNpyRows));
  EXPECT_EQ(read("<V2", false, npy_bytes_of(brain)), std::pair(ElementType::bfloat16, kNpyRows));
  EXPECT_EQ(read("bfloat16", false, npy_bytes_of(brain)),
            std::pair(ElementType::bfloat16, kNpyRows));
}

TEST_F(NpyReaderTest, OneDimensionIsOneColumn) {
  for (const bool fortran : {false, true}) {
    const NpyReader reader(
        directory_.write("l.npy", npy(dict("<f4", fortran, "(6,)"), npy_bytes_of(kNpyRows))));
    EXPECT_EQ(reader.shape(), std::vector<Index>{6});
    EXPECT_EQ(reader.rows(), 6);
    EXPECT_EQ(reader.cols(), 1);
    EXPECT_EQ(read_all(reader), kNpyRows);
  }
}

// The file is larger than the reader's buffer in both layouts, so that ranges cross its borders.
TEST_F(NpyReaderTest, AnyRangeOfRows) {
  constexpr Index kN = 100'003;
  constexpr Index kD = 3;
  std::vector<double> by_rows(kN * kD);
  std::vector<double> by_columns(kN * kD);
  for (Index i = 0; i < kN; ++i) {
    for (Index j = 0; j < kD; ++j) {
      by_rows[static_cast<std::size_t>(i * kD + j)] = static_cast<double>(i * kD + j);
      by_columns[static_cast<std::size_t>(j * kN + i)] = static_cast<double>(i * kD + j);
    }
  }
  for (const bool fortran : {false, true}) {
    const NpyReader reader(directory_.write(
        "a.npy",
        npy(dict("<f8", fortran, "(100003, 3)"), npy_bytes_of(fortran ? by_columns : by_rows))));
    for (const Range range : {Range{0, 0}, Range{0, 1}, Range{kN, kN}, Range{kN - 1, kN},
                              Range{17, 40'000}, Range{0, kN}}) {
      std::vector<float> out(static_cast<std::size_t>(range.size() * kD));
      reader.read_rows(range, out);
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], static_cast<float>(static_cast<std::size_t>(range.begin * kD) + i));
      }
    }
    std::vector<float> out(3);
    EXPECT_THROW(reader.read_rows({0, 2}, out), std::invalid_argument);
    EXPECT_THROW(reader.read_rows({-1, 0}, out), std::invalid_argument);
    EXPECT_THROW(reader.read_rows({kN, kN + 1}, out), std::invalid_argument);
    EXPECT_THROW(reader.read_rows({2, 1}, out), std::invalid_argument);
  }
}

// Element (h, i, j) of 2 x 3 x 5 is 100 h + 10 i + j, in either order. A row is a head.
TEST_F(NpyReaderTest, OfThreeDimensionsARowIsAHead) {
  std::vector<double> in_C_order;
  std::vector<double> in_Fortran_order(2 * 3 * 5);
  for (const std::size_t h : {0U, 1U}) {
    for (const std::size_t i : {0U, 1U, 2U}) {
      for (const std::size_t j : {0U, 1U, 2U, 3U, 4U}) {
        in_C_order.push_back(static_cast<double>(100 * h + 10 * i + j));
        in_Fortran_order[h + 2 * (i + 3 * j)] = in_C_order.back();
      }
    }
  }
  for (const bool fortran : {false, true}) {
    std::vector<double> stored = fortran ? in_Fortran_order : in_C_order;
    const auto file = [&] {
      return directory_.write("a.npy",
                              npy(dict("<f8", fortran, "(2, 3, 5)"), npy_bytes_of(stored)));
    };
    const NpyReader reader(file());
    EXPECT_EQ(reader.shape(), (std::vector<Index>{2, 3, 5}));
    EXPECT_EQ(reader.rows(), 2);
    EXPECT_EQ(reader.cols(), 15);
    const std::vector<float> all(in_C_order.begin(), in_C_order.end());
    EXPECT_EQ(read_all(reader), all);
    std::vector<float> second(15);
    reader.read_rows({1, 2}, second);
    EXPECT_EQ(second, std::vector<float>(all.begin() + 15, all.end()));
    EXPECT_THROW(reader.read_rows({2, 3}, second), std::invalid_argument);

    std::ranges::replace(stored, 112.0, std::nan(""));
    file();
    const NpyReader bad(directory_ / "a.npy");
    EXPECT_NO_THROW(bad.read_rows({0, 1}, second));
    try {
      bad.read_rows({1, 2}, second);
      ADD_FAILURE();
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("nan at head 1, row 1, column 2; expected"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST_F(NpyReaderTest, HeadersAsPythonMayWriteThem) {
  const std::string data = npy_bytes_of(kNpyRows);
  for (const std::string header :
       {"{'descr':'<f4','fortran_order':False,'shape':(3,2)}",
        "{\"shape\": (3, 2), \"descr\": \"<f4\", \"fortran_order\": False}",
        "  { 'fortran_order' : False ,\n 'shape' : ( 3L , 2L , ) , 'descr' : '<f4' , }  \n\n"}) {
    EXPECT_EQ(refusal(npy(header, data)), "") << header;
  }
}

TEST_F(NpyReaderTest, ForeignAndTruncatedHeaders) {
  const std::string good = npy(dict("<f4", false, "(3, 2)"), npy_bytes_of(kNpyRows));
  ASSERT_EQ(refusal(good), "");
  expect_refusal("PK\3\4 a zip file", "a foreign file; expected a .npy file");
  expect_refusal("x", "a foreign file");
  expect_refusal("", "truncated header: 0 bytes");
  expect_refusal(good.substr(0, 3), "truncated header: 3 bytes");
  expect_refusal(good.substr(0, 9), "truncated header: 9 bytes");
  expect_refusal(good.substr(0, 30), "truncated header: 20 bytes of it; expected 60");
  expect_refusal(npy("{}", "", 4), ".npy format 4.0; expected 1.0, 2.0 or 3.0");
  expect_refusal(npy("{}", "", 0), ".npy format 0.0");
  expect_refusal(std::string("\x93NUMPY\1\1\0\0", 10), ".npy format 1.1");
  expect_refusal(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12),
                 "a header of 4294967295 bytes; expected at most 65535");
}

TEST_F(NpyReaderTest, MalformedHeaders) {
  const std::string f4 = "{'descr': '<f4', 'fortran_order': False, ";
  for (const auto& [header, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "byte 0; expected '{'"},
           {"[]", "expected '{'"},
           {"{}", "expected all of 'descr', 'fortran_order' and 'shape'"},
           {f4 + "}", "expected all of"},
           {f4 + "'shape': (3, 2)", "expected '}'"},
           {f4 + "'shape': (3, 2)} x", "expected nothing after '}'"},
           {f4 + "'descr': '<f4'}", "once"},
           {f4 + "'extra': 1}", "each of 'descr', 'fortran_order' and 'shape' once"},
           {f4 + "'shape: (3, 2)}", "expected a closing quote"},
           {f4 + "shape: (3, 2)}", "expected '''"},
           {f4 + "'shape' (3, 2)}", "expected ':'"},
           {f4 + "'shape': (3, 2}", "expected ')'"},
           {f4 + "'shape': (3 2)}", "expected ','"},
           {f4 + "'shape': (3)}", "expected ','"},
           {f4 + "'shape': [3, 2]}", "expected '('"},
           {f4 + "'shape': (3, two)}", "expected a size"},
           {f4 + "'shape': (-3, 2)}", "expected sizes that are not negative"},
           {f4 + "'shape': (99999999999999999999, 2)}", "expected sizes of at most 63 bits"},
           {"{'fortran_order': 0}", "expected True or False"},
       }) {
    expect_refusal(npy(header, npy_bytes_of(kNpyRows)), words);
    expect_refusal(npy(header, npy_bytes_of(kNpyRows)), "malformed header at its byte ");
  }
}

TEST_F(NpyReaderTest, OtherTypesRanksAndSizes) {
  const std::string data = npy_bytes_of(kNpyRows);
  for (const std::string descr :
       {"<i8", "|V2", ">V2", "<V1", "|f2", "|u1", "<c8", "f4", "<f44", "", "|O"}) {
    expect_refusal(
        npy(dict(descr, false, "(3, 2)"), data),
        "elements of dtype \"" + descr +
            "\"; expected float16 (<f2), bfloat16 (<V2), float32 (<f4) or float64 (<f8)");
  }
  expect_refusal(npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (6,)}", data),
                 "a structured dtype; expected numbers of one type");
  expect_refusal(npy(dict("<f4", false, "()"), data), "0 dimensions; expected 1, 2 or 3");
  expect_refusal(npy(dict("<f4", false, "(1, 1, 3, 2)"), data), "4 dimensions; expected 1, 2 or 3");
  expect_refusal(npy(dict("<f4", false, "(0,)"), ""), "shape (0) is empty");
  expect_refusal(npy(dict("<f4", false, "(3, 0)"), ""), "shape (3, 0) is empty");
  expect_refusal(npy(dict("<f4", false, "(3, 0, 2)"), ""), "shape (3, 0, 2) is empty");
  // 2^63 words, although any two extents have fewer. Then too many bytes.
  expect_refusal(npy(dict("<f4", false, "(2097152, 2097152, 2097152)"), data),
                 "shape (2097152, 2097152, 2097152) passes 63 bits of bytes");
  expect_refusal(npy(dict("<f8", false, "(2, 4294967296, 134217728)"), data), "passes 63 bits");
  expect_refusal(npy(dict("<f4", false, "(4294967296, 4294967296)"), data),
                 "shape (4294967296, 4294967296) passes 63 bits of bytes");
  expect_refusal(npy(dict("<f8", false, "(9223372036854775807,)"), data), "passes 63 bits");
}

TEST_F(NpyReaderTest, TooFewOrTooManyBytes) {
  const std::string data = npy_bytes_of(kNpyRows);
  expect_refusal(npy(dict("<f4", false, "(3, 2)"), data.substr(1)),
                 "truncated: 23 bytes of data; expected 24 for shape (3, 2)");
  expect_refusal(npy(dict("<f4", false, "(3, 2)"), ""), "truncated: 0 bytes of data; expected 24");
  expect_refusal(npy(dict("<f4", false, "(3, 2)"), data + "x"),
                 "trailing bytes: 25 bytes of data; expected 24 for shape (3, 2)");
  expect_refusal(npy(dict("<f4", true, "(1, 3, 2)"), data.substr(1)),
                 "truncated: 23 bytes of data; expected 24 for shape (1, 3, 2)");
  // A header with a false size costs no memory, because the reader allocates none for it.
  expect_refusal(npy(dict("<f4", false, "(1000000000000, 1000)"), data),
                 "truncated: 24 bytes of data; expected 4000000000000000");
}

TEST_F(NpyReaderTest, TruncatedWhileItWasRead) {
  const path file =
      directory_.write("a.npy", npy(dict("<f4", false, "(3, 2)"), npy_bytes_of(kNpyRows)));
  const NpyReader reader(file);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  std::vector<float> out(2);
  EXPECT_NO_THROW(reader.read_rows({1, 2}, out));
  EXPECT_THROW(reader.read_rows({2, 3}, out), InputError);
}

TEST_F(NpyReaderTest, NumbersThatAreNone) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr double kMax = std::numeric_limits<float>::max();
  for (const bool fortran : {false, true}) {
    // Stored element 4 is at (2, 0) by rows and (1, 1) by columns.
    const std::string where = fortran ? " at row 1, column 1" : " at row 2, column 0";
    const auto stored = [&](const std::string& descr, const std::string& data) {
      return npy(dict(descr, fortran, "(3, 2)"), data);
    };
    std::vector<float> f = kNpyRows;
    f[4] = std::nanf("");
    expect_refusal(stored("<f4", npy_bytes_of(f)),
                   "nan" + where + "; expected finite float32 numbers");
    f[4] = -kInf;
    expect_refusal(stored(">f4", npy_bytes_of(f, true)), "-inf" + where);
    std::vector<double> g(kNpyRows.begin(), kNpyRows.end());
    g[4] = std::nan("");
    expect_refusal(stored("<f8", npy_bytes_of(g)), "nan" + where);
    g[4] = HUGE_VAL;
    expect_refusal(stored("<f8", npy_bytes_of(g)), "inf" + where);
    g[4] = 1e300;
    expect_refusal(stored("<f8", npy_bytes_of(g)), "1e+300" + where);
    g[4] = std::nextafter(kMax, HUGE_VAL);
    expect_refusal(stored("<f8", npy_bytes_of(g)), where);
    std::vector<std::uint16_t> h(6, 0x3c00);
    h[4] = 0x7c00;
    expect_refusal(stored("<f2", npy_bytes_of(h)), "inf" + where);
    h[4] = 0xfe00;
    expect_refusal(stored("<f2", npy_bytes_of(h)), "nan" + where);
    h[4] = 0xff80;
    expect_refusal(stored("<V2", npy_bytes_of(h)), "-inf" + where);
    g[4] = -kMax;
    EXPECT_EQ(refusal(stored("<f8", npy_bytes_of(g))), "");
    g[4] = 1e-300;  // rounds to 0, the nearest float32
    EXPECT_EQ(refusal(stored("<f8", npy_bytes_of(g))), "");
  }
}

// The message has the row of the file, not of the range.
TEST_F(NpyReaderTest, TheRowOfABadNumberIsThatOfTheFile) {
  std::vector<float> rows = kNpyRows;
  rows[5] = std::nanf("");
  const NpyReader reader(
      directory_.write("a.npy", npy(dict("<f4", false, "(3, 2)"), npy_bytes_of(rows))));
  std::vector<float> out(4);
  EXPECT_NO_THROW(reader.read_rows({0, 2}, out));
  try {
    reader.read_rows({1, 3}, out);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("row 2, column 1"), std::string::npos);
  }
}

TEST_F(NpyReaderTest, WhatCannotBeOpened) {
  const path missing = directory_ / "missing.npy";
  const auto open = [](const path& file) { return [file] { NpyReader reader(file); }; };
  EXPECT_EQ(message_of(open(missing), std::errc::no_such_file_or_directory),
            "cannot open " + missing.string() + ": No such file or directory");
  const path pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(NpyReader{pipe}, InputError);  // at once, although no process writes to it
  EXPECT_THROW(NpyReader{"/dev/null"}, InputError);
  try {
    const NpyReader reader(directory_.path());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(),
              directory_.path().string() + ": not a regular file; expected a .npy file");
  }
}

// Any byte of the file is replaced, any end is cut, or a few bytes are garbled. The reader answers
// or refuses. With asan and ubsan, the test also shows that no wrong memory is touched.
class NpyFuzz : public NpyReaderTest, public ::testing::WithParamInterface<std::string> {
 protected:
  // Returns whether the reader accepted the file.
  bool try_it(const std::string& content) {
    // Rewrites the file in place, because some systems flush a file to disk if it is cut to 0 bytes
    // and closed.
    EXPECT_EQ(::pwrite(fd_.get(), content.data(), content.size(), 0),
              static_cast<ssize_t>(content.size()));
    EXPECT_EQ(::ftruncate(fd_.get(), static_cast<off_t>(content.size())), 0);
    try {
      const NpyReader reader(file_);
      EXPECT_LE(reader.rows() * reader.cols(), static_cast<Index>(content.size()));
      const std::vector<float> values = read_all(reader);
      EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return v - v == 0; }));
      return true;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return false;
    }
  }

  path file_ = directory_ / "fuzz.npy";
  Descriptor fd_{::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
};

TEST_P(NpyFuzz, EveryByteReplaced) {
  const std::string& good = GetParam();
  ASSERT_TRUE(try_it(good));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x02, 0x03, 0x09, 0x0a, 0x20, 0x22, 0x27, 0x28, 0x29,
                            0x2c, 0x2d, 0x30, 0x31, 0x39, 0x3a, 0x3c, 0x3e, 0x4c, 0x5b, 0x5c,
                            0x5d, 0x61, 0x66, 0x7b, 0x7d, 0x7f, 0x80, 0x93, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      try_it(bad);
    }
  }
}

TEST_P(NpyFuzz, EveryTruncationAndAnyTail) {
  const std::string& good = GetParam();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(try_it(good.substr(0, size))) << size;
  }
  for (std::size_t more = 1; more < 20; ++more) {
    EXPECT_FALSE(try_it(good + std::string(more, '\0'))) << more;
  }
}

TEST_P(NpyFuzz, GarbledBytes) {
  std::mt19937 random(1);  // the same sequence on every platform
  const std::string alphabet = "{}()[],:'\"<>=|fiLTF0123456789- \n\\descrshapeortn_\x93";
  for (int round = 0; round < 3000; ++round) {
    std::string bad = GetParam();
    for (std::size_t changes = 1 + random() % 6; changes > 0; --changes) {
      const std::size_t at = random() % bad.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          bad[at] = c;
          break;
        case 1:
          bad.insert(at, 1, c);
          break;
        default:
          bad.erase(at, 1);
      }
    }
    try_it(bad);
  }
}

TEST_P(NpyFuzz, HeadersOfRepeatedPiecesEndSoon) {
  for (const std::string piece :
       {"{", "(", "'", "\"", ",", " ", "9", "(1,", "'descr':", "[", "-"}) {
    std::string header;
    while (header.size() + piece.size() <= 65535) {
      header += piece;
    }
    EXPECT_FALSE(try_it(npy(header, "")));
    EXPECT_FALSE(try_it(npy("{'shape': (" + header.substr(0, 60000), "")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, NpyFuzz,
    ::testing::Values(
        npy(dict("<f4", false, "(3, 2)"), npy_bytes_of(kNpyRows)),
        npy(dict("<f4", true, "(3, 2)"), npy_bytes_of(kColumns), 2),
        npy(dict("<f4", true, "(1, 3, 2)"), npy_bytes_of(kColumns)),
        npy(dict("<f2", true, "(3, 2)"), npy_bytes_of(std::vector<std::uint16_t>(6, 1))),
        npy(dict(">f8", true, "(6,)"),
            npy_bytes_of(std::vector<double>(kNpyRows.begin(), kNpyRows.end()), true), 3)));

// ---- Writing

// Equals the output of numpy.save byte for byte (NumPy 1.x and 2.x, format 1.0).
TEST_F(NpyWriterTest, TheBytesOfNumPy) {
  const path two = directory_ / "two.npy";
  const path one = directory_ / "one.npy";
  NpyWriter matrix(two, {3, 2});
  matrix.append(std::span(kNpyRows).first(2));
  matrix.append(std::span(kNpyRows).subspan(2));
  matrix.commit();
  NpyWriter vector(one, {6});
  vector.append(kNpyRows);
  vector.commit();

  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  EXPECT_EQ(content_of(two), npy(header + std::string(58, ' ') + "\n", npy_bytes_of(kNpyRows)));
  header = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }";
  EXPECT_EQ(content_of(one), npy(header + std::string(60, ' ') + "\n", npy_bytes_of(kNpyRows)));
  const path three = directory_ / "three.npy";
  NpyWriter heads(three, {3, 1, 2});
  heads.append(std::span(kNpyRows).first(1));  // a part of a head
  heads.append(std::span(kNpyRows).subspan(1));
  heads.commit();
  header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1, 2), }";
  EXPECT_EQ(content_of(three), npy(header + std::string(55, ' ') + "\n", npy_bytes_of(kNpyRows)));
  EXPECT_EQ(files(), 3U);
}

TEST_F(NpyWriterTest, TheDataStartAtAMultipleOf64Bytes) {
  for (Index rows = 1; rows < 10'000'000; rows *= 10) {
    const path file = directory_ / "a.npy";
    NpyWriter writer(file, {rows, 1});
    writer.append(std::vector<float>(static_cast<std::size_t>(rows), 1.0F));
    writer.commit();
    EXPECT_EQ((std::filesystem::file_size(file) - static_cast<std::size_t>(rows) * 4) % 64, 0U);
    EXPECT_EQ(NpyReader(file).rows(), rows);
  }
}

TEST_F(NpyWriterTest, WhatIsWrittenIsReadBack) {
  const path file = directory_ / "a.npy";
  constexpr std::size_t kCols = 17;
  std::vector<float> values(1000 * kCols);
  std::iota(values.begin(), values.end(), -5000.25F);
  NpyWriter writer(file, {1000, kCols});
  for (std::size_t row = 0; row < 1000; row += 8) {
    writer.append(std::span(values).subspan(row * kCols, 8 * kCols));
  }
  writer.append({});
  writer.commit();
  const NpyReader reader(file);
  EXPECT_EQ(reader.shape(), (std::vector<Index>{1000, kCols}));
  EXPECT_EQ(read_all(reader), values);
}

TEST_F(NpyWriterTest, WithoutCommitNothingRemains) {
  const path file = directory_.write("a.npy", "what was there before");
  {
    NpyWriter unfinished(file, {3, 2});
    unfinished.append(std::span(kNpyRows).first(2));
    NpyWriter finished(file, {3, 2});  // two writers of one file do not meet
    finished.append(kNpyRows);
    EXPECT_LE(files(), 3U);  // an incomplete file may have no name
    EXPECT_EQ(content_of(file), "what was there before");
  }
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(content_of(file), "what was there before");
}

TEST_F(NpyWriterTest, CommitReplacesAnOlderFile) {
  const path file = directory_.write("a.npy", "what was there before");
  NpyWriter writer(file, {3, 2});
  writer.append(kNpyRows);
  writer.commit();
  EXPECT_EQ(read_all(NpyReader(file)), kNpyRows);
  EXPECT_EQ(files(), 1U);
  EXPECT_THROW(writer.commit(), std::logic_error);
}

TEST_F(NpyWriterTest, MovesWithItsTemporary) {
  const path file = directory_ / "a.npy";
  std::vector<NpyWriter> writers;
  writers.emplace_back(file, std::vector<Index>{3, 2});
  writers.emplace_back(directory_ / "b.npy", std::vector<Index>{1});
  writers[0].append(kNpyRows);
  writers[0].commit();
  writers.clear();
  EXPECT_EQ(files(), 1U);
}

TEST_F(NpyWriterTest, MisuseIsRefused) {
  const path file = directory_ / "a.npy";
  NpyWriter writer(file, {3, 2});
  EXPECT_THROW(writer.commit(), std::logic_error);
  EXPECT_THROW(writer.append(std::vector<float>(7)), std::invalid_argument);
  writer.append(std::span(kNpyRows).first(4));
  EXPECT_THROW(writer.append(std::span(kNpyRows).first(4)), std::invalid_argument);
  EXPECT_THROW(writer.commit(), std::logic_error);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_THROW(NpyWriter(file, {0}), std::invalid_argument);
  EXPECT_THROW(NpyWriter(file, {3, -1}), std::invalid_argument);
  EXPECT_THROW(NpyWriter(file, {3, 0, 2}), std::invalid_argument);
  EXPECT_THROW(NpyWriter(file, {}), std::invalid_argument);
}

TEST_F(NpyWriterTest, TheModeIsThatOfTheUmask) {
  const mode_t before = ::umask(0027);
  const path file = directory_ / "a.npy";
  {
    NpyWriter writer(file, {6});
    writer.append(kNpyRows);
    writer.commit();
  }
  ::umask(before);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(NpyWriterTest, ANameAsLongAsNamesMayBe) {
  const path file = directory_ / std::string(255, 'a');
  NpyWriter writer(file, {6});
  writer.append(kNpyRows);
  writer.commit();
  EXPECT_EQ(read_all(NpyReader(file)), kNpyRows);
}

TEST_F(NpyWriterTest, WhatCannotBeATargetFailsBeforeAnyWork) {
  const auto open = [](const path& file) { return [file] { NpyWriter writer(file, {6}); }; };
  const auto names = [](const std::string& message, const path& file) {
    return message.find(file.string()) != std::string::npos;
  };
  EXPECT_TRUE(
      names(message_of(open(directory_.path()), std::errc::is_a_directory), directory_.path()));
  const path nowhere = directory_ / "missing" / "a.npy";
  const std::string message = message_of(open(nowhere), std::errc::no_such_file_or_directory);
  EXPECT_TRUE(names(message, nowhere)) << message;
  EXPECT_TRUE(names(message, "directory " + (directory_ / "missing").string())) << message;
  EXPECT_THROW(NpyWriter("", {6}), std::system_error);

  const path below_a_file = directory_.write("file", "") / "a.npy";
  message_of(open(below_a_file), std::errc::not_a_directory);
  const path link = directory_ / "link";
  std::filesystem::create_symlink("link", link);
  EXPECT_TRUE(names(message_of(open(link), std::errc::too_many_symbolic_link_levels), link));
  EXPECT_EQ(files(), 2U);  // file, link
}

TEST_F(NpyWriterTest, WhereOneMayNotWrite) {
  // Root may write everywhere, so the process drops to the user `nobody` for this part.
  const bool root = ::geteuid() == 0;
  ::chmod(directory_.path().c_str(), 0777);
  const path closed = directory_ / "closed";
  std::filesystem::create_directory(closed);
  ::chmod(closed.c_str(), 0555);
  const path kept = directory_.write("kept.npy", "read only");
  ::chmod(kept.c_str(), 0444);
  ASSERT_TRUE(!root || ::seteuid(65534) == 0);
  const std::string in_closed =
      message_of([&] { NpyWriter writer(closed / "a.npy", {6}); }, std::errc::permission_denied);
  const std::string over_kept =
      message_of([&] { NpyWriter writer(kept, {6}); }, std::errc::permission_denied);
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
  EXPECT_NE(in_closed.find((closed / "a.npy").string()), std::string::npos) << in_closed;
  EXPECT_EQ(over_kept, "cannot write " + kept.string() + ": Permission denied");
  EXPECT_EQ(content_of(kept), "read only");
}

// A limit on file sizes is similar to a full disk and needs no root: a write is cut short at the
// limit, and the next one fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    std::signal(SIGXFSZ, handler_);
    ::setrlimit(RLIMIT_FSIZE, &before_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(NpyWriterTest, NoRoomLeavesTheOldFile) {
  const path file = directory_.write("a.npy", "what was there before");
  const std::vector<float> values(100'000);
  {
    const FileSizeLimit limit(4096);  // known before any work
    EXPECT_EQ(message_of([&] { NpyWriter writer(file, {100'000}); }, std::errc::file_too_large),
              "cannot write " + file.string() + ": File too large");
  }
  EXPECT_EQ(files(), 1U);
  {
    NpyWriter writer(file, {100'000});
    const FileSizeLimit limit(4096);  // after a short write
    EXPECT_EQ(message_of([&] { writer.append(values); }, std::errc::file_too_large),
              "cannot write " + file.string() + ": File too large");
    EXPECT_THROW(writer.commit(), std::logic_error);
  }
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(content_of(file), "what was there before");
}

}  // namespace
}  // namespace redblue
