#pragma once
// What an HTML page needs, whatever is on it: texts made harmless, pictures inside the page, and a
// frame with our style. The page is one file: no script, nothing from elsewhere.

#include <string>
#include <string_view>

namespace redblue {

// Text as HTML takes it, between tags and in quoted attributes.
std::string html_text(std::string_view text);

// A picture as the address of itself. Inside an address its ids are its own: those of several
// pictures in one page would be mixed up.
std::string svg_address(std::string_view svg);

// The document. Requires: `body` is HTML.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace redblue
