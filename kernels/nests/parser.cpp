#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/nearest.hpp"
#include "kernels/nests/check.hpp"
#include "kernels/nests/text_nest.hpp"

namespace redblue {
namespace {

constexpr std::array<std::string_view, 10> kExtentNames = {
    "n", "m", "d", "dv", "heads", "kv_heads", "group", "M", "masked", "softmax"};
static_assert(kExtentNames.size() == kExtents);
constexpr std::array<std::string_view, 17> kReserved = {
    "and",   "as",   "block", "by",  "each", "first", "from",   "in",   "if",
    "index", "last", "live",  "met", "of",   "sum",   "unless", "whole"};
constexpr std::array<std::string_view, 11> kStatements = {
    "for", "phase", "when", "otherwise", "read", "new", "write", "drop", "flops", "index", "do"};
constexpr std::array<std::string_view, 8> kHeaders = {"kernel", "problem", "two-step", "once",
                                                      "takes",  "matrix",  "temp",     "block"};
// What other languages call some of them.
constexpr std::array<std::array<std::string_view, 2>, 6> kOtherWords = {{{"if", "when"},
                                                                         {"else", "otherwise"},
                                                                         {"load", "read"},
                                                                         {"store", "write"},
                                                                         {"make", "new"},
                                                                         {"free", "drop"}}};
constexpr std::size_t kLongestLine = 4096;
constexpr Index kMostLines = 10'000;

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The text of a character in a message.
std::string shown(char c) {
  if (c == '\t') {
    return "a tab";
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return byte > ' ' && byte < 127
             ? "'" + std::string(1, c) + "'"
             : std::string("byte 0x") + kDigits[byte / 16] + kDigits[byte % 16];
}

std::string listed(std::span<const std::string_view> names) {
  std::string list;
  for (std::size_t at = 0; at < names.size(); ++at) {
    list += at == 0 ? "" : at + 1 == names.size() ? " or " : ", ";
    list += names[at];
  }
  return list;
}

// Asks whether the user meant the nearest of the known names. If none is near, returns `remedy`.
std::string meant(std::string_view word, std::span<const std::string_view> known,
                  const std::string& remedy) {
  const std::string name = near(word, known);
  return ": " + (name.empty() ? remedy : "did you mean '" + name + "'?");
}

// The words of one line. An operator is one word.
class Line {
 public:
  Line(std::string_view file, Index number, std::string_view text) : file_(file), number_(number) {
    if (text.size() > kLongestLine) {
      fail("the line has more than " + std::to_string(kLongestLine) + " characters");
    }
    text = text.substr(0, comment_in(text));
    while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) {
      text.remove_suffix(1);
    }
    indent_ = std::min(text.find_first_not_of(' '), text.size());
    for (std::size_t at = indent_; at < text.size();) {
      at += word_at(text, at);
    }
  }

  [[nodiscard]] bool empty() const { return words_.empty(); }
  [[nodiscard]] std::size_t indent() const { return indent_; }
  [[nodiscard]] Index number() const { return number_; }
  [[nodiscard]] bool done() const { return next_ == words_.size(); }
  [[nodiscard]] std::string_view peek(std::size_t ahead = 0) const {
    return next_ + ahead < words_.size() ? words_[next_ + ahead] : std::string_view();
  }
  std::string_view take(const std::string& expected) {
    if (done()) {
      fail("the line ends, expected " + expected);
    }
    return words_[next_++];
  }
  bool accept(std::string_view word) {
    const bool found = !done() && words_[next_] == word;
    next_ += found ? 1 : 0;
    return found;
  }
  void expect(std::string_view word) {
    if (!accept(word)) {
      fail((done() ? "the line ends" : "'" + std::string(peek()) + "'") + ", expected '" +
           std::string(word) + "'");
    }
  }
  // Returns a name that is no word of the language.
  std::string_view name(const std::string& what) {
    const std::string_view word = take(what);
    if (!begins_name(word.front())) {
      fail("'" + std::string(word) + "', expected " + what);
    }
    if (std::ranges::find(kReserved, word) != kReserved.end()) {
      fail("'" + std::string(word) + "' is a word of the language, expected " + what);
    }
    return word;
  }
  // Returns the text from the next word on, without a comment.
  [[nodiscard]] std::string_view rest() const {
    return done()
               ? std::string_view()
               : std::string_view(peek().data(),
                                  static_cast<std::size_t>(words_.back().data() - peek().data()) +
                                      words_.back().size());
  }
  void end() const {
    if (!done()) {
      fail("'" + std::string(peek()) + "' after the end of the statement");
    }
  }
  [[noreturn]] void fail(const std::string& what) const { throw NestError(file_, number_, what); }

 private:
  // Where a comment begins: the first # that is not in quotes.
  static std::size_t comment_in(std::string_view text) {
    bool quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
      quoted = quoted != (text[at] == '"');
      if (text[at] == '#' && !quoted) {
        return at;
      }
    }
    return text.size();
  }
  // Adds the word that begins there, and returns the characters to skip.
  std::size_t word_at(std::string_view text, std::size_t at) {
    const char c = text[at];
    std::size_t size = 1;
    if (c == ' ') {
      return 1;
    }
    if (begins_name(c) || is_digit(c)) {
      const auto is_part = [&](std::size_t place) {
        return place < text.size() && (begins_name(text[place]) || is_digit(text[place]));
      };
      while (is_part(at + size) || (text.substr(at + size, 1) == "." && is_part(at + size + 1))) {
        ++size;
      }
    } else if (c == '"') {
      const std::size_t end = text.find('"', at + 1);
      if (end == std::string_view::npos) {
        fail("the text has no end: close it with \"");
      }
      size = end + 1 - at;
    } else if (const std::string_view two = text.substr(at, 2);
               two == "->" || two == "<=" || two == ">=" || two == "==" || two == "!=") {
      size = 2;
    } else if (std::string_view("[](),+-*/=.<>").find(c) == std::string_view::npos) {
      fail(shown(c) + " means nothing here" +
           (c == '\t'  ? ": indent with spaces"
            : c == ':' ? ": lines have no colons"
                       : ""));
    }
    words_.push_back(text.substr(at, size));
    return size;
  }

  std::string_view file_;
  Index number_;
  std::size_t indent_ = 0;
  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

// M, masked and softmax are numbers, and no extents of matrices.
bool is_no_length(SymbolId symbol) {
  return symbol == kFastWords || symbol == kMasked || symbol == kSoftmax;
}

class Parser {
 public:
  explicit Parser(std::string_view file) {
    nest_.file = file;
    for (const std::string_view name : kExtentNames) {
      nest_.symbols.push_back({.name = std::string(name), .kind = NestSymbol::Kind::extent});
    }
  }

  TextNest parse(std::string_view text) {
    std::vector<Line> lines = lines_of(text);
    std::size_t at = 0;
    while (at < lines.size() && header(lines[at])) {
      ++at;
    }
    if (nest_.name.empty()) {
      throw NestError(nest_.file, lines.empty() ? 1 : lines.front().number(),
                      "the file has no name: begin it with 'kernel NAME'");
    }
    if (at < lines.size()) {
      Line first = lines[at];
      check_statement(first, first.take("a statement"));
    }
    if (nest_.matrices.empty()) {
      throw NestError(nest_.file, lines[at - 1].number(),
                      "no matrix is declared: add for example 'matrix Q[n,d] -> O[n,d]'");
    }
    resolve_extents();
    if (at < lines.size()) {
      nest_.statements = statements(std::span(lines).subspan(at), lines[at].indent());
    }
    if (nest_.statements.empty()) {
      throw NestError(nest_.file, lines.back().number(), "the nest has no statements");
    }
    resolve_each();
    refuse_unused_blocks();
    check(nest_);
    return std::move(nest_);
  }

 private:
  std::vector<Line> lines_of(std::string_view text) {
    std::vector<Line> lines;
    Index number = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      Line line(nest_.file, ++number, text.substr(0, end));
      if (!line.empty()) {
        lines.push_back(std::move(line));
      }
      text.remove_prefix(std::min(end + 1, text.size()));
      if (number > kMostLines) {
        throw NestError(nest_.file, number, "the file has more than 10,000 lines");
      }
    }
    return lines;
  }

  // Reads a line of the head. Returns false for the first line after the head.
  bool header(Line& line) {
    const std::string_view word = line.peek();
    const bool two_step = word == "two" && line.peek(1) == "-" && line.peek(2) == "step";
    if (word != "kernel" && word != "problem" && word != "matrix" && word != "temp" &&
        word != "block" && word != "takes" && word != "once" && !two_step) {
      return false;
    }
    if (line.indent() != 0) {
      line.fail("'" + std::string(word) + "' belongs to the head: do not indent it");
    }
    line.take("a header");
    if (two_step) {
      line.take("-");
      line.take("step");
      nest_.two_step = true;
    } else if (word == "once") {
      nest_.once = true;
    } else if (word == "kernel") {
      kernel(line);
    } else if (word == "problem") {
      problem(line);
    } else if (word == "takes") {
      takes(line);
    } else if (word == "block") {
      block(line);
    } else {
      matrices(line, word == "temp");
    }
    line.end();
    return true;
  }

  void kernel(Line& line) {
    if (!nest_.name.empty()) {
      line.fail("the kernel has a name already: " + nest_.name);
    }
    if (line.rest().find(' ') != std::string_view::npos) {
      line.fail("a space in the name of the kernel: write '-'");
    }
    while (!line.done()) {
      const std::string_view part = line.take("a name");
      if (!begins_name(part.front()) && !is_digit(part.front()) && part != "-" && part != "/" &&
          part != ".") {
        line.fail("'" + std::string(part) +
                  "' in the name of the kernel: use letters, digits, -, _, . and /");
      }
      nest_.name += part;
    }
    if (nest_.name.empty()) {
      line.fail("the line ends, expected the name of the kernel");
    }
  }

  void problem(Line& line) {
    std::string text(line.take("the name of a problem, or none"));
    if (line.accept("-")) {
      text += "-" + std::string(line.take("the name of a problem"));
    }
    if (seen_problem_) {
      line.fail("the problem is given twice");
    }
    seen_problem_ = true;
    if (text == "none") {
      return;
    }
    std::vector<std::string_view> names;
    for (int k = 0; k <= static_cast<int>(Pass::linear_gradient); ++k) {
      names.push_back(to_string(static_cast<Pass>(k)));
      if (names.back() == text) {
        nest_.pass = static_cast<Pass>(k);
        return;
      }
    }
    names.emplace_back("none");
    line.fail("no problem is called '" + text + "'" +
              meant(text, names, "expected " + listed(names)));
  }

  void takes(Line& line) {
    NestTakes its{.left = {}, .comparison = {}, .right = {}, .text = std::string(line.rest())};
    its.left = size(line);
    its.comparison = comparison(line);
    its.right = size(line);
    for (SymbolId symbol = kFastWords; symbol < nest_.symbols.size(); ++symbol) {
      if (its.left.uses(symbol) || its.right.uses(symbol)) {
        line.fail("'takes' compares extents and numbers, and " + nest_.symbols[symbol].name +
                  " is none: write for example 'takes d <= 128'");
      }
    }
    nest_.takes.push_back(std::move(its));
  }

  // Returns the symbol of a name at this line. A variable has a meaning inside its loop alone.
  [[nodiscard]] SymbolId find(std::string_view name) const {
    for (SymbolId symbol = 0; symbol < nest_.symbols.size(); ++symbol) {
      if (nest_.symbols[symbol].name == name &&
          (kind(symbol) != NestSymbol::Kind::variable || is_around(symbol))) {
        return symbol;
      }
    }
    return kNoSymbol;
  }
  SymbolId add(std::string_view name, NestSymbol::Kind kind) {
    nest_.symbols.push_back({.name = std::string(name), .kind = kind});
    return nest_.symbols.size() - 1;
  }
  [[nodiscard]] NestSymbol::Kind kind(SymbolId symbol) const { return nest_.symbols[symbol].kind; }

  void block(Line& line) {
    const std::string_view name = line.name("the name of a block size");
    if (find(name) != kNoSymbol) {
      line.fail("'" + std::string(name) + "' is declared already");
    }
    const SymbolId symbol = add(name, NestSymbol::Kind::block);
    line.expect("of");
    const std::string_view of = line.name("an extent");
    const SymbolId extent = find(of);
    if (extent == kNoSymbol || kind(extent) != NestSymbol::Kind::extent || is_no_length(extent)) {
      line.fail("'" + std::string(of) +
                "' is no extent: expected n, m, d, dv, heads, kv_heads or group");
    }
    std::optional<NestSize> its;
    if (line.accept("=")) {
      its = size(line);
      if (its->uses(symbol)) {
        line.fail("the size of '" + std::string(name) + "' depends on itself");
      }
    }
    nest_.blocks.push_back({symbol, extent, std::move(its), line.number()});
  }

  void matrices(Line& line, bool temps) {
    auto as = temps ? NestMatrix::Kind::temp : NestMatrix::Kind::input;
    bool any = false;
    while (!line.done()) {
      if (!temps && line.accept("->")) {
        if (as == NestMatrix::Kind::result) {
          line.fail("a second '->' in one line");
        }
        as = NestMatrix::Kind::result;
        continue;
      }
      const std::string_view name = line.name("a matrix, as Q[n,d]");
      if (std::ranges::find(nest_.tile_names, name) != nest_.tile_names.end()) {
        line.fail("the matrix '" + std::string(name) + "' is declared already");
      }
      nest_.tile_names.emplace_back(name);
      nest_.matrices.push_back({std::string(name), as, {}, line.number()});
      any = true;
      line.expect("[");
      do {
        nest_.matrices.back().extents.push_back(matrix_extent(line));
      } while (line.accept(","));
      line.expect("]");
    }
    if (!any) {
      line.fail("the line ends, expected a matrix, as Q[n,d]");
    }
  }

  NestIndex matrix_extent(Line& line) {
    if (line.accept("each")) {
      const std::string_view name = line.name("the variable of a loop");
      each_.emplace_back(std::string(name), line.number());
      return {NestIndex::Kind::each, kNoSymbol, static_cast<Index>(each_.size()) - 1};
    }
    const std::string_view word = line.take("an extent or a number");
    if (is_digit(word.front())) {
      return {NestIndex::Kind::number, kNoSymbol, number(line, word)};
    }
    const SymbolId symbol = find(word);
    if (symbol == kNoSymbol || kind(symbol) != NestSymbol::Kind::extent || is_no_length(symbol)) {
      line.fail("'" + std::string(word) +
                "' is no extent: expected n, m, d, dv, heads, kv_heads, group or a number");
    }
    return {NestIndex::Kind::extent, symbol};
  }

  // Extents of the form "each P" name loops that come later.
  void resolve_extents() {
    for (NestMatrix& matrix : nest_.matrices) {
      if (matrix.kind != NestMatrix::Kind::temp &&
          std::ranges::find(matrix.extents, NestIndex::Kind::each, &NestIndex::kind) !=
              matrix.extents.end()) {
        throw NestError(nest_.file, matrix.line,
                        "'each' in " + matrix.name + ": only a temp has a slice for each block");
      }
    }
  }
  void resolve_each() {
    for (NestMatrix& matrix : nest_.matrices) {
      for (NestIndex& index : matrix.extents) {
        if (index.kind == NestIndex::Kind::each) {
          const std::string& name = each_[static_cast<std::size_t>(index.number)].first;
          const Index line = each_[static_cast<std::size_t>(index.number)].second;
          const auto found = std::ranges::find_if(nest_.symbols, [&](const NestSymbol& symbol) {
            return symbol.kind == NestSymbol::Kind::variable && symbol.name == name;
          });
          if (found == nest_.symbols.end()) {
            throw NestError(nest_.file, line, "no loop has the variable '" + name + "'");
          }
          index.symbol = static_cast<SymbolId>(found - nest_.symbols.begin());
        }
      }
    }
  }

  void refuse_unused_blocks() const {
    for (const NestBlock& block : nest_.blocks) {
      const std::string& name = nest_.symbols[block.symbol].name;
      if (!used_.contains(block.symbol)) {
        throw NestError(nest_.file, block.line,
                        "nothing uses the block size '" + name + "'" +
                            meant(name, undeclared_, "write 'by " + name + "', or leave it out"));
      }
    }
  }

  static Index number(const Line& line, std::string_view word) {
    Index value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (end != word.data() + word.size()) {
      line.fail("'" + std::string(word) + "' is no whole number: write all of its digits");
    }
    if (error != std::errc()) {
      line.fail("'" + std::string(word) + "' is above 2^63 - 1");
    }
    return value;
  }

  // A formula: sums of products of numbers, symbols and brackets.
  NestSize size(Line& line) {
    NestSize size;
    depth_ = 0;
    sum(line, size);
    return size;
  }
  void sum(Line& line, NestSize& to) {
    if (++depth_ > kDeepestNest / 2) {
      line.fail("the formula has too many brackets inside each other");
    }
    product(line, to);
    while (line.peek() == "+" || line.peek() == "-") {
      const bool plus = line.take("an operator") == "+";
      product(line, to);
      to.steps.push_back({plus ? NestSize::Op::add : NestSize::Op::subtract});
    }
    --depth_;
  }
  void product(Line& line, NestSize& to) {
    factor(line, to);
    while (line.peek() == "*" || line.peek() == "/") {
      const bool times = line.take("an operator") == "*";
      factor(line, to);
      to.steps.push_back({times ? NestSize::Op::multiply : NestSize::Op::divide});
    }
  }
  void factor(Line& line, NestSize& to) {
    const std::string_view word = line.take("a size");
    if (word == "(") {
      sum(line, to);
      line.expect(")");
    } else if ((word == "min" || word == "max") && line.peek() == "(") {
      line.take("a bracket");
      sum(line, to);
      do {
        line.expect(",");
        sum(line, to);
        to.steps.push_back({word == "min" ? NestSize::Op::min : NestSize::Op::max});
      } while (line.peek() == ",");
      line.expect(")");
    } else if (word == "ceil" && line.peek() == "(") {
      line.take("a bracket");
      sum(line, to);
      if (to.steps.back().op != NestSize::Op::divide) {
        line.fail("ceil() rounds a division, as ceil(n / 4)");
      }
      to.steps.back().op = NestSize::Op::ceil;
      line.expect(")");
    } else if (word == "if") {
      line.expect("(");
      sum(line, to);
      const Comparison is = comparison(line);
      for (int k = 0; k < 3; ++k) {
        if (k > 0) {
          line.expect(",");
        }
        sum(line, to);
      }
      line.expect(")");
      to.steps.push_back({NestSize::Op::choose, static_cast<Index>(is)});
    } else if (word == "met") {
      line.expect("(");
      to.steps.push_back({NestSize::Op::symbol, static_cast<Index>(met_symbol(line))});
      line.expect(")");
    } else if (is_digit(word.front())) {
      to.steps.push_back({NestSize::Op::number, number(line, word)});
    } else {
      to.steps.push_back({NestSize::Op::symbol, static_cast<Index>(size_symbol(line, word))});
    }
  }
  static Comparison comparison(Line& line) {
    constexpr std::array<std::string_view, 6> kTexts = {"<", "<=", "==", "!=", ">=", ">"};
    const std::string_view word = line.take("a comparison, as <=");
    const auto* const found = std::ranges::find(kTexts, word);
    if (found == kTexts.end()) {
      line.fail("'" + std::string(word) + "', expected <, <=, ==, !=, >= or >");
    }
    return static_cast<Comparison>(found - kTexts.begin());
  }
  // The variable of met(I).
  SymbolId met_symbol(Line& line) {
    const SymbolId variable = variable_around(line);
    const SymbolId root = nest_.root(variable);
    if (root != kExtentN && root != kExtentM) {
      line.fail("met(" + nest_.symbols[variable].name +
                ") counts what a block of n or m meets, "
                "but the loop runs over " +
                nest_.symbols[root].name);
    }
    for (SymbolId symbol = 0; symbol < nest_.symbols.size(); ++symbol) {
      if (kind(symbol) == NestSymbol::Kind::met && nest_.symbols[symbol].range == variable) {
        return symbol;
      }
    }
    const SymbolId symbol = add("met(" + nest_.symbols[variable].name + ")", NestSymbol::Kind::met);
    nest_.symbols[symbol].range = variable;
    return symbol;
  }
  // A name in a size. A name that is not known yet is a block size that redblue chooses.
  SymbolId size_symbol(Line& line, std::string_view word) {
    if (!begins_name(word.front()) || std::ranges::find(kReserved, word) != kReserved.end()) {
      line.fail("'" + std::string(word) + "', expected a size");
    }
    const SymbolId symbol = find(word);
    if (symbol != kNoSymbol) {
      used_.insert(symbol);
      return symbol;
    }
    if (std::ranges::find_if(nest_.symbols, [&](const NestSymbol& other) {
          return other.kind == NestSymbol::Kind::variable && other.name == word;
        }) != nest_.symbols.end()) {
      line.fail("'" + std::string(word) +
                "' is the variable of a loop that is not around this line");
    }
    if (loop_range_ == kNoSymbol) {
      line.fail("'" + std::string(word) +
                "' is no extent, block size or variable of a loop around this line" +
                meant(word, lengths(),
                      "a block size is declared above, as 'block " + std::string(word) + " of n'"));
    }
    const SymbolId block = add(word, NestSymbol::Kind::block);
    nest_.blocks.push_back({block, loop_range_, std::nullopt, line.number()});
    used_.insert(block);
    undeclared_.push_back(word);
    return block;
  }

  // The extents, and the variables of the loops around this line.
  [[nodiscard]] std::vector<std::string_view> lengths() const {
    std::vector<std::string_view> names;
    for (SymbolId symbol = 0; symbol < nest_.symbols.size(); ++symbol) {
      if (!is_no_length(symbol) &&
          (kind(symbol) == NestSymbol::Kind::extent || is_around(symbol))) {
        names.push_back(nest_.symbols[symbol].name);
      }
    }
    return names;
  }
  [[nodiscard]] bool is_around(SymbolId variable) const {
    return std::ranges::find(around_, variable) != around_.end();
  }
  SymbolId variable_around(Line& line) {
    const std::string_view name = line.name("the variable of a loop");
    const SymbolId symbol = find(name);
    if (symbol == kNoSymbol || kind(symbol) != NestSymbol::Kind::variable) {
      std::vector<std::string_view> names;
      for (const SymbolId around : around_) {
        names.push_back(nest_.symbols[around].name);
      }
      line.fail(
          "'" + std::string(name) + "' is not the variable of a loop around this line" +
          (names.empty() ? ": there is none" : meant(name, names, "expected " + listed(names))));
    }
    return symbol;
  }

  std::vector<NestStatement> statements(std::span<Line> lines, std::size_t indent) {
    std::vector<NestStatement> list;
    bool follows_otherwise = false;
    for (std::size_t at = 0; at < lines.size();) {
      Line& line = lines[at];
      if (line.indent() != indent) {
        line.fail("the indentation fits no line above");
      }
      NestStatement statement = this->statement(line);
      line.end();
      std::size_t end = at + 1;
      while (end < lines.size() && lines[end].indent() > indent) {
        ++end;
      }
      const bool is_otherwise =
          statement.kind == NestStatement::Kind::when && statement.size.steps.empty();
      if (is_otherwise && follows_otherwise) {
        line.fail("'otherwise' has no 'when' above it");
      }
      if (is_otherwise) {
        otherwise(line, list, statement);
      }
      follows_otherwise = is_otherwise;
      const bool has_body = statement.kind == NestStatement::Kind::loop ||
                            statement.kind == NestStatement::Kind::phase ||
                            statement.kind == NestStatement::Kind::when;
      if (!has_body && end > at + 1) {
        lines[at + 1].fail("the line is indented, but the line above is no loop, phase or 'when'");
      }
      if (has_body) {
        if (end == at + 1) {
          line.fail("it has no body: indent the lines that belong to it");
        }
        if (++nesting_ > kDeepestNest) {
          line.fail("more than 32 loops and phases are around this line");
        }
        const std::size_t outer = phase_;
        phase_ = statement.kind == NestStatement::Kind::phase ? statement.phase : phase_;
        statement.body = statements(lines.subspan(at + 1, end - at - 1), lines[at + 1].indent());
        phase_ = outer;
        --nesting_;
        if (statement.kind == NestStatement::Kind::loop) {
          around_.pop_back();
        }
      }
      list.push_back(std::move(statement));
      at = end;
    }
    return list;
  }

  NestStatement statement(Line& line) {
    const std::string_view word = line.take("a statement");
    check_statement(line, word);
    NestStatement statement{
        .kind = NestStatement::Kind::flops, .line = line.number(), .number = nest_.size++};
    statement.phase = phase_;
    if (word == "for") {
      loop(line, statement);
    } else if (word == "phase") {
      phase(line, statement);
    } else if (word == "read" || word == "new" || word == "write") {
      moves(line, word, statement);
    } else if (word == "when") {
      statement.kind = NestStatement::Kind::when;
      if (begins_condition(line)) {
        line.fail("'when' compares sizes: write '" + std::string(line.rest()) +
                  "' after the tiles of a read, new, write or drop");
      }
      statement.size = size(line);
      statement.comparison = comparison(line);
      statement.right = size(line);
    } else if (word == "otherwise") {
      statement.kind = NestStatement::Kind::when;
    } else if (word == "drop") {
      statement.kind = NestStatement::Kind::drop;
      do {
        refuse_comma(line);
        const bool is_index = line.peek() == "index";
        const std::string_view name =
            is_index ? line.take("a tile") : line.name("the name of a tile");
        statement.tiles.push_back({known_tile(line, name), {}, false});
      } while (!at_condition(line));
      conditions(line, statement);
    } else if (word == "flops") {
      statement.size = size(line);
    } else if (word == "index") {
      statement.kind = NestStatement::Kind::index;
      const SymbolId variable = variable_around(line);
      if (nest_.root(variable) != kExtentN && nest_.root(variable) != kExtentM) {
        line.fail("'index': the loop " + nest_.symbols[variable].name + " must run over n or m");
      }
      TextTile tile{tile_named("index"), {}, false};
      tile.met_by = variable;
      statement.tiles.push_back(std::move(tile));
    } else if (word == "do") {
      statement.kind = NestStatement::Kind::text;
      std::string_view text = line.take("a text in quotes");
      if (text.front() != '"' || text.size() < 3) {
        line.fail("'" + std::string(text) + "', expected a text in quotes");
      }
      statement.text = text.substr(1, text.size() - 2);
    }
    return statement;
  }
  // Refuses a line that begins with no statement.
  static void check_statement(const Line& line, std::string_view word) {
    if (std::ranges::find(kStatements, word) != kStatements.end()) {
      return;
    }
    if (std::ranges::find(kHeaders, word) != kHeaders.end() ||
        (word == "two" && line.peek() == "-" && line.peek(1) == "step")) {
      line.fail("'" + std::string(word) + "' belongs to the head: move it above the statements");
    }
    if (word == "if" && begins_condition(line)) {
      line.fail("'if' begins no line: write '" + std::string(line.rest()) +
                "' after the tiles of a read, new, write or drop");
    }
    const auto* const other =
        std::ranges::find(kOtherWords, word, [](const auto& pair) { return pair[0]; });
    std::vector<std::string_view> known(kStatements.begin(), kStatements.end());
    known.insert(known.end(), kHeaders.begin(), kHeaders.end());
    line.fail("'" + std::string(word) + "' is no statement" +
              (word == "/" ? ": a comment begins with '#'"
                           : meant(other == kOtherWords.end() ? word : (*other)[1], known,
                                   "expected " + listed(kStatements))));
  }

  // Gives `otherwise` the opposite of the comparison above it.
  static void otherwise(const Line& line, const std::vector<NestStatement>& above,
                        NestStatement& statement) {
    if (above.empty() || above.back().kind != NestStatement::Kind::when) {
      line.fail("'otherwise' has no 'when' above it");
    }
    statement.size = above.back().size;
    statement.comparison = opposite(above.back().comparison);
    statement.right = above.back().right;
  }

  void loop(Line& line, NestStatement& statement) {
    statement.kind = NestStatement::Kind::loop;
    const std::string_view name = line.name("the variable of the loop");
    if (find(name) != kNoSymbol) {
      line.fail("'" + std::string(name) +
                (name == "M" ? "' is the words of fast memory" : "' is in use already") +
                ": give the loop another variable");
    }
    line.expect("in");
    const std::string_view range = line.name("an extent, or the variable of an outer loop");
    statement.range = find(range);
    if (statement.range == kNoSymbol || is_no_length(statement.range) ||
        kind(statement.range) == NestSymbol::Kind::block) {
      line.fail("'" + std::string(range) +
                "' is no extent and no variable of a loop around this line" +
                meant(range, lengths(), "expected " + listed(lengths())));
    }
    loop_range_ = nest_.root(statement.range);
    if (line.accept("from")) {
      statement.from = size(line);
    }
    line.expect("by");
    statement.size = size(line);
    loop_range_ = kNoSymbol;
    for (NestBlock& block : nest_.blocks) {
      block.is_step = block.is_step || statement.size.uses(block.symbol);
    }
    if (line.accept("met")) {
      line.expect("by");
      statement.met_by = variable_around(line);
      const SymbolId inner = nest_.root(statement.range), outer = nest_.root(statement.met_by);
      if (!((inner == kExtentN && outer == kExtentM) || (inner == kExtentM && outer == kExtentN))) {
        line.fail("'met by': one of the two loops runs over n, and the other one over m");
      }
      statement.whole = line.accept("whole");
      if (statement.whole &&
          (kind(statement.range) == NestSymbol::Kind::variable || statement.from)) {
        line.fail("'whole': the blocks are those of an extent: leave out what is smaller");
      }
      if (statement.whole && nest_.uses_variable(statement.size)) {
        line.fail("'whole': the blocks are the same in each pass: take a size without variables");
      }
    }
    statement.variable = add(name, NestSymbol::Kind::variable);
    nest_.symbols.back().range = statement.range;
    around_.push_back(statement.variable);
  }
  void phase(Line& line, NestStatement& statement) {
    statement.kind = NestStatement::Kind::phase;
    const std::string_view name = line.take("the name of the phase");
    if (!begins_name(name.front())) {
      line.fail("'" + std::string(name) + "' is no name of a phase");
    }
    const std::string path = (phase_ == 0 ? "" : nest_.phases[phase_] + "/") + std::string(name);
    const auto found = std::ranges::find(nest_.phases, path);
    statement.phase = static_cast<std::size_t>(found - nest_.phases.begin());
    if (found == nest_.phases.end()) {
      nest_.phases.push_back(path);
    }
  }

  // The number of a tile's name, which is new to the nest if `adds`.
  std::size_t known_tile(const Line& line, std::string_view name) {
    const auto found = std::ranges::find(nest_.tile_names, name);
    if (found == nest_.tile_names.end()) {
      const std::vector<std::string_view> names(nest_.tile_names.begin(), nest_.tile_names.end());
      line.fail(
          "no tile is called '" + std::string(name) + "'" +
          meant(name, names,
                name == "index" ? "read it with 'index I'" : "read it, or make it with 'new'"));
    }
    return static_cast<std::size_t>(found - nest_.tile_names.begin());
  }
  std::size_t matrix(const Line& line, std::string_view name) {
    const auto found = std::ranges::find(nest_.matrices, name, &NestMatrix::name);
    if (found == nest_.matrices.end()) {
      std::vector<std::string_view> names;
      for (const NestMatrix& matrix : nest_.matrices) {
        names.push_back(matrix.name);
      }
      const std::string slip = meant(name, names, "");
      line.fail("no matrix is called '" + std::string(name) + "'" + slip +
                (slip == ": " ? "" : " Otherwise ") +
                "declare it with 'matrix' or 'temp', or name another with 'as'");
    }
    return static_cast<std::size_t>(found - nest_.matrices.begin());
  }

  void moves(Line& line, std::string_view word, NestStatement& statement) {
    const bool reads = word == "read", makes = word == "new";
    statement.kind = reads   ? NestStatement::Kind::read
                     : makes ? NestStatement::Kind::make
                             : NestStatement::Kind::write;
    do {
      refuse_comma(line);
      if (line.peek() == "when") {
        line.fail("'when' begins a line of its own: indent the " + std::string(word) + " below it");
      }
      const std::string_view name = line.name("a tile, as Q[I,d]");
      if (!line.done() && line.peek() != "[") {
        line.fail("'" + std::string(name) + "' is no tile, as " + std::string(name) +
                  "[I,d], and no condition, as 'first I' or 'unless last I'");
      }
      TextTile tile{0, {}, false};
      tile.indices = indices(line);
      tile.sum = line.accept("sum");
      tile.live = line.accept("live");
      if (line.peek() == "met") {
        line.take("met");
        line.expect("by");
        tile.met_by = variable_around(line);
      }
      if (tile.in_part() && makes) {
        line.fail("'new' makes whole tiles: leave out 'live' and 'met by'");
      }
      if (tile.live && tile.met_by != kNoSymbol) {
        line.fail("'live' and 'met by' are two parts of a tile: leave out one");
      }
      if (makes) {
        tile.name = tile_named(name);
      } else {
        TextTile target = tile;
        const bool other = line.accept("as");
        const std::string_view as = other ? line.name("a name") : name;
        if (other && line.peek() == "[") {
          (reads ? tile : target).indices = indices(line);
        }
        tile.name = reads ? tile_named(as) : known_tile(line, name);
        target.name = matrix(line, reads ? name : as);
        statement.targets.push_back(std::move(target));
      }
      statement.tiles.push_back(std::move(tile));
    } while (!at_condition(line));
    conditions(line, statement);
  }
  std::size_t tile_named(std::string_view name) {
    const auto found = std::ranges::find(nest_.tile_names, name);
    const auto place = static_cast<std::size_t>(found - nest_.tile_names.begin());
    if (found == nest_.tile_names.end()) {
      nest_.tile_names.emplace_back(name);
    }
    return place;
  }
  static void refuse_comma(const Line& line) {
    if (line.peek() == ",") {
      line.fail("',' between tiles: separate them by spaces");
    }
  }
  static bool begins_condition(const Line& line) {
    return line.peek() == "first" || line.peek() == "last" || line.peek() == "unless";
  }
  static bool at_condition(const Line& line) {
    return line.done() || begins_condition(line) || line.peek() == "if";
  }
  void conditions(Line& line, NestStatement& statement) {
    if (line.done()) {
      return;
    }
    if (line.peek() == "if") {
      line.fail("'if' begins no condition: write for example 'read dQ[I,d] unless first J'");
    }
    do {
      NestCondition condition;
      condition.negated = line.accept("unless");
      condition.first = !line.accept("last");
      if (condition.first) {
        line.expect("first");
      }
      condition.variable = variable_around(line);
      statement.conditions.push_back(condition);
    } while (line.accept("and"));
    if (line.peek() == "," || line.peek() == "or" || begins_condition(line)) {
      line.fail("'" + std::string(line.peek()) + "' after a condition: join several by 'and'");
    }
  }

  std::vector<NestIndex> indices(Line& line) {
    std::vector<NestIndex> list;
    line.expect("[");
    do {
      list.push_back(index(line));
    } while (line.accept(","));
    line.expect("]");
    return list;
  }
  NestIndex index(Line& line) {
    if (line.accept("each")) {
      return {NestIndex::Kind::each, variable_around(line), 1};
    }
    NestSize its = size(line);
    if (its.steps.size() > 1) {
      return {NestIndex::Kind::part, kNoSymbol, 0, std::move(its)};
    }
    const SymbolId symbol = its.symbol();
    if (symbol == kNoSymbol) {
      return {NestIndex::Kind::number, kNoSymbol, its.steps.front().number};
    }
    if (kind(symbol) == NestSymbol::Kind::met) {
      return {NestIndex::Kind::part, kNoSymbol, 0, std::move(its)};
    }
    if (is_no_length(symbol) || kind(symbol) == NestSymbol::Kind::block) {
      return {NestIndex::Kind::part, symbol, 0, std::move(its)};
    }
    return {kind(symbol) == NestSymbol::Kind::variable ? NestIndex::Kind::block
                                                       : NestIndex::Kind::extent,
            symbol};
  }

  TextNest nest_;
  bool seen_problem_ = false;
  std::vector<std::pair<std::string, Index>> each_;  // variables of "each", and their lines
  std::vector<SymbolId> around_;
  std::set<SymbolId> used_;                   // block sizes that some size names
  std::vector<std::string_view> undeclared_;  // of them, those that no line declares
  SymbolId loop_range_ = kNoSymbol;           // inside the size of a loop: the extent that it cuts
  std::size_t depth_ = 0, nesting_ = 0, phase_ = 0;
};

}  // namespace

TextNest parse_nest(std::string_view text, std::string_view file) {
  return Parser(file).parse(text);
}

}  // namespace redblue
