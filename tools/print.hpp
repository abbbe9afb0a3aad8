#pragma once
// Data to standard output, and only whole: a full disk or a closed pipe is a failure.

#include <string_view>

#include "runtime/report.hpp"
#include "tools/command.hpp"

namespace redblue {

// Throws: std::system_error.
void print(std::string_view text);
void print(const Report& report, Format format);

// A line to standard error, "redblue: " in front. Where that cannot be written, nothing can be
// said about it either.
void say(std::string_view line) noexcept;

}  // namespace redblue
