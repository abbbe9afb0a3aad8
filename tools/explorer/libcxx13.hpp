#pragma once
// The parts of the C++20 library that redblue uses and that libc++ 13 lacks, which comes with
// Debian 12's emscripten. Each source includes this header first. Algorithms do not check for
// iterators into temporary ranges. A thread fails to start.

#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 14000

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

_LIBCPP_BEGIN_NAMESPACE_STD
span(string_view)->span<const char>;
_LIBCPP_END_NAMESPACE_STD

namespace std {
namespace ranges {

// Returns a predicate of elements, of a predicate of their projections.
template <class F, class P>
constexpr auto of_projected(F& f, P& p) {
  return [&f, &p](auto&&... x) -> decltype(auto) {
    return std::invoke(f, std::invoke(p, std::forward<decltype(x)>(x))...);
  };
}
template <class T, class P>
constexpr auto is_value(const T& value, P& p) {
  return [&value, &p](auto&& x) { return std::invoke(p, x) == value; };
}

template <class In, class Out>
struct in_out_result {
  In in;
  Out out;
};
template <class T>
struct min_max_result {
  T min, max;
};
template <class R>
using value_of = std::remove_cvref_t<decltype(*std::begin(std::declval<R&>()))>;

// An algorithm that takes a function of elements.
#define REDBLUE_BY_FUNCTION(name)                                           \
  template <range R, class F, class P = identity>                           \
  constexpr auto name(R&& r, F f, P p = {}) {                               \
    return std::name(ranges::begin(r), ranges::end(r), of_projected(f, p)); \
  }                                                                         \
  template <input_or_output_iterator I, class F, class P = identity>        \
  constexpr auto name(I first, I last, F f, P p = {}) {                     \
    return std::name(first, last, of_projected(f, p));                      \
  }
REDBLUE_BY_FUNCTION(all_of)
REDBLUE_BY_FUNCTION(any_of)
REDBLUE_BY_FUNCTION(none_of)
REDBLUE_BY_FUNCTION(count_if)
REDBLUE_BY_FUNCTION(find_if)
REDBLUE_BY_FUNCTION(find_if_not)
REDBLUE_BY_FUNCTION(for_each)
REDBLUE_BY_FUNCTION(partition_point)
#undef REDBLUE_BY_FUNCTION

// An algorithm that takes an order of elements.
#define REDBLUE_BY_ORDER(name, otherwise)                                        \
  template <range R, class F = otherwise, class P = identity>                    \
  constexpr auto name(R&& r, F f = {}, P p = {}) {                               \
    return std::name(ranges::begin(r), ranges::end(r), of_projected(f, p));      \
  }                                                                              \
  template <input_or_output_iterator I, class F = otherwise, class P = identity> \
  constexpr auto name(I first, I last, F f = {}, P p = {}) {                     \
    return std::name(first, last, of_projected(f, p));                           \
  }
REDBLUE_BY_ORDER(adjacent_find, equal_to)
REDBLUE_BY_ORDER(is_sorted, less)
REDBLUE_BY_ORDER(max_element, less)
REDBLUE_BY_ORDER(min_element, less)
REDBLUE_BY_ORDER(sort, less)
REDBLUE_BY_ORDER(stable_sort, less)
#undef REDBLUE_BY_ORDER

template <range R, class F = less, class P = identity>
constexpr auto minmax_element(R&& r, F f = {}, P p = {}) {
  const auto found = std::minmax_element(ranges::begin(r), ranges::end(r), of_projected(f, p));
  return min_max_result<decltype(found.first)>{found.first, found.second};
}
template <range R, class F = less, class P = identity>
constexpr auto minmax(R&& r, F f = {}, P p = {}) {
  const auto found = ranges::minmax_element(r, f, p);
  return min_max_result<value_of<R>>{*found.min, *found.max};
}
template <range R, class F = less, class P = identity>
constexpr value_of<R> max(R&& r, F f = {}, P p = {}) {
  return *ranges::max_element(r, f, p);
}
template <range R, class F = less, class P = identity>
constexpr value_of<R> min(R&& r, F f = {}, P p = {}) {
  return *ranges::min_element(r, f, p);
}
template <range R, class F = less, class P = identity>
constexpr void nth_element(R&& r, iterator_t<R> nth, F f = {}, P p = {}) {
  std::nth_element(ranges::begin(r), nth, ranges::end(r), of_projected(f, p));
}

template <range R, class T, class P = identity>
constexpr auto find(R&& r, const T& value, P p = {}) {
  return std::find_if(ranges::begin(r), ranges::end(r), is_value(value, p));
}
template <input_or_output_iterator I, class T, class P = identity>
constexpr auto find(I first, I last, const T& value, P p = {}) {
  return std::find_if(first, last, is_value(value, p));
}
template <range R, class T, class P = identity>
constexpr auto count(R&& r, const T& value, P p = {}) {
  return std::count_if(ranges::begin(r), ranges::end(r), is_value(value, p));
}
template <range R, class T, class F = less, class P = identity>
constexpr auto lower_bound(R&& r, const T& value, F f = {}, P p = {}) {
  return std::lower_bound(ranges::begin(r), ranges::end(r), value, [&](auto&& x, const T& y) {
    return std::invoke(f, std::invoke(p, x), y);
  });
}
template <range R, class T, class F = less, class P = identity>
constexpr auto upper_bound(R&& r, const T& value, F f = {}, P p = {}) {
  return std::upper_bound(ranges::begin(r), ranges::end(r), value, [&](const T& y, auto&& x) {
    return std::invoke(f, y, std::invoke(p, x));
  });
}
template <range R, class T, class F = less, class P = identity>
constexpr bool binary_search(R&& r, const T& value, F f = {}, P p = {}) {
  const auto found = ranges::lower_bound(r, value, f, p);
  return found != ranges::end(r) && !std::invoke(f, value, std::invoke(p, *found));
}

template <range R, range S, class F = equal_to, class P = identity, class Q = identity>
constexpr bool equal(R&& r, S&& s, F f = {}, P p = {}, Q q = {}) {
  return std::equal(
      ranges::begin(r), ranges::end(r), ranges::begin(s), ranges::end(s),
      [&](auto&& x, auto&& y) { return std::invoke(f, std::invoke(p, x), std::invoke(q, y)); });
}
template <range R, range S, class F = less>
constexpr bool lexicographical_compare(R&& r, S&& s, F f = {}) {
  return std::lexicographical_compare(ranges::begin(r), ranges::end(r), ranges::begin(s),
                                      ranges::end(s), f);
}

template <range R, class Out>
constexpr auto copy(R&& r, Out out) {
  return in_out_result<iterator_t<R>, Out>{ranges::end(r),
                                           std::copy(ranges::begin(r), ranges::end(r), out)};
}
template <range R, class Out>
constexpr auto move(R&& r, Out out) {
  return in_out_result<iterator_t<R>, Out>{ranges::end(r),
                                           std::move(ranges::begin(r), ranges::end(r), out)};
}
template <range R, class Out, class F, class P = identity>
constexpr void copy_if(R&& r, Out out, F f, P p = {}) {
  std::copy_if(ranges::begin(r), ranges::end(r), out, of_projected(f, p));
}
template <range R, class Out, class F>
constexpr void remove_copy_if(R&& r, Out out, F f) {
  std::remove_copy_if(ranges::begin(r), ranges::end(r), out, f);
}
template <range R, class Out, class F, class P = identity>
constexpr auto transform(R&& r, Out out, F f, P p = {}) {
  return in_out_result<iterator_t<R>, Out>{
      ranges::end(r), std::transform(ranges::begin(r), ranges::end(r), out, of_projected(f, p))};
}
template <range R, class T>
constexpr void fill(R&& r, const T& value) {
  std::fill(ranges::begin(r), ranges::end(r), value);
}
template <range R, class T, class U>
constexpr void replace(R&& r, const T& from, const U& to) {
  std::replace(ranges::begin(r), ranges::end(r), from, to);
}
template <range R, class F, class T>
constexpr void replace_if(R&& r, F f, const T& to) {
  std::replace_if(ranges::begin(r), ranges::end(r), f, to);
}
template <range R>
constexpr void reverse(R&& r) {
  std::reverse(ranges::begin(r), ranges::end(r));
}
template <range R>
constexpr auto distance(R&& r) {
  return std::distance(ranges::begin(r), ranges::end(r));
}

// An algorithm that joins two sorted ranges.
#define REDBLUE_OF_TWO(name)                                                            \
  template <range R, range S, class Out>                                                \
  constexpr void name(R&& r, S&& s, Out out) {                                          \
    std::name(ranges::begin(r), ranges::end(r), ranges::begin(s), ranges::end(s), out); \
  }
REDBLUE_OF_TWO(merge)
REDBLUE_OF_TWO(set_difference)
REDBLUE_OF_TWO(set_intersection)
REDBLUE_OF_TWO(set_symmetric_difference)
#undef REDBLUE_OF_TWO

}  // namespace ranges

// Requires: the characters before `last` are one number and no more than a C string may hold.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const std::string text(first, last);
  char* end = nullptr;
  const double read = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) {
    return {first, errc::invalid_argument};
  }
  value = read;
  return {first + (end - text.c_str()), errc()};
}
// Writes the fewest digits that give the number back.
inline to_chars_result to_chars(char* first, char* last, double value) {
  for (int digits = 1;; ++digits) {
    const int length =
        std::snprintf(first, static_cast<size_t>(last - first), "%.*g", digits, value);
    if (digits == 17 || std::strtod(first, nullptr) == value) {
      return {first + length, errc()};
    }
  }
}

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

inline strong_ordering operator<=>(const string& a, const string& b) {
  return a.compare(b) <=> 0;
}
template <class T>
constexpr auto operator<=>(const optional<T>& a, const optional<T>& b) -> decltype(*a <=> *b) {
  return a && b ? *a <=> *b : a.has_value() <=> b.has_value();
}

class stop_token {};
class jthread {
 public:
  jthread() = default;
  explicit jthread(auto&&... /*work*/) { throw system_error(make_error_code(errc::not_supported)); }
};

}  // namespace std
#endif
