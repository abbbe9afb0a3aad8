#pragma once
// A strict reader of what XML a report may hold: elements, attributes in double quotes, text, the
// five named entities and a declaration at the start; no comments, no CDATA, nothing after the
// root.

#include <cctype>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace redblue {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // outside of its children
  std::vector<XmlElement> children;
};

// Throws: std::runtime_error.
class ElementReader {
 public:
  static XmlElement read(const std::string& text) {
    ElementReader reader(text);
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
  explicit ElementReader(const std::string& text) : text_(text) {}

  XmlElement element() {
    XmlElement element;
    expect("<");
    element.name = name();
    while (spaces(), next() != '>' && next() != '/') {
      const std::string attribute = name();
      expect("=\"");
      std::string value;
      while (next() != '"') {
        value += character();
      }
      expect("\"");
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
    while (std::isalnum(static_cast<unsigned char>(next())) != 0 || next() == '-') {
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
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) {
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
    throw std::runtime_error("not XML: " + why + " at " + std::to_string(at_) + "\n" + text_);
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace redblue
