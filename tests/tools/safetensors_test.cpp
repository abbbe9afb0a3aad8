// Tests operands from tensors of .safetensors files, and from .npy files with two-byte numbers. A
// run has the bits of a run on the converted numbers, and reports the conversions. A malformed file
// ends the run with one line that names file, tensor and fault.

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cli.hpp"
#include "tests/support/npy_bytes.hpp"
#include "tests/support/safetensors_bytes.hpp"

namespace redblue {
namespace {

using Halves = std::vector<std::uint16_t>;

std::string bytes_of(const Halves& numbers) {  // for a little-endian machine
  std::string bytes(2 * numbers.size(), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

class SafetensorsCommand : public Cli {
 protected:
  // Writes Q, K, V and dO, 4 x 4, as float32, float16 and bfloat16. The numbers are exact in all
  // three types.
  void SetUp() override {
    std::string all, header = "{";
    for (const char* name : {"Q", "K", "V", "dO"}) {
      std::vector<float> words;
      Halves brain, half;
      for (unsigned k = 0; k < 16; ++k) {
        // 1 + k % 8 / 8, times 1, 2 or 4: three bits of fraction.
        const unsigned exponent = (k + static_cast<unsigned>(all.size())) % 3;
        words.push_back((1 + static_cast<float>(k % 8) / 8) * static_cast<float>(1U << exponent));
        brain.push_back(static_cast<std::uint16_t>((127 + exponent) << 7U | (k % 8) << 4U));
        half.push_back(static_cast<std::uint16_t>((15 + exponent) << 10U | (k % 8) << 7U));
      }
      const std::string file = name;
      directory_.write(file + ".npy", npy_bytes(4, 4, words));
      directory_.write(file + "16.npy",
                       npy_file(npy_header("<f2", false, "(4, 4)"), bytes_of(half)));
      header += (all.empty() ? "" : ",") +
                tensor_entry("layer/" + file, "BF16", "[4,4]", all.size(), all.size() + 32);
      all += bytes_of(brain);
    }
    directory_.write("model.safetensors", safetensors_file(header + "}", all));
  }

  static std::string command(const std::string& before, const std::string& after) {
    std::string line = "run gradients/flash --M 512 --verify";
    for (const std::string name : {"Q", "K", "V", "dO"}) {
      line += " --in " + name + "=" + before + name + after;
    }
    return line;
  }
};

TEST_F(SafetensorsCommand, ResultsHaveTheBitsOfFloat32) {
  const Json plain = json(command("", ".npy") + " --out dQ=plain.npy");
  EXPECT_FALSE(plain.contains("converted"));
  const Json brain = json(command("model.safetensors:layer/", "") + " --out dQ=brain.npy");
  EXPECT_EQ(brain["converted"],
            (Json{{"Q", "bfloat16"}, {"K", "bfloat16"}, {"V", "bfloat16"}, {"dO", "bfloat16"}}));
  EXPECT_EQ(brain["operands"]["Q"], "file");
  const Json half = json(command("", "16.npy") + " --out dQ=half.npy");
  EXPECT_EQ(half["converted"]["dO"], "float16");
  EXPECT_EQ(content_of(directory_ / "brain.npy"), content_of(directory_ / "plain.npy"));
  EXPECT_EQ(content_of(directory_ / "half.npy"), content_of(directory_ / "plain.npy"));
}

TEST_F(SafetensorsCommand, TheReportSaysWhatWasConverted) {
  const std::string report = data(
      "run attention/rows --M 512 --in Q=model.safetensors:layer/Q --in K=K16.npy --in V=V.npy");
  EXPECT_NE(report.find("\nconverted to float32: Q from bfloat16; K from float16\n"),
            std::string::npos)
      << report;
}

// Imports tensors into a store and exports them again.
TEST_F(SafetensorsCommand, StoresImportTensors) {
  EXPECT_EQ(data("store import there Q=model.safetensors:layer/Q"),
            "Q: 4 x 4 from model.safetensors:layer/Q, bfloat16 converted to float32\n");
  data("store export there Q=out.npy");
  EXPECT_EQ(content_of(directory_ / "out.npy"), content_of(directory_ / "Q.npy"));
}

// A run in a store imports tensors, and records where they come from.
TEST_F(SafetensorsCommand, RunsInAStoreReadTensors) {
  data(command("model.safetensors:layer/", "") + " --out dQ=brain.npy --store file:there");
  data(command("", ".npy") + " --out dQ=plain.npy");
  EXPECT_EQ(content_of(directory_ / "brain.npy"), content_of(directory_ / "plain.npy"));
}

TEST_F(SafetensorsCommand, AResultOverItsInputIsRefused) {
  expect_refused(process(command("model.safetensors:layer/", "") + " --out dQ=model.safetensors"),
                 2, "--out dQ=model.safetensors: (Q|K|V|dO) is read from this file");
}

TEST_F(SafetensorsCommand, MalformedFiles) {
  const auto header = [](const std::string& text, const std::string& data = "") {
    return safetensors_file(text, data);
  };
  const std::string q = tensor_entry("q", "F32", "[1,1]", 0, 4);
  const std::pair<std::string, std::string> files[] = {
      {"", "0 bytes; expected a .safetensors file"},
      {"1234567", "7 bytes; expected a .safetensors file"},
      {safetensors_file("{}", "", 1000), "truncated: 10 bytes; expected a header of 1000"},
      {safetensors_file("{}", "", 200'000'000), "a header of 200000000 bytes"},
      {header("[]"), "does not begin with \\{"},
      {header("{}\n"), "nothing but spaces behind it"},
      {header("{\"q\":1,}"), "the header, line 1, column 8"},
      {header('{' + q + ',' + q + '}', "1234"), "\"q\" is there twice"},
      {header("{\"__metadata__\":{\"a\":1}}"), "a of __metadata__ is 1"},
      {header('{' + tensor_entry("q", "F128", "[1]", 0, 16) + '}'), "tensor \"q\": unknown dtype"},
      {header('{' + tensor_entry("q", "I32", "[1]", 0, 4) + '}', "1234"),
       "tensor \"q\": dtype I32; expected F16, BF16, F32 or F64"},
      {header('{' + tensor_entry("q", "F32", "[-1]", 0, 4) + '}', "1234"),
       "tensor \"q\": shape \\[-1\\]"},
      {header('{' + tensor_entry("q", "F32", "[4294967296,4294967296]", 0, 4) + '}', "1234"),
       "tensor \"q\": shape \\(4294967296, 4294967296\\) of F32 passes 63 bits"},
      {header('{' + tensor_entry("q", "F32", "[2]", 0, 4) + '}', "1234"),
       "tensor \"q\": data_offsets \\[0, 4\\] have 4 bytes; expected 8"},
      {header('{' + tensor_entry("q", "F32", "[1]", 4, 0) + '}', "1234"),
       "tensor \"q\": data_offsets \\[4,0\\]"},
      {header('{' + q + ',' + tensor_entry("r", "U8", "[2]", 3, 5) + '}', "12345"),
       "tensor \"r\": overlap"},
      {header('{' + q + ',' + tensor_entry("r", "U8", "[1]", 5, 6) + '}', "123456"),
       "tensor \"r\": hole"},
      {header('{' + q + '}', "123"), "truncated: 3 bytes of data; expected 4"},
      {header('{' + q + '}', "12345"), "trailing bytes: 5 bytes of data; expected 4"},
      {header('{' + q + '}', std::string("\0\0\x80\x7f", 4)),
       "tensor \"q\": inf at row 0, column 0"},
      {header('{' + tensor_entry("q", "F32", "[1,1,1,1]", 0, 4) + '}', "1234"),
       "tensor \"q\": 4 dimensions"},
      {header("{}"), "no tensors"},
      {header('{' + q + ',' + tensor_entry("r", "U8", "[0]", 4, 4) + '}', "1234"),
       "2 tensors; expected the name of one behind a colon: \"q\", \"r\""},
  };
  directory_.write("k.npy", npy_bytes(1, 1, {1}));
  for (const auto& [content, message] : files) {
    directory_.write("bad.safetensors", content);
    expect_refused(process("run attention/rows --M 512 --in Q=bad.safetensors --in K=k.npy --in "
                           "V=k.npy --out O=O.npy"),
                   1, "bad.safetensors: .*" + message);
  }
  expect_refused(process(command("model.safetensors:", "")), 1,
                 "model.safetensors: no tensor \"(Q|K|V|dO)\"; expected one of \"layer/Q\"");
  expect_refused(process(command("no.safetensors:", "")), 1, "no.safetensors: No such file");
}

}  // namespace
}  // namespace redblue
