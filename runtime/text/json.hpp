#pragma once
// A JSON value, written by redblue or parsed. An object keeps its keys in the order in which they
// were added. Only json.cpp and parse_json.cpp include a JSON library, because its templates took
// most of the build time.

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

// A missing key or index, or a value of the wrong type.
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
  // An object from its members: {{"reads", 1}, {"writes", 2}}.
  Json(std::initializer_list<Member> members);
  // A null value if the optional is empty.
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}
  template <class T>
  Json(const std::vector<T>& items)
      : Json(array_of(std::vector<Json>(items.begin(), items.end()))) {}
  template <class T>
  Json(const std::map<std::string, T>& members)
      : Json(object_of(std::vector<Member>(members.begin(), members.end()))) {}
  // Defined in json.cpp to keep their code out of other sources. If they were inline there, g++ 12
  // would warn of uninitialised members.
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array(std::initializer_list<Json> items = {});
  static Json object();
  // Makes an object. Requires: no key occurs twice.
  static Json object_of(std::vector<Member> members);

  [[nodiscard]] bool is_null() const { return is<std::monostate>(); }
  [[nodiscard]] bool is_boolean() const { return is<bool>(); }
  [[nodiscard]] bool is_number() const { return is_integer() || is<double>(); }
  [[nodiscard]] bool is_integer() const { return is<std::int64_t>() || is<std::uint64_t>(); }
  [[nodiscard]] bool is_number_unsigned() const;  // a whole number of at least 0
  [[nodiscard]] bool is_string() const { return is<std::string>(); }
  [[nodiscard]] bool is_array() const { return is<std::vector<Json>>(); }
  [[nodiscard]] bool is_object() const { return is<std::vector<Member>>(); }

  // Returns the value as bool, std::int64_t, std::uint64_t, double or std::string. Throws:
  // JsonMismatch.
  template <class T>
  [[nodiscard]] T get() const;

  // Returns the number of elements or members; 0 for null, 1 for any other value.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] bool contains(std::string_view key) const;
  // Return a member or an element. Throw: JsonMismatch.
  [[nodiscard]] const Json& at(std::string_view key) const;
  [[nodiscard]] const Json& at(std::size_t index) const;
  [[nodiscard]] Json value(std::string_view key, Json otherwise) const;
  // Iterate over the elements of an array; null has none. Throw: JsonMismatch.
  [[nodiscard]] std::vector<Json>::const_iterator begin() const { return elements().begin(); }
  [[nodiscard]] std::vector<Json>::const_iterator end() const { return elements().end(); }
  // Returns the members of an object. Throws: JsonMismatch.
  [[nodiscard]] const std::vector<Member>& items() const;

  // Access a member or append an element. A null value first becomes an object or an array. Throw:
  // JsonMismatch.
  Json& operator[](std::string_view key);
  void push_back(Json item);
  // Sets the members of another object.
  void update(const Json& object);

  // Compares values: 1 equals 1.0. Equal objects have equal members in the same order.
  friend bool operator==(const Json& a, const Json& b);

  enum class BadText { refused, replaced };
  // Returns the value on one line. Bytes that are not UTF-8 are replaced by U+FFFD, or refused.
  // Throws: std::exception if refused.
  [[nodiscard]] std::string dump(BadText bad = BadText::refused) const;
  // Returns the text of a file: each member and element on its own line, and a newline at the end.
  // Throws: as dump().
  [[nodiscard]] std::string document(BadText bad = BadText::refused) const;

 private:
  friend struct JsonText;  // uses the library's types, which this header hides

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

  // A whole number is stored as unsigned only if it exceeds std::int64_t.
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
