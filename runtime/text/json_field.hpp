#pragma once
// A value in a JSON document from outside, with its place in the document. If a reader asks for
// something else than the value, it throws a message with the file, the place, the expectation and
// perhaps a remedy: "b.json, points 1, total has no "reads"". The document must outlive this
// object.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/json.hpp"

namespace redblue {

// All functions throw InputError.
class JsonField {
 public:
  JsonField(const Json& json, std::string place, std::string remedy = {})
      : json_(json), place_(std::move(place)), remedy_(std::move(remedy)) {}

  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] bool has(std::string_view key) const { return json_.contains(key); }
  [[nodiscard]] JsonField operator[](std::string_view key) const;
  // Returns the member, or an empty optional for null.
  [[nodiscard]] std::optional<JsonField> unless_null(std::string_view key) const;
  // items() returns the elements of a list, and checks their number if `count` is given. members()
  // returns the members of an object.
  [[nodiscard]] std::vector<JsonField> items(std::optional<std::size_t> count = {}) const;
  [[nodiscard]] std::vector<std::pair<std::string, JsonField>> members() const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool yes() const;
  // Returns a whole number from 0 to `most`.
  [[nodiscard]] Index words(Index most = INT64_MAX) const;
  // Returns a whole number of at least 1.
  [[nodiscard]] Index size() const;
  // Returns a number of at least 0.
  [[nodiscard]] double measure() const;
  [[nodiscard]] std::map<std::string, std::string> texts() const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  [[nodiscard]] JsonField inside(const Json& json, std::string_view name) const;
  void expect(bool holds, std::string_view why) const {
    if (!holds) {
      refuse(why);
    }
  }

  const Json& json_;
  std::string place_, remedy_;
};

}  // namespace redblue
