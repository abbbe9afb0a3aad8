// Tests tensors of .safetensors files. Every supported type has the right values, even in a file
// larger than memory. A malformed file is refused with one line that names file, tensor and fault.

#include "runtime/run/safetensors.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/input_file.hpp"
#include "tests/support/safetensors_bytes.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

using std::filesystem::path;

// 3 x 2: rows (0.5, -1), (2, 3), (4, 5).
const std::vector<float> kRows = {0.5F, -1, 2, 3, 4, 5};

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {  // on a little-endian machine
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<float> read_all(const ArrayReader& reader) {
  std::vector<float> out(static_cast<std::size_t>(reader.rows() * reader.cols()));
  reader.read_rows({0, reader.rows()}, out);
  return out;
}

// Returns kRows in four types, among tensors that are not read, out of order, with metadata and
// padding.
std::string several() {
  const std::string data =
      bytes_of(std::vector<double>(kRows.begin(), kRows.end())) + bytes_of(kRows) +
      bytes_of(std::vector<std::uint16_t>{0x3800, 0xbc00, 0x4000, 0x4200, 0x4400, 0x4500}) +
      bytes_of(std::vector<std::uint16_t>{0x3f00, 0xbf80, 0x4000, 0x4040, 0x4080, 0x40a0}) +
      std::string(9, 'x');
  return safetensors_file('{' + tensor_entry("half", "F16", "[3,2]", 72, 84) + ',' +
                              R"("__metadata__":{"format":"pt","a":""},)" +
                              tensor_entry("layers.0/q:w", "F32", "[3, 2]", 48, 72) + ',' +
                              tensor_entry("brain", "BF16", "[1,3,2]", 84, 96) + ',' +
                              tensor_entry("double", "F64", "[6]", 0, 48) + ',' +
                              tensor_entry("mask", "BOOL", "[3,3]", 96, 105) + ',' +
                              tensor_entry("none", "F32", "[0,7]", 96, 96) + ',' +
                              tensor_entry("scalar", "I64", "[0]", 105, 105) + "}   ",
                          data);
}

class Safetensors : public ::testing::Test {
 protected:
  // Opens a tensor and reads all of it. Returns the message of the InputError after the file's
  // name, or "".
  std::string refusal(const std::string& content, const std::string& tensor = "") {
    const path file = directory_.write("a.safetensors", content);
    try {
      read_all(TensorReader(file.string() + tensor));
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(file.string() + ": ")) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return message.substr(file.string().size() + 2);
    }
    return "";
  }
  std::string refusal_of_header(const std::string& header, const std::string& data = "") {
    return refusal(safetensors_file(header, data));
  }

  TemporaryDirectory directory_;
};

TEST_F(Safetensors, EveryTypeThatIsReadByItsName) {
  const std::string file = directory_.write("a.safetensors", several()).string();
  const auto expect = [&](const std::string& name, ElementType type,
                          const std::vector<Index>& shape) {
    const TensorReader reader(file + ':' + name);
    EXPECT_EQ(reader.type(), type);
    EXPECT_EQ(reader.shape(), shape);
    EXPECT_EQ(read_all(reader), kRows);
  };
  expect("half", ElementType::float16, {3, 2});
  expect("brain", ElementType::bfloat16, {1, 3, 2});
  expect("layers.0/q:w", ElementType::float32, {3, 2});
  expect("double", ElementType::float64, {6});
}

// Some rows read alone equal the same rows of the whole tensor.
TEST_F(Safetensors, RowsInTheMiddle) {
  const std::string file = directory_.write("a.safetensors", several()).string();
  std::vector<float> out(2);
  TensorReader(file + ":half").read_rows({1, 2}, out);
  EXPECT_EQ(out, (std::vector<float>{2, 3}));
}

TEST_F(Safetensors, OneTensorNeedsNoName) {
  const path file = directory_.write(
      "one.safetensors",
      safetensors_file('{' + tensor_entry("q", "F32", "[3,2]", 0, 24) + '}', bytes_of(kRows)));
  EXPECT_EQ(read_all(TensorReader(file)), kRows);
  EXPECT_EQ(read_all(TensorReader(file.string() + ":q")), kRows);
}

// A tensor is an operand's file, whatever the end of its name.
TEST_F(Safetensors, IsAnInputFile) {
  const path file = directory_.write(
      "one.safetensors",
      safetensors_file('{' + tensor_entry("a.npz", "F32", "[3,2]", 0, 24) + '}', bytes_of(kRows)));
  const InputFile input(file.string() + ":a.npz");
  EXPECT_EQ(input.shape(), (std::vector<Index>{3, 2}));
  EXPECT_EQ(input.pattern(), nullptr);
}

// 64 GiB, almost all of it a hole. A tensor reads only its own bytes.
TEST_F(Safetensors, AFileLargerThanMemory) {
  const std::size_t large = std::size_t{1} << 36U;
  const std::string header = '{' + tensor_entry("large", "F32", "[131072,131072]", 0, large) + ',' +
                             tensor_entry("q", "F32", "[3,2]", large, large + 24) + '}';
  const path file = directory_.write("a.safetensors", safetensors_file(header, ""));
  std::filesystem::resize_file(file, 8 + header.size() + large);
  std::ofstream(file, std::ios::binary | std::ios::app) << bytes_of(kRows);
  EXPECT_EQ(read_all(TensorReader(file.string() + ":q")), kRows);
  const TensorReader reader(file.string() + ":large");
  std::vector<float> row(131072, 1);
  reader.read_rows({100'000, 100'001}, row);
  EXPECT_EQ(row, std::vector<float>(131072, 0));
}

TEST_F(Safetensors, WhichTensor) {
  EXPECT_EQ(refusal(several()),
            "7 tensors; expected the name of one behind a colon: \"half\", \"layers.0/q:w\", "
            "\"brain\", \"double\", \"mask\", \"none\", \"scalar\"");
  EXPECT_EQ(refusal(several(), ":Half"),
            "no tensor \"Half\"; expected one of \"half\", \"layers.0/q:w\", \"brain\", "
            "\"double\", \"mask\", \"none\", \"scalar\"");
  EXPECT_EQ(refusal(several(), ":mask"),
            "tensor \"mask\": dtype BOOL; expected F16, BF16, F32 or F64");
  EXPECT_EQ(refusal(several(), ":none"),
            "tensor \"none\": shape (0, 7) is empty; expected one element at least");
  EXPECT_EQ(refusal_of_header("{}"), "no tensors; expected one at least");
  EXPECT_EQ(refusal(safetensors_file("{}", ""), ":q"),
            "no tensor \"q\"; expected a file with tensors");
  std::string many = "{";
  for (int i = 0; i < 12; ++i) {
    many += tensor_entry("t" + std::to_string(i), "F32", "[0]", 0, 0) + (i < 11 ? "," : "}");
  }
  EXPECT_NE(refusal_of_header(many).find("\"t7\" and 4 more"), std::string::npos);
}

TEST_F(Safetensors, LengthsOfHeaders) {
  const std::string good = several();
  for (std::size_t size = 0; size < 8; ++size) {
    EXPECT_EQ(refusal(good.substr(0, size)),
              std::to_string(size) +
                  " bytes; expected a .safetensors file, which begins with the 8 "
                  "bytes of its header's length");
  }
  EXPECT_EQ(refusal(safetensors_file("{}", "", 100'000'001)),
            "a header of 100000001 bytes; expected at most 100000000: is it a .safetensors file?");
  EXPECT_EQ(refusal(std::string(8, '\xff') + "{}"),
            "a header of 18446744073709551615 bytes; expected at most 100000000: is it a "
            ".safetensors file?");
  EXPECT_EQ(refusal(safetensors_file("{}", "", 3)),
            "truncated: 10 bytes; expected a header of 3 and what it says");
  EXPECT_EQ(refusal(safetensors_file("", "")),
            "the header does not begin with {; expected a .safetensors file");
}

TEST_F(Safetensors, HeadersThatAreNone) {
  EXPECT_EQ(refusal_of_header(" {}"),
            "the header does not begin with {; expected a .safetensors file");
  for (const char behind : {'\n', '\t', 'x', '\0'}) {
    EXPECT_EQ(refusal_of_header(std::string("{}") + behind),
              "the header does not end with }; expected nothing but spaces behind it");
  }
  EXPECT_NE(refusal_of_header("{\"a\":}").find("the header, line 1, column 6"), std::string::npos);
  EXPECT_NE(refusal_of_header("{}{}").find("the header, line 1, column 3"), std::string::npos);
  EXPECT_NE(refusal_of_header("{\"\xff\":1}").find("UTF-8"), std::string::npos);
  const std::string empty = "{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}";
  EXPECT_EQ(refusal_of_header("{\"a\":" + empty + ",\"a\":" + empty + '}'),
            "the header: \"a\" is there twice in one object");
  EXPECT_EQ(refusal_of_header("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"),
            "the header: \"dtype\" is there twice in one object");
  // The same among many tensors.
  std::string many = "{";
  for (int i = 0; i < 40; ++i) {
    many += "\"t" + std::to_string(i) + "\":" + empty + ',';
  }
  EXPECT_EQ(refusal_of_header(many + "\"t3\":" + empty + '}'),
            "the header: \"t3\" is there twice in one object");
}

// Opening a file with 100,000 tensors, more than models have, takes little time.
TEST_F(Safetensors, ManyTensors) {
  std::string header = "{";
  constexpr std::size_t kTensors = 100'000;
  for (std::size_t i = 0; i < kTensors; ++i) {
    header += tensor_entry("t" + std::to_string(i), "F32", "[1]", 4 * i, 4 * i + 4) +
              (i + 1 < kTensors ? "," : "}");
  }
  std::vector<float> values(kTensors);
  values.back() = 7;
  const path file = directory_.write("a.safetensors", safetensors_file(header, bytes_of(values)));
  EXPECT_EQ(read_all(TensorReader(file.string() + ":t99999")), std::vector<float>{7});
}

TEST_F(Safetensors, Metadata) {
  EXPECT_EQ(refusal_of_header(R"({"__metadata__":["a"]})"),
            "__metadata__ is [\"a\"]; expected strings by their names");
  EXPECT_EQ(refusal_of_header(R"({"__metadata__":{"format":1}})"),
            "format of __metadata__ is 1; expected a string");
}

TEST_F(Safetensors, WhatIsSaidOfATensor) {
  const auto of = [&](const std::string& value, const std::string& data = "") {
    const std::string message = refusal_of_header("{\"a\":" + value + '}', data);
    const std::string begin = "tensor \"a\": ";
    EXPECT_TRUE(message.starts_with(begin)) << message;
    return message.substr(std::min(begin.size(), message.size()));
  };
  const auto with = [&](const std::string& dtype, const std::string& shape,
                        const std::string& offsets, const std::string& data = "") {
    return of(
        R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + '}',
        data);
  };
  EXPECT_EQ(of("3"), "3; expected dtype, shape and data_offsets");
  EXPECT_EQ(of(R"({"dtype":"F32","shape":[1]})"),
            R"({"dtype":"F32","shape":[1]}; expected dtype, shape and data_offsets)");
  EXPECT_NE(of(R"({"dtype":"F32","shape":[0],"data_offsets":[0,0],"strides":[1]})")
                .find("; expected dtype, shape and data_offsets"),
            std::string::npos);
  EXPECT_EQ(with("\"f32\"", "[1]", "[0,4]", "1234"),
            "unknown dtype \"f32\"; expected F16, BF16, F32 or F64");
  EXPECT_EQ(with("32", "[1]", "[0,4]", "1234"), "unknown dtype 32; expected F16, BF16, F32 or F64");
  for (const std::string shape : {"[-1]", "[1.5]", "[1.0]", "[-0]", "[\"1\"]", "1", "{\"a\":1}",
                                  "[9223372036854775808]", "[99999999999999999999]"}) {
    const std::string message = with("\"F32\"", shape, "[0,4]", "1234");
    EXPECT_TRUE(message.starts_with("shape ") &&
                message.ends_with("; expected whole numbers below 2^63"))
        << message;
  }
  EXPECT_EQ(with("\"F32\"", "[1]", "[0,-4]"),
            "data_offsets [0,-4]; expected whole numbers below 2^63");
  EXPECT_EQ(with("\"F32\"", "[1]", "[0]"),
            "data_offsets [0]; expected where its bytes begin and end");
  EXPECT_EQ(with("\"F32\"", "[1]", "[0,4,4]", "1234"),
            "data_offsets [0,4,4]; expected where its bytes begin and end");
  EXPECT_EQ(with("\"F32\"", "[1]", "[4,0]", "1234"),
            "data_offsets [4,0]; expected where its bytes begin and end");
  EXPECT_EQ(with("\"F32\"", "[4294967296,4294967296]", "[0,0]"),
            "shape (4294967296, 4294967296) of F32 passes 63 bits of bits; expected a smaller one");
  EXPECT_EQ(with("\"F4\"", "[3]", "[0,2]", "12"),
            "shape (3) of F4 has 12 bits; expected whole bytes");
  EXPECT_EQ(with("\"F32\"", "[3,2]", "[0,20]", std::string(20, ' ')),
            "data_offsets [0, 20] have 20 bytes; expected 24 for shape (3, 2) of F32");
  EXPECT_EQ(with("\"F32\"", "[]", "[0,4]", "1234"), "0 dimensions; expected 1, 2 or 3");
  EXPECT_EQ(with("\"F32\"", "[1,1,1,1]", "[0,4]", "1234"), "4 dimensions; expected 1, 2 or 3");
  EXPECT_EQ(with("\"F32\"", "[1]", "[4,8]", "12345678"),
            "hole: its bytes begin at 4; expected 0, where the data begin");
}

TEST_F(Safetensors, TensorsHaveAllBytesEachOnce) {
  const auto of = [&](std::size_t begin, std::size_t end, std::size_t bytes) {
    return refusal_of_header(
        '{' + tensor_entry("b", "U8", '[' + std::to_string(end - begin) + ']', begin, end) + ',' +
            tensor_entry("a", "F32", "[1]", 0, 4) + '}',
        std::string(bytes, ' '));
  };
  EXPECT_EQ(of(3, 7, 7),
            "tensor \"b\": overlap: its bytes begin at 3; expected 4, the end of tensor \"a\"");
  EXPECT_EQ(of(0, 4, 4),
            "tensor \"a\": overlap: its bytes begin at 0; expected 4, the end of tensor \"b\"");
  EXPECT_EQ(of(5, 8, 8),
            "tensor \"b\": hole: its bytes begin at 5; expected 4, the end of tensor \"a\"");
  EXPECT_EQ(of(4, 8, 7), "truncated: 7 bytes of data; expected 8, the end of tensor \"b\"");
  EXPECT_EQ(of(4, 8, 9), "trailing bytes: 9 bytes of data; expected 8, the end of tensor \"b\"");
  EXPECT_EQ(refusal(safetensors_file("{}", "x")),
            "trailing bytes: 1 bytes of data; expected 0, where the data begin");
}

TEST_F(Safetensors, NumbersThatAreNone) {
  const auto of = [&](const std::string& dtype, const std::string& data) {
    return refusal_of_header('{' + tensor_entry("a", dtype, "[1,2]", 0, data.size()) + '}', data);
  };
  const std::string expected = " at row 0, column 1; expected finite float32 numbers";
  using Halves = std::vector<std::uint16_t>;
  EXPECT_EQ(of("F16", bytes_of(Halves{0, 0xfc00})), "tensor \"a\": -inf" + expected);
  EXPECT_EQ(of("BF16", bytes_of(Halves{0, 0x7fc0})), "tensor \"a\": nan" + expected);
  EXPECT_EQ(of("F64", bytes_of(std::vector<double>{0, 1e300})), "tensor \"a\": 1e+300" + expected);
}

// Any byte is replaced, or any end is cut. The reader accepts the file or refuses it with a line.
TEST_F(Safetensors, DamagedFiles) {
  const std::string good = several();
  std::mt19937 random(1);  // the same sequence on every platform
  for (int round = 0; round < 1000; ++round) {
    std::string bad = good;
    bad[random() % (8 + good.find("   "))] = static_cast<char>(random());
    refusal(bad, ":half");
    EXPECT_NE(refusal(good.substr(0, random() % good.size()), ":half"), "");
  }
}

TEST_F(Safetensors, FilesThatCannotBeOpened) {
  EXPECT_THROW(TensorReader((directory_ / "no.safetensors").string() + ":a"), std::system_error);
  std::filesystem::create_directory(directory_ / "d.safetensors");
  EXPECT_THROW(TensorReader(directory_ / "d.safetensors"), InputError);
}

}  // namespace
}  // namespace redblue
