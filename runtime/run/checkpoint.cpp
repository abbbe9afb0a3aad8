#include "runtime/run/checkpoint.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/counts_json.hpp"
#include "runtime/text/parse_json.hpp"

namespace redblue {
namespace {

constexpr std::string_view kFirstWords = "redblue checkpoint 1 ";
constexpr std::size_t kHexDigits = 16;

// FNV-1a, which finds damage by a disk, but no forgery.
std::uint64_t hash_of_body(std::string_view bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return sum;
}

// Throws: JsonMismatch.
Checkpoint checkpoint_of(const Json& json, std::span<const std::byte> sum) {
  Checkpoint checkpoint;
  checkpoint.plan = json.at("plan").get<std::string>();
  checkpoint.forward_plan = json.at("forward_plan").get<std::string>();
  for (const auto& [name, fingerprint] : json.at("operands").items()) {
    checkpoint.operands[name] = fingerprint.get<std::uint64_t>();
  }
  for (const auto& [name, origin] : json.at("origins").items()) {
    checkpoint.origins[name] = origin.get<std::string>();
  }
  checkpoint.forward_done = json.at("forward_done").get<bool>();
  if (!json.at("forward").is_null()) {
    checkpoint.forward = parse_run_counts(json.at("forward"));
  }
  checkpoint.units = json.at("units").get<Index>();
  checkpoint.counted = parse_run_counts(json.at("counted"));
  checkpoint.sum.resize(sum.size() / sizeof(float));
  std::ranges::copy(sum, std::as_writable_bytes(std::span(checkpoint.sum)).begin());
  return checkpoint;
}

}  // namespace

// The file is a line with the checksum of the rest, a line of JSON, and the words of the sum.
Index write(const Checkpoint& checkpoint, const std::filesystem::path& path) {
  const Json json = {
      {"plan", checkpoint.plan},
      {"forward_plan", checkpoint.forward_plan},
      {"operands", checkpoint.operands},
      {"origins", checkpoint.origins},
      {"forward_done", checkpoint.forward_done},
      {"forward", checkpoint.forward ? counts_json(*checkpoint.forward) : Json()},
      {"units", checkpoint.units},
      {"counted", counts_json(checkpoint.counted)},
      {"sum", checkpoint.sum.size()},
  };
  std::string body = json.dump() + "\n";
  const auto sum = std::as_bytes(std::span(checkpoint.sum));
  body.append(reinterpret_cast<const char*>(sum.data()), sum.size());
  const std::string content = fmt::format("{}{:016x}\n{}", kFirstWords, hash_of_body(body), body);
  WholeFile file(path);
  file.append(std::as_bytes(std::span(content)));
  file.finish();
  file.commit(WholeFile::Then::go_on);
  force_name(path);
  return static_cast<Index>(content.size());
}

std::optional<Checkpoint> read_checkpoint(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    return std::nullopt;
  }
  const std::string content = read_text(path.string(), kNoLimit);  // the sum has d x d words
  const auto refuse = [&] {
    return InputError(path.string() +
                      ": no checkpoint, or a damaged one: remove it, and begin anew");
  };
  const std::size_t before = kFirstWords.size() + kHexDigits + 1;
  const std::size_t line = content.find('\n', before);
  const std::string_view body = std::string_view(content).substr(std::min(before, content.size()));
  if (line == std::string::npos || !content.starts_with(kFirstWords) ||
      content.substr(kFirstWords.size(), kHexDigits + 1) !=
          fmt::format("{:016x}\n", hash_of_body(body))) {
    throw refuse();
  }
  const Json json =
      parse_json(std::string_view(content).substr(before, line - before), path.string());
  const auto sum = std::as_bytes(std::span(content)).subspan(line + 1);
  try {
    if (json.at("sum").get<std::size_t>() != sum.size() / sizeof(float) ||
        sum.size() % sizeof(float) != 0) {
      throw refuse();
    }
    return checkpoint_of(json, sum);
  } catch (const JsonMismatch&) {  // of another build
    throw refuse();
  }
}

}  // namespace redblue
