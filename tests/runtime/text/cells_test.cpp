// Tests one list of cells and the three formats made from it.

#include "runtime/text/cells.hpp"

#include <gtest/gtest.h>

#include "memsim/words.hpp"

namespace redblue {
namespace {

std::vector<Cells> two_rows() {
  const auto row = [](const std::string& name, Index words, const std::optional<double>& share,
                      const CellValue& least) -> Cells {
    return {{{"kernel", "name"}, name},
            {"words", words},
            {{"of all", "sum.share", "share"}, decimals(share, 1, "%", "unknown")},
            {{"", "sum.least", "least"}, least},
            {in_json("flag"), true},
            {in_csv("quoted"), always_quoted(name)},
            {{"proven", "", "proven"}, words > 0}};
  };
  return {row("a", 1234567, 12.25, absent()), row("b, \"c\"", -1234, std::nullopt, nullptr)};
}

TEST(Cells, MakeATable) {
  EXPECT_EQ(table_of(two_rows()),
            "kernel      words   of all  proven\n"
            "a       1,234,567    12.2%     yes\n"
            "b, \"c\"     -1,234  unknown      no\n");
}

TEST(Cells, MakeObjects) {
  EXPECT_EQ(json_of(two_rows()).dump(),
            R"([{"name":"a","words":1234567,"sum":{"share":12.25},"flag":true},)"
            R"({"name":"b, \"c\"","words":-1234,"sum":{"share":null,"least":null},"flag":true}])");
}

TEST(Cells, MakeLinesOfCsv) {
  EXPECT_EQ(csv_of(two_rows()),
            "name,words,share,least,quoted,proven\n"
            "a,1234567,12.25,,\"a\",yes\n"
            "\"b, \"\"c\"\"\",-1234,,,\"b, \"\"c\"\"\",no\n");
}

TEST(Cells, AreJoined) {
  const Cells cells = joined({{"a", 1}}, {{"b", CellValue(2).shown("two")}});
  EXPECT_EQ(csv_head(cells) + csv_line(cells), "a,b\n1,2\n");
  EXPECT_EQ(table_of({cells}), "a    b\n1  two\n");
}

}  // namespace
}  // namespace redblue
