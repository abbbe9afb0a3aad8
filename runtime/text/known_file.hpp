#pragma once

#include <string_view>

namespace redblue {

// A file that was compiled into this program.
struct KnownFile {
  const char* name;
  std::string_view text;
};

}  // namespace redblue
