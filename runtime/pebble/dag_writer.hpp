#pragma once
// Writes graphs of matrices: words of a matrix by row and column, and sums.

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/pebble/attention_dags.hpp"

namespace redblue {

inline constexpr Index kNoWord = -1;  // a word that is 0 and has no vertex

// The vertices of a matrix. Throws: std::length_error for more than kMostWords words. This is more
// than kMostVertices, because a masked matrix has words without vertices.
class WordsOf {
 public:
  static constexpr Index kMostWords = 16 * kMostVertices;

  WordsOf(Index rows, Index cols) : cols_(cols), of_(size(rows, cols), kNoWord) {}
  Index& operator()(Index i, Index k) { return of_[static_cast<std::size_t>(i * cols_ + k)]; }
  Index operator()(Index i, Index k) const { return of_[static_cast<std::size_t>(i * cols_ + k)]; }
  [[nodiscard]] const std::vector<Index>& all() const { return of_; }

 private:
  static std::size_t size(Index rows, Index cols) {
    const Words words = Words(rows) * cols;
    if (words > Words(kMostWords)) {
      throw std::length_error(fmt::format("a matrix of more than {} words", kMostWords));
    }
    return static_cast<std::size_t>(words.value());
  }

  Index cols_;
  std::vector<Index> of_;
};

class DagWriter {
 public:
  explicit DagWriter(Sums sums) : sums_(sums) {}

  WordsOf inputs(std::string_view name, Index rows, Index cols,
                 const std::function<bool(Index, Index)>& stored = nullptr) {
    if (!stored) {
      require_room(Words(rows) * cols);
    }
    WordsOf words(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index k = 0; k < cols; ++k) {
        if (!stored || stored(i, k)) {
          words(i, k) = add(at(name, i, k), {});
        }
      }
    }
    return words;
  }

  // Returns the sum of a(t) b(t) over t < depth where both are vertices. kNoWord if it is empty.
  template <class Left, class Right>
  Index sum_of_products(const std::string& name, Index depth, const Left& a, const Right& b) {
    std::vector<std::pair<Index, Index>> factors;
    for (Index t = 0; t < depth; ++t) {
      if (const std::pair of{a(t), b(t)}; of.first != kNoWord && of.second != kNoWord) {
        factors.push_back(of);
      }
    }
    if (factors.size() == 1) {
      return add(name, operands(factors.front()));
    }
    std::vector<Index> terms;
    for (const auto& of : factors) {
      terms.push_back(add(fmt::format("{}*{}", name, terms.size()), operands(of)));
      dag_.vertices.back().term = true;
    }
    return sum(name, terms);
  }
  // Returns the sum of the terms, a new vertex even for one word. kNoWord without terms.
  Index sum(const std::string& name, const std::vector<Index>& terms) {
    if (terms.empty()) {
      return kNoWord;
    }
    if (terms.size() == 1 || sums_ == Sums::any) {
      const Index made = add(name, terms);
      dag_.vertices.back().sum = terms.size() > 1;
      return made;
    }
    partial_ = 0;
    return sums_ == Sums::chain ? chain(name, terms) : tree(name, terms.begin(), terms.end(), true);
  }
  Index add(std::string name, std::vector<Index> operands) {
    require_room(1);
    return dag_.add(std::move(name), std::move(operands));
  }
  // Returns a new vertex. Its operands are the given words that are vertices.
  Index made_of(std::string name, std::initializer_list<Index> words) {
    std::vector<Index> operands;
    std::ranges::copy_if(words, std::back_inserter(operands),
                         [](Index word) { return word != kNoWord; });
    return add(std::move(name), std::move(operands));
  }
  static std::string at(std::string_view name, Index i, Index k) {
    return fmt::format("{}({},{})", name, i, k);
  }
  static std::string at(std::string_view name, Index i) { return fmt::format("{}({})", name, i); }
  // Returns the graph of the results and of all words that they depend on.
  [[nodiscard]] Dag take(const std::vector<Index>& results) {
    std::vector<Index> place(dag_.vertices.size(), kNoWord);
    std::vector<Index> left = results;
    while (!left.empty()) {
      const Index v = left.back();
      left.pop_back();
      if (v != kNoWord && std::exchange(place[static_cast<std::size_t>(v)], 0) == kNoWord) {
        left.insert(left.end(), dag_[v].operands.begin(), dag_[v].operands.end());
      }
    }
    Dag kept;
    for (Index v = 0; v < dag_.size(); ++v) {
      if (place[static_cast<std::size_t>(v)] == kNoWord) {
        continue;
      }
      place[static_cast<std::size_t>(v)] = kept.size();
      Vertex& vertex = dag_.vertices[static_cast<std::size_t>(v)];
      for (Index& operand : vertex.operands) {
        operand = place[static_cast<std::size_t>(operand)];
      }
      kept.vertices.push_back(std::move(vertex));
    }
    for (const Index v : results) {
      if (v != kNoWord) {
        kept.vertices[slot(place[slot(v)])].result = true;
      }
    }
    return kept;
  }

 private:
  using At = std::vector<Index>::const_iterator;

  void require_room(Words vertices) const {
    if (vertices + dag_.size() > Words(kMostVertices)) {
      throw std::length_error(fmt::format("more than {} vertices", kMostVertices));
    }
  }
  static std::vector<Index> operands(const std::pair<Index, Index>& of) {
    return of.first == of.second ? std::vector<Index>{of.first}
                                 : std::vector<Index>{of.first, of.second};
  }
  std::string partial(const std::string& name, bool last) {
    return last ? name : fmt::format("{}+{}", name, ++partial_);
  }
  Index chain(const std::string& name, const std::vector<Index>& terms) {
    Index sum = terms.front();
    for (std::size_t t = 1; t < terms.size(); ++t) {
      sum = add(partial(name, t + 1 == terms.size()), {sum, terms[t]});
    }
    return sum;
  }
  Index tree(const std::string& name, At begin, At end, bool last) {
    if (end - begin == 1) {
      return *begin;
    }
    const At middle = begin + (end - begin + 1) / 2;
    const Index left = tree(name, begin, middle, false);
    const Index right = tree(name, middle, end, false);
    return add(partial(name, last), {left, right});
  }

  Sums sums_;
  Dag dag_;
  Index partial_ = 0;
};

}  // namespace redblue
