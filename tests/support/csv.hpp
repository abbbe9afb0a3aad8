#pragma once
// A strict reader of CSV (RFC 4180). It requires a header, the same number of fields in each row,
// quotes only around whole fields, and a newline at the very end.

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace redblue {

using CsvRow = std::map<std::string, std::string>;

// Throws: std::runtime_error.
inline std::vector<CsvRow> parse_csv(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    throw std::runtime_error("not CSV: " + why + "\n" + text);
  };
  std::vector<std::vector<std::string>> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    std::string field;
    if (text[at] == '"') {
      for (++at;; ++at) {
        if (at >= text.size()) {
          refuse("an open quote");
        }
        if (text[at] == '"' && (at + 1 == text.size() || text[++at] != '"')) {
          break;
        }
        field += text[at];
      }
    } else {
      for (; at < text.size() && text[at] != ',' && text[at] != '\n'; ++at) {
        if (text[at] == '"' || text[at] == '\r') {
          refuse("a stray quote or carriage return");
        }
        field += text[at];
      }
    }
    lines.back().push_back(field);
    if (at >= text.size()) {
      refuse("no newline at the end");
    }
    if (text[at] == '\n') {
      lines.emplace_back();
    } else if (text[at] != ',') {
      refuse("letters after a quote");
    }
    ++at;
  }
  lines.pop_back();
  if (lines.empty()) {
    refuse("no header");
  }
  std::vector<CsvRow> rows;
  const std::vector<std::string>& header = lines.front();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].size() != header.size()) {
      refuse("another number of fields in line " + std::to_string(i + 1));
    }
    CsvRow& row = rows.emplace_back();
    for (std::size_t k = 0; k < header.size(); ++k) {
      if (!row.emplace(header[k], lines[i][k]).second) {
        refuse("two columns called " + header[k]);
      }
    }
  }
  return rows;
}

}  // namespace redblue
