// Checkpoints, read unchanged, and again with a corrected checksum. Without the correction, hardly
// any damage gets past the checksum.

#include "runtime/run/checkpoint.hpp"

#include <span>

#include <fmt/format.h>

#include "memsim/ranks/checksum.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {
namespace {

std::string with_checksum(std::string_view body) {
  return fmt::format("redblue checkpoint 2 {:016x}\n{}",
                     checksum_of(std::as_bytes(std::span(body))), body);
}

void feed(std::string_view content) {
  const std::filesystem::path file = scratch("checkpoint", content);
  const auto read =
      read_or_refused<InputError>(file.string(), [&] { return read_checkpoint(file).value(); });
  if (read) {
    const std::filesystem::path again = scratch("again", "");
    write(*read, again);
    const std::string once = content_of(again);
    write(read_checkpoint(again).value(), again);
    demand(content_of(again) == once, "what is written is read as another checkpoint");
  }
  demand_nothing_left();
}

}  // namespace

void checkpoint(std::string_view input) {
  feed(input);
  feed(with_checksum(input));
}

}  // namespace redblue::fuzz
