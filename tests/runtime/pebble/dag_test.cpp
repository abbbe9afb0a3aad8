// Tests graphs. They have as many vertices as the formulas of runtime/pebble/attention_dags.hpp
// say, and each vertex has the operands that its name says. Every file format gives the same graph.
// Bad files are refused.

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/pebble/attention_dags.hpp"
#include "runtime/pebble/core_dags.hpp"
#include "runtime/pebble/dag_files.hpp"
#include "runtime/pebble/dag_writer.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/theory/sources.hpp"

namespace redblue {
namespace {

constexpr Sums kAllSums[] = {Sums::chain, Sums::tree, Sums::any};
constexpr Pass kPasses[] = {Pass::product, Pass::forward, Pass::backward, Pass::gradients};

// Returns the vertices of a sum of t products.
Index D(Index t, Sums sums) {
  return t == 1 ? 1 : sums == Sums::any ? t + 1 : 2 * t - 1;
}

// Returns the vertices of a graph that starts from scratch, or from O and L.
Index vertices_of(Pass pass, Known known, Index n, Index m, Index d, Sums sums) {
  const auto D_of = [&](Index t) { return D(t, sums); };
  const Index row_sum = sums == Sums::any ? 1 : std::max<Index>(m - 1, 1);
  // e, l and v = sum f q; or O, L and v = sum dO O.
  const Index rows =
      known == Known::nothing ? n * m + n * row_sum + n * D_of(m) : n * (d + 1) + n * D_of(d);
  switch (pass) {
    case Pass::product:
      return n * d + d * m + n * m * D_of(d);
    case Pass::forward:
      return n * d + 2 * m * d + 2 * d * d + (n + m) * d * D_of(d) + n * m * (D_of(d) + 1) +
             n * row_sum + n * d * (D_of(m) + 1) + n;
    case Pass::backward:
      return 2 * n * d + 2 * m * d + 2 * d * d + (n + m) * d * D_of(d) + 2 * n * m * D_of(d) +
             2 * n * m + rows + m * d * D_of(n) + d * d * D_of(m);
    default:
      return 2 * n * d + 2 * m * d + n * m * (2 * D_of(d) + 2) + rows + n * d * D_of(m) +
             2 * m * d * D_of(n);
  }
}

// From scratch by default, as in the paper's Algorithm 1.
Task task_of(Pass pass, Index n, Index m, Index d, Known known = Known::nothing) {
  return {.pass = pass, .problem = Problem(n, m, d), .known = known};
}

// Returns the names of the operands of a vertex.
std::vector<std::string> operands(const Dag& dag, const std::string& name) {
  const auto found = std::ranges::find(dag.vertices, name, &Vertex::name);
  std::vector<std::string> names;
  for (const Index operand : found->operands) {
    names.push_back(dag[operand].name);
  }
  return names;
}

using Edge = std::pair<std::string, std::string>;
std::set<Edge> edges_of(const Dag& dag, bool numbers, Index first = 0) {
  std::set<Edge> edges;
  const auto name = [&](Index v) { return numbers ? std::to_string(v + first) : dag[v].name; };
  for (Index v = 0; v < dag.size(); ++v) {
    for (const Index operand : dag[v].operands) {
      edges.emplace(name(operand), name(v));
    }
  }
  return edges;
}

TEST(AttentionDags, HaveTheVerticesOfTheFormulas) {
  for (const Sums sums : kAllSums) {
    for (const Pass pass : kPasses) {
      for (Index n = 1; n <= 4; ++n) {
        for (Index m = 1; m <= 4; ++m) {
          for (Index d = 1; d <= 3; ++d) {
            for (const Known known : {Known::nothing, Known::O_and_L}) {
              EXPECT_EQ(dag_of(task_of(pass, n, m, d, known), sums).size(),
                        vertices_of(pass, known, n, m, d, sums))
                  << to_string(pass) << " " << n << " " << m << " " << d;
            }
            const Dag dag = dag_of(task_of(pass, n, m, d), sums);
            EXPECT_TRUE(dag.cycle().empty());
            std::set<std::string> names;
            for (const Vertex& vertex : dag.vertices) {
              EXPECT_TRUE(names.insert(vertex.name).second) << vertex.name;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(dag_of(task_of(Pass::backward, 2, 2, 1), Sums::chain).size(), 51);
  EXPECT_EQ(dag_of(task_of(Pass::backward, 3, 3, 2), Sums::chain).size(), 220);
}

// Refuses before it makes any vertex, even if rows x columns exceeds 63 bits.
TEST(AttentionDags, OfTooManyVertices) {
  constexpr Index huge = Index{1} << 32;
  for (const auto& [n, m, d] : {std::tuple<Index, Index, Index>{huge, 1, huge},
                                {huge, huge, 1},
                                {1, huge, huge},
                                {huge, 1, 1}}) {
    for (const Pass pass : kPasses) {
      EXPECT_THROW((void)dag_of(task_of(pass, n, m, d), Sums::any), std::length_error);
    }
    for (const Core core : {Core::forward, Core::backward, Core::g, Core::gradients}) {
      EXPECT_THROW((void)core_dag(core, {n, m, d, d}, true, Sums::any), std::length_error);
    }
  }
  EXPECT_THROW(WordsOf(huge, huge), std::length_error);
  constexpr Index n = 2100;  // more pairs than vertices are allowed, but few live
  Problem window(n, n, 1);
  window.mask = Mask::window(n, n, 0, 0);
  EXPECT_EQ(dag_of({Pass::forward, window}, Sums::any).size(), 3 * n + 2 + 8 * n);
}

TEST(AttentionDags, AreMadeOfWhatTheirNamesSay) {
  using ::testing::ElementsAre;
  const Dag backward = dag_of(task_of(Pass::backward, 2, 3, 2), Sums::chain);
  EXPECT_THAT(operands(backward, "s(1,2)*0"), ElementsAre("S(1,0)", "A2(2,0)"));
  EXPECT_THAT(operands(backward, "f(1,2)"), ElementsAre("e(1,2)", "l(1)"));
  EXPECT_THAT(operands(backward, "q(1,2)*1"), ElementsAre("dO(1,1)", "h(2,1)"));
  EXPECT_THAT(operands(backward, "p(1,2)"), ElementsAre("f(1,2)", "q(1,2)", "v(1)"));
  EXPECT_THAT(operands(backward, "T(2,1)*1"), ElementsAre("p(1,2)", "A1(1,1)"));
  EXPECT_THAT(operands(backward, "g(0,1)*2"), ElementsAre("T(2,0)", "A2(2,1)"));
  EXPECT_THAT(operands(backward, "g(0,1)+1"), ElementsAre("g(0,1)*0", "g(0,1)*1"));
  EXPECT_THAT(operands(backward, "g(0,1)"), ElementsAre("g(0,1)+1", "g(0,1)*2"));
  const Dag tree = dag_of({Pass::product, Problem(1, 1, 5)}, Sums::tree);
  EXPECT_THAT(operands(tree, "C(0,0)+2"), ElementsAre("C(0,0)+1", "C(0,0)*2"));
  EXPECT_THAT(operands(tree, "C(0,0)"), ElementsAre("C(0,0)+2", "C(0,0)+3"));
  const Dag any = dag_of({Pass::product, Problem(1, 1, 3)}, Sums::any);
  EXPECT_THAT(operands(any, "C(0,0)"), ElementsAre("C(0,0)*0", "C(0,0)*1", "C(0,0)*2"));
}

// A graph has only live pairs, and only vertices that some result needs.
TEST(AttentionDags, OfMasksAndOfSparseOperands) {
  Task task = task_of(Pass::backward, 3, 5, 1);
  task.problem.mask = Mask::window(3, 5, 0, 0);  // j = i + 2
  const Dag window = dag_of(task, Sums::chain);
  EXPECT_TRUE(
      std::ranges::any_of(window.vertices, [](const Vertex& v) { return v.name == "p(2,4)"; }));
  EXPECT_FALSE(std::ranges::any_of(window.vertices, [](const Vertex& v) {
    return v.name == "A2(0,0)" || v.name == "s(0,0)" || v.name == "h(1,0)";
  }));
  // The vertices are A1 and dO, A2 and A3 of three keys, X and Y, S and h, s, q, e, l, f, v and p,
  // T, and g with three terms.
  EXPECT_EQ(window.size(), 4 * 3 + 2 + 2 * 3 + 7 * 3 + 3 + 5);

  BlockPattern diagonal;
  diagonal.rows = diagonal.cols = 2;
  diagonal.offsets = {0, 1, 2};
  diagonal.columns = {0, 1};
  const Problem sparse = Problem(2, 2, 2).with_sparsity({diagonal, diagonal, diagonal});
  const Dag of_diagonals = dag_of({Pass::forward, sparse}, Sums::chain);
  // 6 entries, and 8 words of A3 and Y. h has 3 vertices for each word. A row has S, s, e, l, L, 2
  // Z and 2 O.
  EXPECT_EQ(of_diagonals.size(), 6 + 8 + 4 * 3 + 2 * 9);
}

// Returns the words of each input matrix, and of all results.
std::map<std::string, Index> words_of(const Dag& dag) {
  std::map<std::string, Index> words;
  const std::vector<bool> results = dag.results();
  for (Index v = 0; v < dag.size(); ++v) {
    if (dag.input(v)) {
      ++words[dag[v].name.substr(0, dag[v].name.find('('))];
    }
    words["results"] += results[static_cast<std::size_t>(v)] ? 1 : 0;
  }
  return words;
}

std::vector<Task> tasks_of(Pass pass, const Problem& problem) {
  std::vector<Task> tasks;
  for (const Known known : {Known::nothing, Known::O_and_L}) {
    const std::vector<Signature>& results = results_of(pass);
    for (unsigned some = 0; some < 1U << results.size(); ++some) {
      Task task{.pass = pass, .problem = problem, .known = known};
      for (std::size_t k = 0; k < results.size(); ++k) {
        if ((some >> k & 1U) != 0 && pass != Pass::product) {
          task.problem.wanted.add(results[k].name);
        }
      }
      tasks.push_back(task);
    }
  }
  return tasks;
}

// A bound counts exactly the inputs and results of the graph. This holds for every problem, under
// masks, for a choice of results, and for every order of products. Given O and L are further
// inputs, if some vertex needs them.
TEST(AttentionDags, StartAndEndAsBoundsDo) {
  for (const Pass pass :
       {Pass::product, Pass::forward, Pass::backward, Pass::attention, Pass::gradients}) {
    for (const auto& [n, m, d] :
         {std::tuple<Index, Index, Index>{1, 1, 1}, {3, 2, 2}, {2, 3, 2}, {3, 3, 1}}) {
      for (const bool causal : {false, true}) {
        if (causal && (pass == Pass::product || n > m)) {
          continue;
        }
        Problem problem(n, m, d);
        problem.mask = causal ? Mask::causal(n, m) : Mask();
        for (const Task& task : tasks_of(pass, problem)) {
          std::map<std::string, Index> expected = {{"results", results(task).value()}};
          Index compulsory = results(task).value();
          for (const Source& source : sources_of(task)) {
            expected[std::string(source.name)] = source.words.value();
            compulsory += source.words.value();
          }
          EXPECT_EQ(lower_bounds(task).front().words, compulsory);
          std::vector<GraphOrder> orders = orders_of(task);
          orders.emplace_back();
          for (const GraphOrder& order : orders) {
            std::map<std::string, Index> words = words_of(dag_of(task, Sums::any, order));
            words.erase("O");
            words.erase("L");
            EXPECT_EQ(words, expected)
                << to_string(pass) << " " << n << " " << m << " " << d << " "
                << task.problem.wanted.text() << " " << to_string(order, pass);
          }
        }
      }
    }
  }
}

TEST(DagFiles, RoundTrips) {
  for (const Pass pass : kPasses) {
    for (const auto& [n, m, d] : {std::tuple<Index, Index, Index>{1, 1, 1}, {3, 2, 2}, {2, 4, 3}}) {
      const Dag dag = dag_of(task_of(pass, n, m, d), Sums::chain);
      for (const DagFormat format :
           {DagFormat::text, DagFormat::hdag, DagFormat::dot, DagFormat::mtx}) {
        const Dag read = parse_dag(to_text(dag, format), "file", format);
        const bool numbers = format == DagFormat::mtx;
        EXPECT_EQ(edges_of(read, false), edges_of(dag, numbers, 1));
        EXPECT_EQ(read.size(), dag.size());
        if (!numbers) {
          for (const Vertex& vertex : read.vertices) {
            const auto same = std::ranges::find(dag.vertices, vertex.name, &Vertex::name);
            EXPECT_EQ(vertex.term, same->term) << vertex.name;
          }
        }
      }
    }
  }
}

TEST(DagFiles, MarkTermsOfTheirSums) {
  const Dag dag = parse_dag(
      "a\nb\nx*1\ns*0: a b\ns*1: a b\ns*2: a b\ns+1: s*0 s*1\ns: s+1 s*2 x*1\n"
      "t*0: a b\nt: t*0 a\nu: t*0 b\nw*1: a b\nc: a w*1\nv*: a b\nv: a v*\n*3: a b\nz: a *3\n"
      "k+1*0: a b\nk+1: a k+1*0\nk: b k+1\n",
      "file", DagFormat::text);
  std::set<std::string> terms;
  for (const Vertex& vertex : dag.vertices) {
    if (vertex.term) {
      terms.insert(vertex.name);
    }
  }
  EXPECT_THAT(terms, ::testing::ElementsAre("k+1*0", "s*0", "s*1", "s*2"));
}

// If a format cannot hold a name, numbers replace the names of all vertices.
TEST(DagFiles, Names) {
  using Formats = std::set<DagFormat>;
  const Formats all = {DagFormat::text, DagFormat::hdag, DagFormat::dot};
  const Formats dot_alone = {DagFormat::dot}, without_text = {DagFormat::hdag, DagFormat::dot};
  const std::tuple<const char*, Formats> cases[] = {
      {"a\"x", all},        {"q\\", all},         {"\\\"\\n\\\\", all}, {"%x%", all},
      {"node", all},        {"a b", dot_alone},   {"", dot_alone},      {"a\tb", dot_alone},
      {"#x", without_text}, {"k:", without_text}, {":", without_text},  {"two\nlines", {}},
      {"\rk", {}}};
  for (const auto& [name, keep_it] : cases) {
    Dag dag;
    dag.add("b");
    dag.add(name);
    dag.add("c", {1, 0});
    for (const DagFormat format :
         {DagFormat::text, DagFormat::hdag, DagFormat::dot, DagFormat::mtx}) {
      const Dag read = parse_dag(to_text(dag, format), "file", format);
      const bool numbers = !keep_it.contains(format);
      EXPECT_EQ(edges_of(read, false), edges_of(dag, numbers, format == DagFormat::mtx ? 1 : 0))
          << name;
      EXPECT_EQ(read.size(), 3) << name;
    }
  }
}

// Files as other programs write them: comments between the parts, weights, pins before vertices.
TEST(DagFiles, OfOthers) {
  const std::set<Edge> edges = {{"0", "2"}, {"1", "2"}, {"2", "3"}};
  for (const char* text : {"%% by hand\n3 4 6\n%% hyperedges\n0 1 1\n1 1 1\n2 1 1\n%% vertices\n"
                           "0 1 0\n1 1 0\n2 1 0\n3 1 0\n%% pins\n0 0\n0 2\n1 1\n1 2\n2 2\n2 3\n",
                           "3 4 6\n0 0\n0 2\n1 1\n1 2\n2 2\n2 3\n0 5 1\n1 5 1\n3 1 1\n2 1 1\n"}) {
    EXPECT_EQ(edges_of(parse_dag(text, "file", DagFormat::hdag), false), edges);
  }
  const Dag dot = parse_dag(
      "strict digraph \"a graph\" { /* two\nlines */ rankdir=LR; node [shape=box, color=\"a;b\"];\n"
      "# a line\n0 -> 2 -> 3 [w=-1.5]; // the rest\n1[label=\"one\"] 1 -> 2 }\n",
      "file", DagFormat::dot);
  EXPECT_EQ(edges_of(dot, false), edges);
  const Dag merged =
      parse_dag("strict digraph { 0 -> 2 -> 3; 1 -> 2; 0 -> 2 -> 3 }", "file", DagFormat::dot);
  EXPECT_EQ(edges_of(merged, false), edges);
  EXPECT_EQ(merged.edges(), 3);
  const Dag keywords = parse_dag(
      "Digraph { Node [shape=box] \"node\" -> \"graph\"; \"edge\"; \"subgraph\" -> \"edge\" }\n",
      "file", DagFormat::dot);
  EXPECT_EQ(edges_of(keywords, false), (std::set<Edge>{{"node", "graph"}, {"subgraph", "edge"}}));
  for (const std::string symmetry : {"symmetric", "Symmetric"}) {
    const Dag lower = parse_dag("%%MatrixMarket matrix coordinate real " + symmetry +
                                    "\n3 3 4\n1 1 2.5\n2 1 1\n3 1 1\n3 2 1\n",
                                "file", DagFormat::mtx);
    EXPECT_EQ(edges_of(lower, false), (std::set<Edge>{{"1", "2"}, {"1", "3"}, {"2", "3"}}));
  }
}

TEST(DagFiles, BadOnes) {
  const std::tuple<DagFormat, const char*, const char*> cases[] = {
      {DagFormat::text, "", "no vertices"},
      {DagFormat::dot, "digraph g { /* none */ }", "no vertices"},
      {DagFormat::dot, "digraph { \"a\nb\" }", "line 1: a name of several lines"},
      {DagFormat::text, "a\nb: a\na\n", "line 3: a has a line before"},
      {DagFormat::text, "a\nb:\n", "line 2: the operands of b are missing"},
      {DagFormat::text, "a\nb a\n", "line 2: expected 'b:' before its operands"},
      {DagFormat::text, "a\n: a\n", "line 2: the vertex before ':' is missing"},
      {DagFormat::text, "b: a\n", "the end: a is an operand and has no line"},
      {DagFormat::text, "a\nb: a a\n", "file: a is an operand of b twice"},
      {DagFormat::text, "a: a\n", "file: a is an operand of itself"},
      {DagFormat::text, "a: c\nb: a\nc: b\n", "file: a cycle: "},
      {DagFormat::text, "a\nb\nc: b\n", "file: a is neither computed nor an operand"},
      {DagFormat::hdag, "% nothing\n", "the counts of hyperedges, vertices and pins are missing"},
      {DagFormat::hdag, "1 2\n", "line 1: the number of pins is missing"},
      {DagFormat::hdag, "2 2 1\n0\n0\n1\n0 0\n", "line 1: 2 hyperedges, 2 vertices, 1 pins"},
      {DagFormat::hdag, "1 2 2\n0\n0\n1\n0 0\n0 2\n", "line 6: vertex is 2: expected 0 to 1"},
      {DagFormat::hdag, "1 2 2\n0\n0\n0\n0 0\n0 1\n", "line 4: vertex 0 has a line before"},
      {DagFormat::hdag, "1 2 2\n0\n0\n1\n0 0\n", "line 2: vertex is missing"},
      {DagFormat::hdag, "1 2 2\n0\n0\n1\n0 0\n0 1\n0 1\n",
       "line 1: 1 hyperedges, 2 vertices and 2 pins: expected 5 lines, or 4 without hyperedges, "
       "not 6"},
      {DagFormat::hdag, "1 2000000000 1\n0\n", "expected 2000000002 lines"},
      {DagFormat::hdag, "1 3 2\n0\n0\n1\n2\n0 0\n0 1\n", "2 is neither computed nor an operand"},
      {DagFormat::dot, "graph { a -- b }", "line 1: expected digraph"},
      {DagFormat::dot, "digraph { a -> b; a -> b }", "a is an operand of b twice"},
      {DagFormat::dot, "strict digraph { a -> b; a -> a }", "a is an operand of itself"},
      {DagFormat::dot, "\"digraph\" { a -> b }", "line 1: expected digraph"},
      {DagFormat::dot, "digraph { a -> b\n subgraph c { } }", "line 2: expected a graph without"},
      {DagFormat::dot, "digraph { a -> }", "line 1: expected a name, not '}'"},
      {DagFormat::dot, "digraph { \"a -> b }", "a quote is not closed"},
      {DagFormat::dot, "digraph { a -> b /* }", "a comment is not closed"},
      {DagFormat::dot, "digraph { a -> b } c", "expected the end, not 'c'"},
      {DagFormat::dot, "digraph { a -> b", "expected a name, not the end"},
      {DagFormat::mtx, "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n2 1\n",
       "2 rows and 3 columns"}};
  for (const auto& [format, text, message] : cases) {
    try {
      (void)parse_dag(text, "file", format);
      ADD_FAILURE() << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::ContainsRegex(message)) << text;
      EXPECT_THAT(error.what(), ::testing::StartsWith("file: "));
    }
  }
}

}  // namespace
}  // namespace redblue
