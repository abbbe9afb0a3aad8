#pragma once
// A strict reader of the XML in reports and pictures. It takes elements, attributes, text, the five
// named entities and an initial declaration. It refuses comments, CDATA and content after the root.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redblue {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // text directly in this element, not in its children
  std::vector<XmlElement> children;
};

// Throws: std::runtime_error.
class XmlReader {
 public:
  static XmlElement read(const std::string& text) {
    XmlReader reader(text);
    if (text.starts_with("<?xml ")) {
      reader.at_ = text.find("?>");
      reader.expect("?>");
    }
    reader.spaces();
    XmlElement root = reader.element();
    reader.spaces();
    if (reader.at_ != text.size()) {
      reader.refuse("something after the root");
    }
    return root;
  }

 private:
  explicit XmlReader(const std::string& text) : text_(text) {}

  XmlElement element() {
    XmlElement element;
    expect("<");
    element.name = name();
    while (spaces(), next() != '>' && next() != '/') {
      const std::string attribute = name();
      spaces();
      expect("=");
      spaces();
      const std::string quote(1, next());
      if (quote != "\"" && quote != "'") {
        refuse("a value without quotes");
      }
      expect(quote);
      std::string value;
      while (next() != quote[0]) {
        value += character();
      }
      expect(quote);
      if (!element.attributes.emplace(attribute, value).second) {
        refuse("an attribute twice: " + attribute);
      }
    }
    if (next() == '/') {
      expect("/>");
      return element;
    }
    expect(">");
    while (text_.compare(at_, 2, "</") != 0) {
      if (next() == '<') {
        element.children.push_back(this->element());
      } else {
        element.text += character();
      }
    }
    expect("</");
    expect(element.name);
    expect(">");
    return element;
  }

  std::string name() {
    std::string name;
    while (std::isalnum(static_cast<unsigned char>(next())) != 0 ||
           std::string_view("-_:").find(next()) != std::string_view::npos) {
      name += text_[at_++];
    }
    if (name.empty()) {
      refuse("a name is missing");
    }
    return name;
  }

  char character() {
    static const std::map<std::string, char> entities = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    const char c = next();
    ++at_;
    if (c == '<' || (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t')) {
      refuse("a letter that may not stand here");
    }
    if (c != '&') {
      return c;
    }
    const std::size_t end = text_.find(';', at_);
    const auto entity = entities.find(text_.substr(at_, end - at_));
    if (end == std::string::npos || entity == entities.end()) {
      refuse("a bare & or an unknown entity");
    }
    at_ = end + 1;
    return entity->second;
  }

  void spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }
  void expect(const std::string& word) {
    if (text_.compare(at_, word.size(), word) != 0) {
      refuse("expected " + word);
    }
    at_ += word.size();
  }
  [[nodiscard]] char next() const {
    if (at_ >= text_.size()) {
      refuse("it ends too early");
    }
    return text_[at_];
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("not XML: " + why + " at " + std::to_string(at_) + ": " +
                             text_.substr(std::min(at_, text_.size()), 60));
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace redblue
