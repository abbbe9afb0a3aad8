// Tests JSON values: their content, their form on a line and in a file, and the messages for an
// unexpected document.

#include "runtime/text/json.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/text/parse_json.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();

redblue::Json all_types() {
  return {{"null", nullptr},
          {"yes", true},
          {"least", INT64_MIN},
          {"most", kLargest},
          {"third", 1.0 / 3},
          {"one", 1.0},
          {"text", "a \"b\"\n\u00e9\x1b"},
          {"list", redblue::Json::array({1, "two", redblue::Json::array()})},
          {"object", {{"z", 1}, {"a", redblue::Json::object()}}}};
}

TEST(Json, WritesKeysInTheirOrder) {
  EXPECT_EQ(all_types().dump(),
            R"({"null":null,"yes":true,"least":-9223372036854775808,"most":18446744073709551615,)"
            R"("third":0.3333333333333333,"one":1.0,"text":"a \"b\"\né\u001b",)"
            R"("list":[1,"two",[]],"object":{"z":1,"a":{}}})");
  EXPECT_EQ((redblue::Json{{"a", redblue::Json::array({1})}}).document(),
            "{\n  \"a\": [\n    1\n  ]\n}\n");
  EXPECT_EQ(redblue::Json(std::nan("")).dump(), "null");
}

TEST(Json, IsReadAsItWasWritten) {
  EXPECT_EQ(parse_json(all_types().dump(), "TEXT"), all_types());
  EXPECT_EQ(parse_json(all_types().document(), "TEXT").dump(), all_types().dump());
  const std::string numbers = "[9223372036854775807,9223372036854775808,-0.0,5e-324,1e+22,1.0,1]";
  EXPECT_EQ(parse_json(numbers, "TEXT").dump(), numbers);
}

TEST(Json, HoldsWhatContainersHold) {
  EXPECT_EQ(redblue::Json(std::vector<double>{0.5, 2}).dump(), "[0.5,2.0]");
  EXPECT_EQ((redblue::Json(std::map<std::string, int>{{"b", 2}, {"a", 1}})).dump(),
            R"({"a":1,"b":2})");
  EXPECT_EQ(redblue::Json(std::optional<int>()), redblue::Json());
  EXPECT_EQ(redblue::Json(std::optional(7)), redblue::Json(7));
}

TEST(Json, ComparesNumbersAsNumbers) {
  EXPECT_EQ(redblue::Json(1), redblue::Json(1.0));
  EXPECT_NE(redblue::Json(INT64_MAX), redblue::Json(std::uint64_t{1} << 63));
  EXPECT_EQ(redblue::Json(std::uint64_t{1}), redblue::Json(1));
  EXPECT_NE(redblue::Json(1), redblue::Json(true));
  EXPECT_NE(redblue::Json(1), redblue::Json("1"));
  EXPECT_NE((redblue::Json{{"a", 1}, {"b", 2}}), (redblue::Json{{"b", 2}, {"a", 1}}));
}

TEST(Json, GrowsFromNull) {
  redblue::Json json;
  EXPECT_TRUE(json.empty());
  json["a"]["b"] = 1;
  json["a"]["b"] = 2;
  json["list"].push_back("x");
  json.update({{"a", 3}, {"c", 4}});
  EXPECT_EQ(json.dump(), R"({"a":3,"list":["x"],"c":4})");
  EXPECT_EQ(json.size(), 3U);
  EXPECT_TRUE(json.contains("c"));
  EXPECT_FALSE(redblue::Json(7).contains("c"));
}

TEST(Json, SaysWhatIsNotAsExpected) {
  const redblue::Json json = all_types();
  const auto refusal = [](const auto& read) {
    return thrown<JsonMismatch>([&] { static_cast<void>(read()); });
  };
  EXPECT_EQ(refusal([&] { return json.at("none"); }), "key 'none' not found");
  EXPECT_EQ(refusal([&] { return json.at("list").at("x"); }), "cannot use at() with array");
  EXPECT_EQ(refusal([&] { return json.at("list").at(3); }), "array index 3 is out of range");
  EXPECT_EQ(refusal([&] { return json.at("yes").value("x", 1); }),
            "cannot use value() with boolean");
  EXPECT_EQ(refusal([&] { return json.at("yes").get<std::int64_t>(); }),
            "type must be number, but is boolean");
  for (const redblue::Json& none : {redblue::Json(1.5), redblue::Json(std::uint64_t{1} << 63)}) {
    EXPECT_EQ(refusal([&] { return none.get<std::int64_t>(); }),
              "type must be a whole number of 64 bits");
  }
  EXPECT_EQ(refusal([&] { return json.at("one").get<std::string>(); }),
            "type must be string, but is number");
  EXPECT_EQ(refusal([&] { return json.at("null").get<bool>(); }),
            "type must be boolean, but is null");
  EXPECT_EQ(refusal([&] { return json.at("object").begin(); }),
            "type must be array, but is object");
  EXPECT_EQ(refusal([&] { return json.at("list").items().size(); }),
            "type must be object, but is array");
  redblue::Json number = 7;
  EXPECT_EQ(refusal([&] { return number["x"]; }), "type must be object, but is number");
  EXPECT_EQ(refusal([&] { return number.push_back(1), 0; }), "type must be array, but is number");
}

TEST(Json, RefusesOrReplacesWhatIsNoText) {
  const redblue::Json json = "a\xff";
  EXPECT_ANY_THROW(static_cast<void>(json.dump()));
  EXPECT_EQ(json.dump(redblue::Json::BadText::replaced), "\"a\ufffd\"");
}

}  // namespace
}  // namespace redblue
