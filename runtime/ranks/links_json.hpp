#pragma once
// Converts counts of links to and from JSON that only this program reads. counts_json.hpp does the
// same for counts of machines.

#include <string>

#include "memsim/ranks/transport.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

// [[phase, from, to, words, messages], ...]
inline Json counts_json(const Links& links) {
  Json json = Json::array();
  for (const auto& [link, count] : links) {
    json.push_back(Json::array({link.phase, link.from, link.to, count.words, count.messages}));
  }
  return json;
}

inline Links parse_links(const Json& json) {
  Links links;
  for (const Json& link : json) {
    const auto number = [&](std::size_t k) { return link.at(k).get<Index>(); };
    links[{link.at(0).get<std::string>(), number(1), number(2)}] = {number(3), number(4)};
  }
  return links;
}

}  // namespace redblue
