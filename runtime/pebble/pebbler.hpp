#pragma once
// A run as a pebbling of its own graph: a vertex for each scalar operation, of which the word that
// it changes is an operand; a read is a red pebble on a blue vertex, a write a blue one on a red.
// A word that is freed, or gets another value, gives up the pebble of its vertex if no other word
// holds it. Where the same operation is done on the same operands again, its vertex is computed
// again; the factors of a product are in no order, its sums are.
//
// A word has no vertex while it holds a number that no word was needed for: what a tile begins
// with, and what becomes of that alone. Sums that begin with 0 begin with their first term.

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

inline constexpr Index kMostPebbled = Index{1} << 20;  // vertices

// A term a_ik b_kj of a product: one operation with the sum that it is added to, or a vertex.
enum class ProductPebbles : std::uint8_t { fused, vertices };

class Pebbler final : public Follower {
 public:
  // Listens while it lives.
  Pebbler(Machine& machine, ProductPebbles products)
      : Follower(machine, Hears::moves_and_arithmetic), products_(products) {}

  // Once, after the run. Throws: what check() throws; InputError beyond kMostPebbled vertices.
  [[nodiscard]] Pebbling take();

 private:
  struct Word {
    Index vertex = -1;
    float number = 0;  // where there is no vertex
    bool set = false;
    Index home = -1;  // names what becomes of the word, until it is overwritten
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
  // By which a vertex is known: the function, the number that it takes, and its operands, each a
  // vertex or a number.
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
  // Before its next value, which is not made of the one before.
  void overwrite(const Part& part, Index i, Index j);

  void copy(const Part& part, Index i, Index j, const Word& from);
  // The word at ij of `part` becomes `name` of these words and of `number`.
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
  std::map<std::pair<std::uint64_t, Index>, std::vector<Word>> slow_;  // by row
  std::map<std::uint64_t, std::string> matrices_;                      // by backing
  std::map<std::string, Index, std::less<>> named_;  // how often homes and matrices are so named
  std::vector<Home> homes_;
  std::vector<Index> holders_;                                   // words in fast memory, by vertex
  std::map<std::string, std::uint32_t, std::less<>> functions_;  // numbered
  std::unordered_map<Key, Index, HashOfKey> known_;              // vertices
};

}  // namespace redblue
