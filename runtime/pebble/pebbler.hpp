#pragma once
// Records a run as a pebbling of the graph of its operations. Each scalar operation is a vertex.
// The word that it changes is one of its operands. A read puts a red pebble on a blue vertex. A
// write puts a blue pebble on a red vertex. If a word is freed or gets another value, its vertex
// loses its red pebble, unless another word holds the vertex. If the same operation is done again
// on the same operands, its vertex is computed again. The factors of a product have no order, but
// the terms of a sum do.
//
// A word has no vertex while its number does not depend on any word. Such numbers are the initial
// values of a tile, and values computed from such numbers alone. A sum that begins with 0 begins
// with its first term.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/pebble/pebbling.hpp"
#include "runtime/trace/follower.hpp"

namespace redblue {

inline constexpr Index kMostPebbled = Index{1} << 20;  // the most vertices

// How a term a_ik b_kj of a product is recorded: in one operation with the sum that it is added to,
// or as a vertex.
enum class ProductPebbles : std::uint8_t { fused, vertices };

class Pebbler final : public Follower {
 public:
  // Listens to the machine while it lives.
  Pebbler(Machine& machine, ProductPebbles products)
      : Follower(machine, Hears::moves_and_arithmetic), products_(products) {}

  // Returns the pebbling. Call it once, after the run. Throws: the errors of check(); InputError
  // above kMostPebbled vertices.
  [[nodiscard]] Pebbling take();

 private:
  struct Word {
    Index vertex = -1;
    float number = 0;  // the value if there is no vertex
    bool set = false;
    Index home = -1;  // the place in homes_ that names the word's vertices, until it is overwritten
  };
  struct Held {
    std::string name;
    Index columns;
    std::vector<Word> words;
  };
  struct Home {
    std::string name;
    Index steps = 0;
  };
  // Identifies a vertex: the function, the number that it takes, and its operands, each a vertex or
  // a number.
  static constexpr std::size_t kMostOperands = 6;
  struct Key {
    std::uint32_t function, number;
    std::array<std::uint64_t, kMostOperands> operands = {};
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct HashOfKey {
    std::size_t operator()(const Key& key) const;
  };
  struct Part {
    Held* tile;
    const TilePart* part;
  };

  void follow(const Event& event) override;
  void follow(const Operation& operation) override;
  void read(const Event& event);
  void write(const Event& event);
  void multiply(const Operation& operation);
  void map(const Operation& operation);
  void fold(const Operation& operation);

  static bool is_zero(const Word& word);
  static bool is_zero_of(std::string_view map, const std::vector<Word>& words);
  static bool leaves(std::string_view map, const std::vector<Word>& words);
  Part part_of(const TilePart& part);
  static std::pair<Index, Index> place(const TilePart& part, Index i, Index j);
  Word& word(const Part& part, Index i, Index j);
  Word& used(const Part& part, Index i, Index j);
  // Drops the old value of a word before a new value that does not depend on it.
  void overwrite(const Part& part, Index i, Index j);

  void copy(const Part& part, Index i, Index j, const Word& from);
  // Sets the word at (i, j) of `part` to the function `name` of the operands and of `number`.
  void make(const Part& part, Index i, Index j, std::string_view name,
            const std::vector<Word>& operands, float number, const Pebbling::Made& made);
  void add_term(const Part& part, Index i, Index j, const Word& a, const Word& b);
  void compute(Word& word, Index vertex);
  void hold(Word& word, Index vertex);
  void drop(Word& word);
  Home& home_of(const Part& part, Index i, Index j);
  Index vertex_of(std::string_view function, const std::vector<Word>& operands, float number,
                  Home& home, char kind, const Pebbling::Made& made);
  std::uint32_t id_of(std::string_view function);
  Index add(std::string name, std::vector<Index> operands, const Pebbling::Made& made);
  Word& stored(const ConstBlock& block, Index row, Index column);
  template <class Visit>
  void each_stored(const Event& event, const Visit& visit);

  ProductPebbles products_;
  Pebbling found_;
  std::unordered_map<std::uint64_t, Held> tiles_;
  std::map<std::pair<std::uint64_t, Index>, std::vector<Word>> slow_;  // by backing and row
  std::map<std::uint64_t, std::string> matrices_;                      // by backing
  // How often each name of a home or matrix was used.
  std::map<std::string, Index, std::less<>> named_;
  std::vector<Home> homes_;
  std::vector<Index> holders_;  // words in fast memory that hold each vertex
  std::map<std::string, std::uint32_t, std::less<>> functions_;  // numbers of functions
  std::unordered_map<Key, Index, HashOfKey> known_;              // vertices by key
};

}  // namespace redblue
