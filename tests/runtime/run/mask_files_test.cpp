// Tests the files that the text of a mask names, and only these: an output must not replace one.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/run/mask_spec.hpp"

namespace redblue {
namespace {

using Files = std::vector<std::string>;

TEST(MaskFiles, AreThoseThatTheParserReads) {
  EXPECT_EQ(files_of_mask("full"), Files());
  EXPECT_EQ(files_of_mask("causal & window:3,inf"), Files());
  EXPECT_EQ(files_of_mask("causal&blocks:k.npy"), Files{"k.npy"});
  EXPECT_EQ(files_of_mask("( documents : q.npy ) | full"), Files{"q.npy"});
  EXPECT_EQ(files_of_mask("documents:q.npy:k.npy & pattern:p.npz"),
            (Files{"q.npy", "k.npy", "p.npz"}));
  // A colon is part of the name of a layout. In quotes, every character is part of a name.
  EXPECT_EQ(files_of_mask("blocks:C:a.npy"), Files{"C:a.npy"});
  EXPECT_EQ(files_of_mask("blocks:\"m:k & l.npy\" | documents:\"a\":\"b\""),
            (Files{"m:k & l.npy", "a", "b"}));
  // The search also ends on a text that is not a mask.
  EXPECT_EQ(files_of_mask("blocks:"), Files{""});
  EXPECT_EQ(files_of_mask("documents:\"a"), Files{"a"});
}

}  // namespace
}  // namespace redblue
