#pragma once
// Reads the texts of a picture. Superscripts follow a ^, as in "10^9".

#include <string>
#include <vector>

#include "tests/support/xml.hpp"

namespace redblue {

inline std::string text_of(const XmlElement& text) {
  std::string all = text.text;
  for (const XmlElement& part : text.children) {
    const auto shift = part.attributes.find("dy");
    const bool raised = shift != part.attributes.end() && shift->second.starts_with("-");
    all += (raised ? "^" : "") + part.text;
  }
  return all;
}

inline void add_texts(const XmlElement& element, std::vector<std::string>& texts) {
  if (element.name == "text") {
    texts.push_back(text_of(element));
  }
  for (const XmlElement& child : element.children) {
    add_texts(child, texts);
  }
}

// Throws: std::runtime_error if `svg` is not XML.
inline std::vector<std::string> svg_texts(const std::string& svg) {
  std::vector<std::string> texts;
  add_texts(XmlReader::read(svg), texts);
  for (std::string& text : texts) {
    text.erase(0, text.find_first_not_of(" \n\t"));
    text.erase(text.find_last_not_of(" \n\t") + 1);
  }
  return texts;
}

}  // namespace redblue
