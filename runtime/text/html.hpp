#pragma once
// What an HTML page needs, whatever is on it: texts made harmless, pictures inside the page, and a
// frame with our style. The page is one file: no script, nothing from elsewhere.

#include <string>
#include <string_view>
#include <vector>

namespace redblue {

// Text as HTML takes it, between tags and in quoted attributes.
std::string html_text(std::string_view text);
// The same with powers raised ("d^2"): between tags alone.
std::string html_powers(std::string_view text);

// A picture as the address of itself. Inside an address its ids are its own: those of several
// pictures in one page would be mixed up.
std::string svg_address(std::string_view svg);

std::string html_cell(std::string_view text);
// A table that scrolls by itself where it is too wide, by keys as well. Requires: `rows` is HTML,
// <tbody> and so on.
std::string html_table(std::string_view caption, const std::vector<std::string>& columns,
                       std::string_view rows);

// The document. Requires: `body` is HTML.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace redblue
