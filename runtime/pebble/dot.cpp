// Reads and writes digraphs of Graphviz: their vertices and edges. Attributes are skipped.

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "runtime/pebble/dag_builder.hpp"
#include "runtime/pebble/dag_formats.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// A word, a text in quotes, or a sign.
struct Token {
  std::string text;
  bool is_id = false;
  bool is_quoted = false;  // so it is not a keyword
};

class Tokens {
 public:
  Tokens(std::string_view text, const std::filesystem::path& file) : text_(text), file_(file) {
    next();
  }
  // Returns the current token. Empty at the end.
  [[nodiscard]] const Token& now() const { return now_; }
  [[nodiscard]] bool is(std::string_view sign) const { return !now_.is_id && now_.text == sign; }
  [[nodiscard]] bool is_word(std::string_view word) const {
    return now_.is_id && !now_.is_quoted &&
           std::ranges::equal(now_.text, word,
                              [](unsigned char a, char b) { return std::tolower(a) == b; });
  }
  bool take(std::string_view sign) {
    const bool found = is(sign);
    if (found) {
      next();
    }
    return found;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) {
      refuse(fmt::format("expected '{}'", sign));
    }
  }
  std::string id() {
    if (!now_.is_id) {
      refuse("expected a name");
    }
    std::string text = std::move(now_.text);
    next();
    return text;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format(
        "{}: line {}: {}{}", file_.string(), line_, why,
        now_.text.empty() ? ", not the end" : fmt::format(", not '{}'", shortened(now_.text))));
  }
  void next() {
    skip();
    now_ = {};
    if (text_.empty()) {
      return;
    }
    const auto is_letter = [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_' || c == '.' || c >= 0x80;
    };
    const auto first = static_cast<unsigned char>(text_.front());
    const bool negative =
        first == '-' && text_.size() > 1 &&
        (std::isdigit(static_cast<unsigned char>(text_[1])) != 0 || text_[1] == '.');
    if (first == '"') {
      quoted();
    } else if (is_letter(first) || negative) {
      const auto end = std::find_if_not(text_.begin() + 1, text_.end(), is_letter);
      now_ = {std::string(text_.begin(), end), true};
      text_.remove_prefix(now_.text.size());
    } else {
      const bool arrow = text_.starts_with("->") || text_.starts_with("--");
      now_.text = std::string(text_.substr(0, arrow ? 2 : 1));
      text_.remove_prefix(now_.text.size());
    }
  }

 private:
  void quoted() {
    now_.is_id = now_.is_quoted = true;
    std::size_t at = 1;
    for (; at < text_.size() && text_[at] != '"'; ++at) {
      if (text_[at] == '\\' && at + 1 < text_.size() &&
          (text_[at + 1] == '"' || text_[at + 1] == '\\')) {
        ++at;
      }
      if (text_[at] == '\n' || text_[at] == '\r') {
        refuse("a name of several lines");
      }
      now_.text += text_[at];
    }
    if (at == text_.size()) {
      text_ = {};
      now_ = {};
      refuse("a quote is not closed");
    }
    text_.remove_prefix(at + 1);
  }
  // Skips spaces and comments.
  void skip() {
    while (!text_.empty()) {
      const bool at_line = text_.data() == begin_ || text_.data()[-1] == '\n';
      if (text_.starts_with("//") || (at_line && text_.front() == '#')) {
        text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
      } else if (text_.starts_with("/*")) {
        const std::size_t end = text_.find("*/", 2);
        const std::string_view comment = text_.substr(0, end);
        line_ += std::ranges::count(comment, '\n');
        if (end == std::string_view::npos) {
          text_ = {};
          refuse("a comment is not closed");
        }
        text_.remove_prefix(end + 2);
      } else if (std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
        line_ += text_.front() == '\n' ? 1 : 0;
        text_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  const char* begin_ = text_.data();
  const std::filesystem::path& file_;
  Index line_ = 1;
  Token now_;
};

class Reader {
 public:
  Reader(std::string_view text, const std::filesystem::path& file)
      : tokens_(text, file), edges_(file) {}

  Dag read() {
    strict_ = tokens_.is_word("strict");
    if (strict_) {
      tokens_.next();
    }
    if (!tokens_.is_word("digraph")) {
      tokens_.refuse("expected digraph");
    }
    tokens_.next();
    if (tokens_.now().is_id) {
      tokens_.next();
    }
    tokens_.expect("{");
    while (!tokens_.take("}")) {
      statement();
      tokens_.take(";");
    }
    if (!tokens_.now().text.empty() || tokens_.now().is_id) {
      tokens_.refuse("expected the end");
    }
    return edges_.take();
  }

 private:
  void statement() {
    if (tokens_.is_word("subgraph") || tokens_.is("{")) {
      tokens_.refuse("expected a graph without subgraphs");
    }
    if (tokens_.is_word("node") || tokens_.is_word("edge") || tokens_.is_word("graph")) {
      tokens_.next();
      return attributes();
    }
    const std::string name = tokens_.id();
    if (tokens_.take("=")) {  // an attribute of the graph
      tokens_.id();
      return;
    }
    Index from = edges_.vertex(name);
    while (tokens_.take("->")) {
      const Index to = edges_.vertex(tokens_.id());
      if (!strict_ || there_.emplace(from, to).second) {
        edges_.edge(from, to);
      }
      from = to;
    }
    if (tokens_.is("--")) {
      tokens_.refuse("expected ->");
    }
    attributes();
  }
  void attributes() {
    while (tokens_.take("[")) {
      while (!tokens_.take("]")) {
        tokens_.id();
        tokens_.expect("=");
        tokens_.id();
        if (!tokens_.take(";")) {
          tokens_.take(",");
        }
      }
    }
  }

  Tokens tokens_;
  DagBuilder edges_;
  bool strict_ = false;  // a repeated edge is ignored
  std::set<std::pair<Index, Index>> there_;
};

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') {
      text += '\\';
    }
    text += c;
  }
  return text + '"';
}

}  // namespace

Dag parse_dot(std::string_view text, const std::filesystem::path& file) {
  return Reader(text, file).read();
}

// Writes all vertices first, so that every reader gives them the same numbers.
std::string to_dot(const Dag& dag) {
  const NamesInFile names(dag, DagFormat::dot);
  std::string text = "digraph {\n";
  for (Index v = 0; v < dag.size(); ++v) {
    text += fmt::format("  {};\n", quoted(names[v]));
  }
  for (Index v = 0; v < dag.size(); ++v) {
    for (const Index operand : dag[v].operands) {
      text += fmt::format("  {} -> {};\n", quoted(names[operand]), quoted(names[v]));
    }
  }
  return text + "}\n";
}

}  // namespace redblue
