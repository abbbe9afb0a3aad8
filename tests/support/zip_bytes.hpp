#pragma once
// Builds valid and invalid .zip files, independently of runtime/patterns/zip. Members are stored
// without compression.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memsim/words.hpp"
#include "tests/support/npy_bytes.hpp"

namespace redblue {

inline std::string little_endian(std::uint64_t number, unsigned bytes) {
  std::string text;
  for (unsigned k = 0; k < bytes; ++k) {
    text += static_cast<char>(number >> (8 * k) & 0xff);
  }
  return text;
}

inline std::uint32_t checksum_of(const std::string& text) {
  std::uint32_t rest = ~std::uint32_t{0};
  for (const char c : text) {
    rest ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      rest = rest >> 1 ^ ((rest & 1) != 0 ? 0xedb88320 : 0);
    }
  }
  return ~rest;
}

struct ZipForm {
  bool zip64 = false;  // sizes and offsets are in the zip64 records
  std::string comment = {};
  unsigned method = 0, flags = 0;  // as the file states them
};

inline std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& members,
                             const ZipForm& form = {}) {
  const auto two = [](std::uint64_t number) { return little_endian(number, 2); };
  const auto four = [](std::uint64_t number) { return little_endian(number, 4); };
  const auto eight = [](std::uint64_t number) { return little_endian(number, 8); };
  const std::uint64_t elsewhere = 0xffffffff;
  std::string file, directory;
  for (const auto& [name, data] : members) {
    const std::uint64_t size = data.size();
    const std::uint64_t at = file.size();
    const std::string sizes =
        form.zip64 ? four(elsewhere) + four(elsewhere) : four(size) + four(size);
    const std::string start = two(45) + two(form.flags) + two(form.method) + four(0) +
                              four(checksum_of(data)) + sizes + two(name.size());
    const std::string more = two(1) + two(16) + eight(size) + eight(size);
    file += "PK\3\4" + start + two(form.zip64 ? more.size() : 0) + name + (form.zip64 ? more : "") +
            data;
    const std::string of_all =
        two(0x7777) + two(1) + "x" + two(1) + two(24) + eight(size) + eight(size) + eight(at);
    directory += "PK\1\2" + two(45) + start + two(form.zip64 ? of_all.size() : 0) + two(0) +
                 two(0) + two(0) + four(0) + four(form.zip64 ? elsewhere : at) + name +
                 (form.zip64 ? of_all : "");
  }
  const std::uint64_t begin = file.size();
  const std::uint64_t count = members.size();
  file += directory;
  if (form.zip64) {
    const std::uint64_t end = file.size();
    file += "PK\6\6" + eight(44) + two(45) + two(45) + four(0) + four(0) + eight(count) +
            eight(count) + eight(directory.size()) + eight(begin);
    file += "PK\6\7" + four(0) + eight(end) + four(1);
  }
  return file + "PK\5\6" + two(0) + two(0) + two(form.zip64 ? 0xffff : count) +
         two(form.zip64 ? 0xffff : count) + four(form.zip64 ? elsewhere : directory.size()) +
         four(form.zip64 ? elsewhere : begin) + two(form.comment.size()) + form.comment;
}

// A .npy of int64 in one dimension.
inline std::string npy_integers(const std::vector<Index>& numbers) {
  std::string data;
  for (const Index number : numbers) {
    data += little_endian(static_cast<std::uint64_t>(number), 8);
  }
  return npy_file(npy_header("<i8", false, "(" + std::to_string(numbers.size()) + ",)"), data);
}

}  // namespace redblue
