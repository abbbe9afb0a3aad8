#pragma once
// Parts of an HTML page: escaped texts, embedded pictures, tables, and the frame with its style. A
// page is one file without scripts and without anything from elsewhere.

#include <string>
#include <string_view>
#include <vector>

namespace redblue {

// A text escaped for HTML and XML, between tags and in quoted attributes.
std::string html_text(std::string_view text);
// The same with powers raised ("d^2"), for use between tags only.
std::string html_powers(std::string_view text);

// A picture as a data: address. Its ids are then private; inline pictures would share theirs.
std::string svg_address(std::string_view svg);

std::string html_cell(std::string_view text);
// A table that scrolls on its own, also by keys, where it is too wide. Requires: `rows` is HTML,
// from <tbody> on.
std::string html_table(std::string_view caption, const std::vector<std::string>& columns,
                       std::string_view rows);

// The whole document. Requires: `body` is HTML.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace redblue
