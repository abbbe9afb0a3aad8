#include "runtime/text/parse_json.hpp"

#include <set>
#include <vector>

#include <fmt/format.h>

#include "runtime/text/printable.hpp"

namespace redblue {

using Json = nlohmann::ordered_json;
using JsonEvent = Json::parse_event_t;

Json parse_json(std::string_view text, const std::string& place, Comments comments) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto look = [&](int depth, JsonEvent event, const Json& parsed) {
    if ((event == JsonEvent::object_start || event == JsonEvent::array_start) &&
        depth >= kDeepest) {
      throw JsonError(fmt::format("{} is nested deeper than {} levels", place, kDeepest), {});
    }
    if (event == JsonEvent::object_start) {
      keys.emplace_back();
    } else if (event == JsonEvent::object_end) {
      keys.pop_back();
    } else if (event == JsonEvent::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw JsonError(fmt::format("{}: {} is there twice in one object", place, in_short(parsed)),
                      {});
    }
    return true;
  };
  try {
    constexpr bool kThrows = true;
    return Json::parse(text, look, kThrows, comments == Comments::yes);
  } catch (const Json::parse_error& error) {
    const std::string_view what = error.what();  // "[json...101] parse error at line 3, column 5: "
    const std::size_t at = what.find("line ");
    constexpr std::size_t kMost = 200;  // it has what was read last, which may be the whole text
    throw JsonError(
        fmt::format("{}, {}", place,
                    shortened(at == std::string_view::npos ? what : what.substr(at), kMost)),
        error.byte);
  } catch (const Json::out_of_range&) {  // 1e400
    throw JsonError(place + " has a number that no machine holds", {});
  }
}

std::string in_short(const Json& value) {
  return shortened(value.dump());
}

}  // namespace redblue
