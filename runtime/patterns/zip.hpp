#pragma once
// Reads the members of a .zip file such as numpy.savez writes: stored or deflated, zip64 or not.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace redblue {

// Holds the whole file. Throws (all): InputError with the file and the fault.
class ZipFile {
 public:
  // Requires: `content` is the content of the file `name`.
  ZipFile(std::string content, std::filesystem::path name);

  [[nodiscard]] bool has_member(std::string_view name) const { return members_.contains(name); }
  // Returns the bytes of a member, after checking their checksum.
  [[nodiscard]] std::string member(std::string_view name) const;

 private:
  struct Member {
    std::uint64_t offset = 0;  // of the local header
    std::uint64_t packed = 0, size = 0;
    std::uint32_t checksum = 0;
    unsigned method = 0, flags = 0;
  };
  struct Directory {
    std::uint64_t begin, size, count;
  };

  // Returns the number of this many bytes, least significant byte first.
  [[nodiscard]] std::uint64_t number(std::uint64_t at, unsigned bytes) const;
  [[nodiscard]] bool has(std::uint64_t at, std::uint32_t signature) const;
  [[nodiscard]] Directory directory() const;
  std::uint64_t add_member(std::uint64_t at);
  [[noreturn]] void refuse(const std::string& why) const;

  std::string content_;
  std::filesystem::path name_;
  std::map<std::string, Member, std::less<>> members_;
};

}  // namespace redblue
