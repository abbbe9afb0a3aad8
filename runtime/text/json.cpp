#include "runtime/text/json.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace redblue {
namespace {

using Library = nlohmann::ordered_json;

Library::error_handler_t handler(Json::BadText bad) {
  return bad == Json::BadText::refused ? Library::error_handler_t::strict
                                       : Library::error_handler_t::replace;
}

}  // namespace

// Converts a value to the library's form, and names its type for messages.
struct JsonText {
  static Library written(const Json& json) {
    return std::visit([](const auto& value) { return of(value); }, json.value_);
  }
  static std::string_view type(const Json& json) {
    constexpr std::array<std::string_view, 8> kTypes = {"null",   "boolean", "number", "number",
                                                        "number", "string",  "array",  "object"};
    return kTypes.at(json.value_.index());
  }
  template <class T>
  static T scalar(const Json& json, std::string_view wanted) {
    if (const T* value = std::get_if<T>(&json.value_)) {
      return *value;
    }
    throw JsonMismatch(fmt::format("type must be {}, but is {}", wanted, type(json)));
  }
  template <class T>
  static T whole(const Json& json) {
    const auto* negative = std::get_if<std::int64_t>(&json.value_);
    const auto* large = std::get_if<std::uint64_t>(&json.value_);
    if (negative != nullptr && std::in_range<T>(*negative)) {
      return static_cast<T>(*negative);
    }
    if (large != nullptr && std::in_range<T>(*large)) {
      return static_cast<T>(*large);
    }
    throw JsonMismatch(json.is_number()
                           ? "type must be a whole number of 64 bits"
                           : fmt::format("type must be number, but is {}", type(json)));
  }
  static double real(const Json& json) {
    if (const auto* value = std::get_if<std::int64_t>(&json.value_)) {
      return static_cast<double>(*value);
    }
    if (const auto* value = std::get_if<std::uint64_t>(&json.value_)) {
      return static_cast<double>(*value);
    }
    return scalar<double>(json, "number");
  }

 private:
  static Library of(std::monostate /*null*/) { return {}; }
  static Library of(const std::vector<Json>& items) {
    Library array = Library::array();
    for (const Json& item : items) {
      array.push_back(written(item));
    }
    return array;
  }
  static Library of(const std::vector<Json::Member>& members) {
    Library object = Library::object();
    for (const auto& [key, value] : members) {
      object[key] = written(value);
    }
    return object;
  }
  static Library of(const auto& scalar) { return scalar; }
};

Json::Json() = default;
Json::Json(std::nullptr_t) {}
Json::Json(double value) : value_(value) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::initializer_list<Member> members) : value_(std::vector<Member>(members)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array(std::initializer_list<Json> items) {
  return array_of(items);
}

Json Json::object() {
  return object_of({});
}

Json Json::scalar(bool value) {
  Json json;
  json.value_ = value;
  return json;
}

Json Json::scalar(std::int64_t value) {
  Json json;
  json.value_ = value;
  return json;
}

Json Json::scalar(std::uint64_t value) {
  Json json;
  if (std::in_range<std::int64_t>(value)) {
    json.value_ = static_cast<std::int64_t>(value);
  } else {
    json.value_ = value;
  }
  return json;
}

Json Json::array_of(std::vector<Json> items) {
  Json json;
  json.value_ = std::move(items);
  return json;
}

Json Json::object_of(std::vector<Member> members) {
  Json json;
  json.value_ = std::move(members);
  return json;
}

bool Json::is_number_unsigned() const {
  const auto* value = std::get_if<std::int64_t>(&value_);
  return is<std::uint64_t>() || (value != nullptr && *value >= 0);
}

template <>
bool Json::get<bool>() const {
  return JsonText::scalar<bool>(*this, "boolean");
}
template <>
std::int64_t Json::get<std::int64_t>() const {
  return JsonText::whole<std::int64_t>(*this);
}
template <>
std::uint64_t Json::get<std::uint64_t>() const {
  return JsonText::whole<std::uint64_t>(*this);
}
template <>
double Json::get<double>() const {
  return JsonText::real(*this);
}
template <>
std::string Json::get<std::string>() const {
  return JsonText::scalar<std::string>(*this, "string");
}

std::size_t Json::size() const {
  if (const auto* members = std::get_if<std::vector<Member>>(&value_)) {
    return members->size();
  }
  return is_array() || is_null() ? elements().size() : 1;
}

const Json* Json::find(std::string_view key) const {
  const auto* members = std::get_if<std::vector<Member>>(&value_);
  if (members == nullptr) {
    return nullptr;
  }
  const auto found =
      std::ranges::find_if(*members, [&](const Member& member) { return member.first == key; });
  return found == members->end() ? nullptr : &found->second;
}

bool Json::contains(std::string_view key) const {
  return find(key) != nullptr;
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) {
    throw JsonMismatch(fmt::format("cannot use at() with {}", JsonText::type(*this)));
  }
  const Json* found = find(key);
  return found != nullptr ? *found : throw JsonMismatch(fmt::format("key '{}' not found", key));
}

const Json& Json::at(std::size_t index) const {
  const auto* items = std::get_if<std::vector<Json>>(&value_);
  if (items == nullptr) {
    throw JsonMismatch(fmt::format("cannot use at() with {}", JsonText::type(*this)));
  }
  return index < items->size()
             ? (*items)[index]
             : throw JsonMismatch(fmt::format("array index {} is out of range", index));
}

Json Json::value(std::string_view key, Json otherwise) const {
  if (!is_object()) {
    throw JsonMismatch(fmt::format("cannot use value() with {}", JsonText::type(*this)));
  }
  const Json* found = find(key);
  return found != nullptr ? *found : std::move(otherwise);
}

const std::vector<Json>& Json::elements() const {
  static const std::vector<Json> none;
  return is_null()    ? none
         : is_array() ? std::get<std::vector<Json>>(value_)
                      : throw JsonMismatch(
                            fmt::format("type must be array, but is {}", JsonText::type(*this)));
}

const std::vector<Json::Member>& Json::items() const {
  return is_object() ? std::get<std::vector<Member>>(value_)
                     : throw JsonMismatch(
                           fmt::format("type must be object, but is {}", JsonText::type(*this)));
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) {
    value_ = std::vector<Member>();
  }
  static_cast<void>(items());  // throws unless it is an object
  auto& members = std::get<std::vector<Member>>(value_);
  const auto found =
      std::ranges::find_if(members, [&](const Member& member) { return member.first == key; });
  return (found != members.end() ? *found : members.emplace_back(key, Json())).second;
}

void Json::push_back(Json item) {
  if (is_null()) {
    value_ = std::vector<Json>();
  }
  static_cast<void>(elements());  // throws unless it is an array
  std::get<std::vector<Json>>(value_).push_back(std::move(item));
}

void Json::update(const Json& object) {
  for (const auto& [key, value] : object.items()) {
    (*this)[key] = value;
  }
}

bool operator==(const Json& a, const Json& b) {
  const bool real =
      std::holds_alternative<double>(a.value_) != std::holds_alternative<double>(b.value_);
  return a.is_number() && b.is_number() && real ? a.get<double>() == b.get<double>()
                                                : a.value_ == b.value_;
}

std::string Json::dump(BadText bad) const {
  return JsonText::written(*this).dump(-1, ' ', false, handler(bad));
}

std::string Json::document(BadText bad) const {
  constexpr int kIndent = 2;
  return JsonText::written(*this).dump(kIndent, ' ', false, handler(bad)) + "\n";
}

}  // namespace redblue
