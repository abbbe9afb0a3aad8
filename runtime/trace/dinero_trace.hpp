#pragma once
// The slow side of a machine's moves in the format "din" of the cache simulator Dinero: one line a
// word, with its label (0: read, 1: write) and its address in hexadecimal.
//
//   0 1000
//   0 1004
//   1 5000
//
// The words of a block come row by row. A word is 4 bytes. Each slow matrix lies row by row from an
// address that is a multiple of a page, in the order in which the matrices are met. The format has
// no comments; matrices() has the addresses. A matrix that dies and is made again keeps its
// address.
//
// An element of weight w (Machine::weigh) has w lines, of adjacent words. A matrix may hold partial
// sums first and results later, of another weight: it then lies in two places, one for each weight.

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

  // Listens while it lives. The file gets at most `most` lines.
  DineroTrace(Machine& machine, TextFile& file, Index most = kMostDineroWords);

  // The lines in the file, and those of a trace without a limit.
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
