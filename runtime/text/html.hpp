#pragma once
// Parts of an HTML page: escaped texts, embedded pictures, tables, and the frame with its style. A
// page is one file without scripts. It loads no other file.

#include <string>
#include <string_view>
#include <vector>

namespace redblue {

// Returns a text escaped for HTML and XML, for use between tags and in quoted attributes.
std::string html_text(std::string_view text);
// Returns an escaped text with powers raised ("d^2"), for use between tags only.
std::string html_powers(std::string_view text);

// Returns a picture as a data: address. Its ids are then private. Pictures placed inline would
// share their ids.
std::string svg_address(std::string_view svg);

std::string html_cell(std::string_view text);
// Returns a table. If it is too wide, it scrolls by itself, also with the keyboard. Requires:
// `rows` is HTML, from <tbody> on.
std::string html_table(std::string_view caption, const std::vector<std::string>& columns,
                       std::string_view rows);

// Returns the whole document. Requires: `body` is HTML.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace redblue
