#pragma once
// Whether a text is well-formed XML, as far as pictures have it: every element ends, in order,
// attributes are quoted, and so is what is not markup.

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace redblue {

class XmlReader {
 public:
  // What is wrong; empty where nothing is.
  static std::string wrong_with(std::string_view text) {
    XmlReader reader{text};
    const std::string wrong = reader.read();
    return wrong.empty() ? wrong : wrong + " before: " + std::string(reader.rest_.substr(0, 60));
  }

 private:
  explicit XmlReader(std::string_view text) : rest_(text) {}

  std::string read() {
    bool root = false;
    while (!rest_.empty()) {
      if (skip("<?", "?>") || skip("<!--", "-->") || skip("<![CDATA[", "]]>") || skip("<!", ">")) {
        continue;
      }
      if (take("</")) {
        const std::string_view name = word();
        space();
        if (open_.empty() || open_.back() != name || !take(">")) {
          return "an end of what is not open";
        }
        open_.pop_back();
      } else if (take("<")) {
        if (open_.empty() && root) {
          return "a second root";
        }
        root = true;
        if (const std::string wrong = element(); !wrong.empty()) {
          return wrong;
        }
      } else if (!letter('<')) {
        return "no entity";
      }
    }
    return !root ? "no element" : open_.empty() ? "" : "no end of " + std::string(open_.back());
  }

  std::string element() {
    const std::string_view name = word();
    if (name.empty()) {
      return "no name of an element";
    }
    while (true) {
      space();
      if (take("/>")) {
        return "";
      }
      if (take(">")) {
        open_.push_back(name);
        return "";
      }
      const bool named = !word().empty();
      space();
      const bool equals = take("=");
      space();
      const char quote = rest_.empty() ? ' ' : rest_.front();
      if (!named || !equals || (quote != '"' && quote != '\'')) {
        return "no attribute";
      }
      rest_.remove_prefix(1);
      while (!rest_.empty() && rest_.front() != quote) {
        if (rest_.front() == '<' || !letter(quote)) {
          return "no value of an attribute";
        }
      }
      if (!take(std::string_view(&quote, 1))) {
        return "no end of a value";
      }
    }
  }

  // A letter or an entity; false where & begins none.
  bool letter(char end) {
    if (rest_.front() != '&') {
      rest_.remove_prefix(1);
      return true;
    }
    const std::size_t length = rest_.find(';');
    const std::string_view name = rest_.substr(1, length - 1);
    rest_.remove_prefix(length == std::string_view::npos ? 0 : length + 1);
    return length != std::string_view::npos && name.find(end) == std::string_view::npos &&
           (name == "amp" || name == "lt" || name == "gt" || name == "quot" || name == "apos" ||
            name.starts_with('#'));
  }
  bool take(std::string_view text) {
    const bool there = rest_.starts_with(text);
    rest_.remove_prefix(there ? text.size() : 0);
    return there;
  }
  bool skip(std::string_view begin, std::string_view end) {
    const std::size_t at = rest_.starts_with(begin) ? rest_.find(end) : std::string_view::npos;
    rest_.remove_prefix(at == std::string_view::npos ? 0 : at + end.size());
    return at != std::string_view::npos;
  }
  void space() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
      rest_.remove_prefix(1);
    }
  }
  std::string_view word() {
    std::size_t size = 0;
    while (size < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[size])) != 0 ||
            std::string_view("_:.-").find(rest_[size]) != std::string_view::npos)) {
      ++size;
    }
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }

  std::string_view rest_;
  std::vector<std::string_view> open_;
};

}  // namespace redblue
