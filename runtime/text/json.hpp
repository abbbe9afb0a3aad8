#pragma once
// A JSON value, for documents to write and for parsed ones. An object keeps its keys in the order
// in which they were added. Only json.cpp and parse_json.cpp include a JSON library: its templates
// took most of the time of a build.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace redblue {

// A missing key or index, or a value of another type than asked for.
struct JsonMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json();  // null
  Json(std::nullptr_t);
  template <std::same_as<bool> Bool>
  Json(Bool value) : Json(scalar(value)) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Json(Integer value)
      : Json(scalar(std::conditional_t<std::signed_integral<Integer>, std::int64_t, std::uint64_t>(
            value))) {}
  Json(double value);
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  // {{"reads", 1}, {"writes", 2}}
  Json(std::initializer_list<Member> members);
  // Null without a value.
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}
  template <class T>
  Json(const std::vector<T>& items)
      : Json(array_of(std::vector<Json>(items.begin(), items.end()))) {}
  template <class T>
  Json(const std::map<std::string, T>& members)
      : Json(object_of(std::vector<Member>(members.begin(), members.end()))) {}
  // Defined in json.cpp, to keep their code out of other sources; inlined there, g++ 12 warns of
  // uninitialised members.
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array(std::initializer_list<Json> items = {});
  static Json object();
  // Requires: each key is there once.
  static Json object_of(std::vector<Member> members);

  [[nodiscard]] bool is_null() const { return is<std::monostate>(); }
  [[nodiscard]] bool is_boolean() const { return is<bool>(); }
  [[nodiscard]] bool is_number() const { return is_integer() || is<double>(); }
  [[nodiscard]] bool is_integer() const { return is<std::int64_t>() || is<std::uint64_t>(); }
  [[nodiscard]] bool is_number_unsigned() const;  // a whole number of at least 0
  [[nodiscard]] bool is_string() const { return is<std::string>(); }
  [[nodiscard]] bool is_array() const { return is<std::vector<Json>>(); }
  [[nodiscard]] bool is_object() const { return is<std::vector<Member>>(); }

  // bool, std::int64_t, std::uint64_t, double or std::string. Throws: JsonMismatch.
  template <class T>
  [[nodiscard]] T get() const;

  // The number of elements or members; 0 for null, 1 for any other value.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] bool contains(std::string_view key) const;
  // Throws: JsonMismatch.
  [[nodiscard]] const Json& at(std::string_view key) const;
  [[nodiscard]] const Json& at(std::size_t index) const;
  [[nodiscard]] Json value(std::string_view key, Json otherwise) const;
  // The elements of an array; null has none. Throws: JsonMismatch.
  [[nodiscard]] std::vector<Json>::const_iterator begin() const { return elements().begin(); }
  [[nodiscard]] std::vector<Json>::const_iterator end() const { return elements().end(); }
  // The members of an object. Throws: JsonMismatch.
  [[nodiscard]] const std::vector<Member>& items() const;

  // Null becomes an object or an array first. Throws: JsonMismatch.
  Json& operator[](std::string_view key);
  void push_back(Json item);
  // Sets the members of another object.
  void update(const Json& object);

  // 1 equals 1.0. Equal objects have equal members in the same order.
  friend bool operator==(const Json& a, const Json& b);

  enum class BadText { refused, replaced };
  // The value on one line. Bytes that are not UTF-8 are replaced by U+FFFD, or refused.
  // Throws: std::exception if refused.
  [[nodiscard]] std::string dump(BadText bad = BadText::refused) const;
  // The text of a file: each member and element on its own line, and a newline at the end.
  // Throws: as dump().
  [[nodiscard]] std::string document(BadText bad = BadText::refused) const;

 private:
  friend struct JsonText;  // sees the library's types, which this header does not

  static Json scalar(bool value);
  static Json scalar(std::int64_t value);
  static Json scalar(std::uint64_t value);
  static Json array_of(std::vector<Json> items);
  template <class T>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<T>(value_);
  }
  [[nodiscard]] const std::vector<Json>& elements() const;
  [[nodiscard]] const Json* find(std::string_view key) const;

  // A whole number is unsigned only beyond std::int64_t.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
               std::vector<Json>, std::vector<Member>>
      value_;
};

template <>
bool Json::get<bool>() const;
template <>
std::int64_t Json::get<std::int64_t>() const;
template <>
std::uint64_t Json::get<std::uint64_t>() const;
template <>
double Json::get<double>() const;
template <>
std::string Json::get<std::string>() const;

}  // namespace redblue
