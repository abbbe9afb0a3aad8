#include "runtime/text/html.hpp"

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "runtime/text/powers.hpp"

namespace redblue {
namespace {

// A printed page shows the parts that are folded on a screen, and is never dark.
constexpr std::string_view kStyle = R"(
:root {
  color-scheme: light dark;
  --ink: #1b1d20; --faint: #565c64; --paper: #fff; --card: #f4f5f7; --line: #d3d7dc;
  --link: #0b4fb3; --loud: #8f1010; --loud-paper: #fdeceb; --good: #14592d; --good-paper: #eaf6ee;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8eb; --faint: #a7adb6; --paper: #15171a; --card: #1f2226; --line: #3a3f46;
    --link: #8ab8ff; --loud: #ffb3ab; --loud-paper: #43191a; --good: #9ddfb2; --good-paper: #14301f;
  }
}
* { box-sizing: border-box; }
body {
  max-width: 84rem; margin: 0 auto; padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem) 3rem;
  background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word;
}
h1 { margin: 0 0 0.5rem; font-size: 1.75rem; line-height: 1.2; }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.25rem; }
p, ul { max-width: 48rem; margin: 0.5rem 0; }
a { color: var(--link); }
nav { margin-top: 1rem; }
nav a { display: inline-block; margin-right: 1rem; padding: 0.125rem 0; }
.faint { color: var(--faint); }
.good, .loud { max-width: none; margin: 1.25rem 0; padding: 0.625rem 0.875rem;
  border-left: 0.25rem solid; }
.good { background: var(--good-paper); color: var(--good); }
.loud { background: var(--loud-paper); color: var(--loud); }
.loud ul { max-width: none; padding-left: 1.25rem; }
.loud a { color: inherit; }
figure { max-width: 62rem; margin: 0 0 1rem; padding: 0.75rem; background: #fff; color: #1b1d20;
  border: 1px solid var(--line); border-radius: 0.375rem; }
figcaption { margin-bottom: 0.5rem; font-weight: 600; }
figure img { display: block; width: 100%; min-width: 42rem; height: auto; }
.scroll { overflow-x: auto; }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--link); }
table { width: min-content; border-spacing: 0; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
caption { padding: 0.25rem 0 0.5rem; text-align: left; }
caption span { position: sticky; left: 0; display: inline-block; color: var(--faint);
  max-width: min(48rem, calc(100vw - 3rem)); }
th, td { padding: 0.3125rem 0.625rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: baseline; white-space: nowrap; }
thead th { vertical-align: bottom; white-space: normal; border-bottom-color: var(--faint); }
tbody + tbody tr:first-child > *, tfoot tr:first-child > * {
  border-top: 1px solid var(--faint);
}
tfoot { font-weight: 600; }
th:first-child { position: sticky; left: 0; background: var(--paper); }
th:first-child, .text { text-align: left; }
tbody th { font-weight: 500; }
td small { display: block; }
.unfit td { color: var(--faint); font-style: italic; }
td.differs { background: var(--loud-paper); color: var(--loud); font-weight: 700; }
:target { background: var(--card); }
details { margin: 0.25rem 0; border: 1px solid var(--line); border-radius: 0.375rem;
  padding: 0 0.75rem; }
details[open] { padding-bottom: 0.75rem; }
summary { padding: 0.375rem 0; cursor: pointer; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1.25rem; margin: 0; }
dt { color: var(--faint); }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
pre { margin: 0; overflow-x: auto; font: 0.875rem/1.45 ui-monospace, monospace; }
@media print {
  @page { size: A4 landscape; margin: 12mm; }
  body { max-width: none; padding: 0; font-size: 9pt; }
  nav { display: none; }
  a { color: inherit; text-decoration: none; }
  .scroll { overflow: visible; }
  h2 { margin-top: 1.25rem; }
  table { font-size: 7.5pt; }
  th, td { padding: 0.15rem 0.35rem; }
  th:first-child { position: static; }
  tr, figure, .good, .loud { break-inside: avoid; }
  h2, summary { break-after: avoid; }
  details { border: 0; padding: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
  pre { white-space: pre-wrap; }
}
)";

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= group.size() ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace

std::string html_text(std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr std::array kEntities = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
  std::string safe;
  for (const char c : text) {
    const std::size_t k = kSpecial.find(c);
    safe += k == std::string_view::npos ? std::string(1, c) : kEntities[k];
  }
  return safe;
}

std::string html_powers(std::string_view text) {
  return with_powers(html_text(text), "^", [](std::string_view exponent) {
    return fmt::format("<sup>{}</sup>", exponent);
  });
}

std::string svg_address(std::string_view svg) {
  return "data:image/svg+xml;base64," + base64(svg);
}

std::string html_cell(std::string_view text) {
  return fmt::format("<td>{}</td>", html_text(text));
}

std::string html_table(std::string_view caption, const std::vector<std::string>& columns,
                       std::string_view rows) {
  std::string head;
  for (const std::string& column : columns) {
    head += fmt::format("<th scope=\"col\">{}</th>", html_text(column));
  }
  return fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n<table>\n"
      "<caption><span>{0}</span></caption>\n<thead><tr>{1}</tr></thead>\n{2}</table>\n</div>\n",
      html_text(caption), head, rows);
}

std::string html_page(std::string_view title, std::string_view body) {
  // With this policy the browser refuses to load any other file.
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<style>{}</style>
</head>
<body>
{}</body>
</html>
)",
                     html_text(title), kStyle, body);
}

}  // namespace redblue
