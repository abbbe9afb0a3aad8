#include "runtime/text/parse_json.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

using Parser = nlohmann::json;

// Builds a value from the events of the library's parser, and refuses content that is not allowed
// in documents.
class JsonBuilder : public nlohmann::json_sax<Parser> {
 public:
  explicit JsonBuilder(const std::string& place) : place_(place) {}
  Json take() { return std::move(done_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  // Negative integers and -0 arrive here. -0 becomes a double, so that it is not a number of words.
  bool number_integer(std::int64_t value) override { return value == 0 ? add(-0.0) : add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string& /*text*/) override { return add(value); }
  bool string(std::string& text) override { return add(std::move(text)); }
  bool binary(Parser::binary_t& /*bytes*/) override { return false; }  // JSON has no binary values

  bool start_object(std::size_t /*size*/) override { return open(Json()); }
  bool end_object() override { return close(Json::object_of(std::move(open_.back().members))); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_array() override { return close(std::move(open_.back().array)); }
  bool key(std::string& name) override {
    if (!open_.back().adds(name)) {
      throw JsonError(fmt::format("{}: {} is there twice in one object", place_, in_short(name)),
                      {});
    }
    return true;
  }
  bool parse_error(std::size_t /*byte*/, const std::string& /*last*/,
                   const nlohmann::detail::exception& error) override {
    const auto* syntax = dynamic_cast<const Parser::parse_error*>(&error);
    if (syntax == nullptr) {  // a number too large for a double
      throw JsonError(place_ + " has a number that no machine holds", {});
    }
    const std::string_view what = error.what();  // "[json...101] parse error at line 3, column 5: "
    const std::size_t at = what.find("line ");
    constexpr std::size_t kMost = 200;  // it quotes the last token, which may be the whole text
    throw JsonError(
        fmt::format("{}, {}", place_,
                    shortened(at == std::string_view::npos ? what : what.substr(at), kMost)),
        syntax->byte);
  }

 private:
  // An array or an object that is not closed yet. The last member waits for its value.
  struct Open {
    Json array;                         // null for an object
    std::vector<Json::Member> members;  // members of an object
    std::unordered_set<std::string> keys;

    // Adds a new key. Returns false if the object already has it. Searching a few members is faster
    // than a set.
    bool adds(std::string& name) {
      constexpr std::size_t kFew = 16;
      if (members.size() < kFew) {
        if (std::ranges::find(members, name, &Json::Member::first) != members.end()) {
          return false;
        }
      } else {
        if (keys.empty()) {
          for (const auto& [key, value] : members) {
            keys.insert(key);
          }
        }
        if (!keys.insert(name).second) {
          return false;
        }
      }
      members.emplace_back(std::move(name), Json());
      return true;
    }
  };

  bool open(Json array) {
    if (open_.size() >= kDeepest) {
      throw JsonError(fmt::format("{} is nested deeper than {} levels", place_, kDeepest), {});
    }
    open_.push_back({std::move(array), {}, {}});
    return true;
  }
  bool close(Json whole) {
    open_.pop_back();
    return add(std::move(whole));
  }
  bool add(Json value) {
    if (open_.empty()) {
      done_ = std::move(value);
    } else if (open_.back().array.is_array()) {
      open_.back().array.push_back(std::move(value));
    } else {
      open_.back().members.back().second = std::move(value);
    }
    return true;
  }

  const std::string& place_;
  std::vector<Open> open_;
  Json done_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& place, Comments comments) {
  JsonBuilder builder(place);
  constexpr bool kWhole = true;  // nothing may follow the value
  Parser::sax_parse(text, &builder, Parser::input_format_t::json, kWhole,
                    comments == Comments::yes);
  return builder.take();
}

std::string in_short(const Json& value) {
  return shortened(value.dump());
}

}  // namespace redblue
