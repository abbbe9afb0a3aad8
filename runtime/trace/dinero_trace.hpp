#pragma once
// Writes the slow-memory accesses of a machine in the format "din" of the cache simulator Dinero. A
// line is one word, with its label (0: read, 1: write) and its hexadecimal address.
//
//   0 1000
//   0 1004
//   1 5000
//
// The words of a block come row by row. A word is 4 bytes. Each slow matrix is stored row by row
// from a page boundary on, in the order in which the matrices appear. The format has no comments,
// so matrices() returns the addresses. A matrix that is destroyed and made again keeps its address.
//
// An element of weight w (Machine::weigh) has w lines, of adjacent words. A matrix may hold partial
// sums first and results of another weight later. It then has two addresses, one for each weight.

#include <string>
#include <vector>

#include "runtime/system/text_file.hpp"
#include "runtime/trace/follower.hpp"

namespace redblue {

inline constexpr Index kMostDineroWords = 100'000'000;

class DineroTrace final : public Follower {
 public:
  static constexpr Index kWord = 4;
  static constexpr Index kPage = 4096;
  struct Placed {
    std::string name;
    Index rows = 0;
    Index cols = 0;
    Index weight = 1;  // words of an element
    Index address = 0;
  };

  // Follows the machine while it lives. The file gets at most `most` lines.
  DineroTrace(Machine& machine, TextFile& file, Index most = kMostDineroWords);

  // The number of lines in the file, and the number without a limit.
  [[nodiscard]] Index written() const { return written_; }
  [[nodiscard]] Index all() const { return all_; }
  [[nodiscard]] const std::vector<Placed>& matrices() const { return matrices_; }

 private:
  void follow(const Event& event) override;
  void put(const ConstBlock& block, Index weight, char label);
  Index address_of(const SlowMatrix& matrix, Index weight);

  TextFile& file_;
  Index most_;
  Index written_ = 0;
  Index all_ = 0;
  std::vector<Placed> matrices_;
  Index next_ = kPage;  // address 0 belongs to no matrix
};

}  // namespace redblue
