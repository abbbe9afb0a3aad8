// Tests Lemmas E.6 and E.7 with constants. Random parts of graphs have no more products than the
// lemmas say. The words equal independently computed ones, and are fewer than the words of any
// kernel.

#include "runtime/theory/partition.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// Checks millions of words, to within half of the last digit.
void expect_about(Index words, double millions, double digit, const char* what, Index M) {
  EXPECT_NEAR(static_cast<double>(words) / 1e6, millions, digit / 2) << what << " M = " << M;
}

TEST(Partitions, OfBackwardInRoundNumbers) {
  struct Row {
    Index M;
    double lemma, best, digit, of_S, of_S_digit;
  };
  for (const Row& row : {Row{1 << 12, 5.5, 5.7, .1, .086, .001},
                         {1 << 14, 2.1, 2.2, .1, .016, .001},
                         {1 << 16, .79, .85, .01, 0, 0},
                         {1 << 18, 0, .25, .01, 0, 0}}) {
    const auto all = partitions({Pass::backward, Problem{4096, 4096, 64}, row.M});
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].products, "S");
    EXPECT_EQ(all[1].products, "s");
    EXPECT_EQ(all[2].products, "s and q");
    expect_about(all[0].words, row.of_S, row.of_S_digit, "S", row.M);
    expect_about(all[1].words, row.lemma, row.digit, "E.6", row.M);
    expect_about(all[1].best_words, row.best, row.digit, "best T", row.M);
    EXPECT_EQ(all[2].all, 2 * all[1].all);
    EXPECT_GE(all[2].best_words, 2 * all[1].best_words);
  }
}

TEST(Partitions, LongestLengthsOfAsManyParts) {
  for (const Index M : {1, 2, 30, 1000, 77777}) {
    for (const Partition& of : partitions({Pass::backward, Problem{3000, 500, 16}, M})) {
      const auto parts = [&](Index T) {
        return static_cast<Index>(std::ceil(real(of.all) / most_in_a_part(real(M + T), 16, false)));
      };
      EXPECT_EQ(of.parts, parts(M));
      EXPECT_EQ(of.words, M * (of.parts - 1));
      EXPECT_GE(of.best_words, of.words);
      EXPECT_EQ(of.best_words, of.best_length * (parts(of.best_length) - 1));
      EXPECT_TRUE(of.best_words == 0 || parts(of.best_length + 1) < parts(of.best_length));
    }
  }
}

TEST(Partitions, AreOfSomeProblemsAlone) {
  const Task backward{Pass::backward, {8, 8, 2}, 16};
  EXPECT_EQ(no_partitions(backward), "");
  Task task = backward;
  task.pass = Pass::gradients;
  EXPECT_NE(no_partitions(task), "");
  task = backward;
  task.problem.sharing = Sharing::kv;
  EXPECT_NE(no_partitions(task), "");
  EXPECT_EQ(thrown<ShapeMismatch>([&] { partitions(task); }).empty(), false);
  task = backward;
  task.heads = 2;
  EXPECT_NE(no_partitions(task), "");
}

// A kernel with M words is a strict game with M + 2 red pebbles.
TEST(Partitions, SayLessThanKernelsMove) {
  std::mt19937_64 random(5);
  double nearest = 0;
  for (int k = 0; k < 60; ++k) {
    const auto size = [&](unsigned most) { return Index{1} + Index(random() % most); };
    const Pass pass = k % 3 == 0 ? Pass::product : k % 3 == 1 ? Pass::forward : Pass::backward;
    Task task{pass, {size(3000), size(3000), size(k % 2 == 0 ? 8 : 90)}, 8 + size(5000)};
    const auto all = choices(task);
    task.memory.M += 2;
    for (const Partition& of : partitions(task)) {
      ASSERT_FALSE(all.empty());
      const Index moved = all.front().words.value();
      EXPECT_LE(of.best_words, moved) << of.products << " " << task.memory.M;
      nearest = std::max(nearest, static_cast<double>(of.best_words) / static_cast<double>(moved));
    }
  }
  EXPECT_GT(nearest, 0.1);
}

// ---- parts of graphs ---------------------------------------------------------------------------

// Returns whether a vertex is a product of one of the named sums: s(0,1)*2, or s(0,1) if the sum
// has one product.
bool is_product(const Vertex& vertex, const std::string& sums, Index d) {
  const bool of_these = vertex.name[1] == '(' && sums.find(vertex.name[0]) != std::string::npos;
  return of_these && (vertex.term || (d == 1 && vertex.name.back() == ')'));
}

// Returns some of the vertices that D dominates.
std::vector<bool> part_of(const Dag& dag, const std::vector<bool>& D, std::mt19937_64& random) {
  std::vector<bool> dominated(D), part(D.size());
  const auto from = static_cast<Index>(random() % 4 == 0 ? random() % D.size() : 0);
  const auto end = random() % 2 == 0 ? dag.size() : 1 + static_cast<Index>(random() % D.size());
  for (Index v = 0; v < dag.size(); ++v) {
    const auto& operands = dag[v].operands;
    const auto at = static_cast<std::size_t>(v);
    dominated[at] =
        dominated[at] || (!operands.empty() && std::ranges::all_of(operands, [&](Index operand) {
          return dominated[static_cast<std::size_t>(operand)];
        }));
    part[at] = dominated[at] && from <= v && v < end;
  }
  return part;
}

struct Counted {
  Index X = 0, products = 0;
};
Counted counted(const Dag& dag, const std::vector<bool>& D, const std::vector<bool>& part,
                const std::string& sums, Index d) {
  Counted all;
  Index minimum = 0;
  const auto users = dag.users();
  for (Index v = 0; v < dag.size(); ++v) {
    const auto at = static_cast<std::size_t>(v);
    if (part[at]) {
      all.products += is_product(dag[v], sums, d) ? 1 : 0;
      minimum += std::ranges::none_of(
                     users[at], [&](Index user) { return part[static_cast<std::size_t>(user)]; })
                     ? 1
                     : 0;
    }
  }
  all.X = std::max<Index>(std::ranges::count(D, true), minimum);
  return all;
}

TEST(Partitions, PartsHaveNoMoreProducts) {
  struct Case {
    Pass pass;
    Shape shape;
    const char* sums;
    Sums trees;
  };
  std::mt19937_64 random(3);
  for (const Case& of : {Case{Pass::product, {4, 4, 3}, "C", Sums::chain},
                         {Pass::product, {5, 5, 1}, "C", Sums::chain},
                         {Pass::forward, {4, 4, 2}, "s", Sums::tree},
                         {Pass::backward, {4, 4, 2}, "S", Sums::chain},
                         {Pass::backward, {4, 4, 2}, "s", Sums::chain},
                         {Pass::backward, {3, 4, 3}, "sq", Sums::tree}}) {
    const Dag dag = dag_of({of.pass, Problem(of.shape)}, of.trees);
    Index products = 0;
    for (const Vertex& vertex : dag.vertices) {
      products += is_product(vertex, of.sums, of.shape.d) ? 1 : 0;
    }
    const Task task{of.pass, Problem(of.shape), 4};
    const auto families = partitions(task);
    EXPECT_TRUE(std::ranges::any_of(families, [&](const Partition& p) {
      return p.all == products;
    })) << of.sums;
    Real fullest = 0;
    for (int k = 0; k < 12000; ++k) {
      // D has all, no or some rows of each matrix of operands, and few other vertices.
      std::vector<bool> D(dag.vertices.size());
      std::map<std::string, unsigned> of_matrix, of_row;
      for (std::size_t v = 0; v < D.size(); ++v) {
        const std::string& name = dag.vertices[v].name;
        const bool made = name.back() == ')' && (name[0] == 'S' || name[0] == 'h');
        if (!made && !dag.vertices[v].operands.empty()) {
          D[v] = random() % 60 == 0;
          continue;
        }
        const unsigned matrix =
            of_matrix.try_emplace(name.substr(0, name.find('(')), random() % 3).first->second;
        const unsigned row =
            of_row.try_emplace(name.substr(0, name.find(',')), random() % 2).first->second;
        D[v] = matrix == 0 || (matrix == 1 && row == 0);
      }
      const Counted made = counted(dag, D, part_of(dag, D, random), of.sums, of.shape.d);
      const Real most = most_in_a_part(real(made.X), real(of.shape.d), of.pass == Pass::product);
      ASSERT_LE(real(made.products), most) << of.sums << " X = " << made.X;
      fullest = std::max(fullest, made.X == 0 ? 0 : real(made.products) / most);
    }
    EXPECT_GT(fullest, 0.15L) << of.sums;
  }
}

}  // namespace
}  // namespace redblue
