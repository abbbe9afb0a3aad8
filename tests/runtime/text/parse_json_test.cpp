// Tests JSON from outside and its text: bad input is refused before it causes harm.

#include "runtime/text/parse_json.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/system/read_text.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

std::string refusal(const std::string& text) {
  return thrown<JsonError>([&] { static_cast<void>(parse_json(text, "FILE")); });
}

TEST(ParseJson, AsDeepAsKDeepest) {
  EXPECT_NO_THROW(static_cast<void>(parse_json(nested(kDeepest), "FILE")));
  EXPECT_EQ(refusal(nested(kDeepest + 1)), "FILE is nested deeper than 64 levels");
  EXPECT_EQ(refusal(std::string(60'000, '[')), "FILE is nested deeper than 64 levels");
  std::string objects;
  for (int k = 0; k < 60'000; ++k) {
    objects += "{\"a\":";
  }
  EXPECT_EQ(refusal(objects), "FILE is nested deeper than 64 levels");
}

TEST(ParseJson, SaysWhatIsWrongOnALine) {
  EXPECT_PRED2(contains, refusal("{\n  7}"), "FILE, line 2, column 3");
  EXPECT_EQ(refusal("{\"n\": 1, \"n\": 2}"), "FILE: \"n\" is there twice in one object");
  EXPECT_EQ(refusal("1e400"), "FILE has a number that no machine holds");
  EXPECT_LT(refusal("[\"" + std::string(100'000, 'x')).size(), 300U) << "what was read last";
  EXPECT_LT(in_short(std::string(100'000, 'x')).size(), 80U);
}

TEST(ReadText, ReadsFilesAndPipes) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "text").string();
  EXPECT_EQ(read_text(file), "text");
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "piped", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_text("/dev/fd/" + std::to_string(ends[0])), "piped");
  ::close(ends[0]);
}

TEST(ReadText, RefusesWhatHasNoEnd) {
  EXPECT_EQ(thrown<InputError>([] { static_cast<void>(read_text("/dev/zero")); }),
            "/dev/zero is a device: expected a regular file or a pipe");
  EXPECT_THROW(static_cast<void>(read_text("/")), std::system_error);
}

TEST(ReadText, RefusesWhatIsTooLarge) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("file", "12345").string();
  EXPECT_EQ(read_text(file, 5), "12345");
  EXPECT_PRED2(contains, thrown<InputError>([&] { static_cast<void>(read_text(file, 4)); }),
               "is too large: expected at most");
  // The size is checked without reading this terabyte, a hole.
  ASSERT_EQ(::truncate(file.c_str(), off_t{1} << 40), 0);
  EXPECT_PRED2(contains, thrown<InputError>([&] { static_cast<void>(read_text(file)); }),
               "is too large: expected at most 512 MiB");
}

}  // namespace
}  // namespace redblue
