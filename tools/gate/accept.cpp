// Accepts changed counts: checks who and why, and refuses points that cannot be accepted.

#include "tools/gate/accept.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nearest.hpp"
#include "runtime/gate/metrics.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/print.hpp"
#include "tools/gate/git.hpp"
#include "tools/gate/suite.hpp"

namespace redblue {
namespace {

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

// Returns the person named by the option, or by git's configuration.
std::string who_accepts(const TextOption& who, const std::filesystem::path& directory) {
  if (const auto given = who.get()) {
    if (is_blank(given->text)) {
      throw UsageError(fmt::format("{} is blank: give a name", given->from));
    }
    return given->text;
  }
  const auto name = git_says({"config", "user.name"}, directory);
  if (!name || is_blank(*name)) {
    throw UsageError(
        fmt::format("{}: git has no user.name here: give {} NAME", who.flag(), who.flag()));
  }
  const auto email = git_says({"config", "user.email"}, directory);
  return first_line(*name) +
         (!email || is_blank(*email) ? "" : fmt::format(" <{}>", first_line(*email)));
}

bool is_named(const std::map<std::size_t, Accept>& found, std::size_t k) {
  const auto known = found.find(k);
  return known != found.end() && !known->second.by_pattern;
}

}  // namespace

std::optional<Accepted> accepted_by(const TextOption& accept, const TextOption& reason,
                                    const TextOption& who, const std::string& baseline) {
  if (accept.all().empty()) {
    for (const TextOption* only : {&reason, &who}) {
      if (const auto given = only->get()) {
        throw UsageError(
            fmt::format("{} '{}': it is of {}", given->from, given->text, accept.flag()));
      }
    }
    return std::nullopt;
  }
  if (is_standard_input(baseline)) {
    throw UsageError(fmt::format("{}: standard input is no file that can change: name the baseline",
                                 accept.flag()));
  }
  const auto why = reason.get();
  if (!why || is_blank(why->text)) {
    throw UsageError(
        fmt::format("{}: give {} TEXT, which the baseline keeps", accept.flag(), reason.flag()));
  }
  Accepted by{.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))),
              .who = who_accepts(who, directory_of(baseline)),
              .reason = why->text};
  for (const auto& [option, text] : {std::pair(&reason, &by.reason), std::pair(&who, &by.who)}) {
    if (!is_utf8(*text)) {
      throw UsageError(fmt::format("{} '{}' is not UTF-8", option->flag(), shortened(*text)));
    }
  }
  return by;
}

std::map<std::size_t, Accept> to_accept(const std::vector<Given>& asked,
                                        const Recording& baseline) {
  std::vector<std::string> points;
  for (const RecordedPoint& recorded : baseline.points) {
    points.push_back(to_string(recorded.point));
  }
  std::map<std::size_t, Accept> found;
  for (const Given& given : asked) {
    bool any = false;
    for (std::size_t k = 0; k < points.size(); ++k) {
      const bool by_name = points[k] == given.text;
      if (by_name || matches(given.text, points[k])) {
        Given point = given;
        point.text = points[k];
        found.insert_or_assign(k, Accept{std::move(point), !by_name && !is_named(found, k)});
        any = true;
      }
    }
    if (!any) {
      const std::vector<std::string_view> names(points.begin(), points.end());
      throw UsageError(fmt::format("{} '{}': no point is called so: did you mean '{}'?", given.from,
                                   shortened(given.text),
                                   fmt::join(nearest(given.text, names), "' or '")));
    }
  }
  return found;
}

std::string accept(const Given& given, const Accepted& by, Compared& compared,
                   RecordedPoint& recorded) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{} '{}': {}", given.from, given.text, why));
  };
  if (compared.differences.empty()) {
    refuse("nothing differs there: leave it out");
  }
  if (!compared.now) {
    refuse("it has no words now: " + to_words(compared.differences.front()));
  }
  if (const auto over = over_budget(*compared.now); !over.empty()) {
    refuse(to_words(over.front()) + advice(over.front()));
  }
  const std::optional<Index> before = number_of(recorded, "", kWords);
  const std::optional<Index> after = number_of(*compared.now, "", kWords);
  compared.accepted = by;
  compared.accepted->before = before.value_or(0);
  compared.accepted->after = after.value_or(0);
  const std::string change =
      before && after ? fmt::format("{} -> {} words", grouped(*before), grouped(*after))
      : before        ? fmt::format("{} words -> it no longer fits in M", grouped(*before))
      : after         ? fmt::format("it fits in M now, {} words", grouped(*after))
                      : "it does not fit in M, as before";
  std::vector<Accepted> accepted = std::move(recorded.accepted);
  accepted.push_back(*compared.accepted);
  recorded = *compared.now;
  recorded.accepted = std::move(accepted);
  return fmt::format("accepted: {}: {}", given.text, change);
}

void refuse_over_suite(const Given& out) {
  std::error_code none;
  if (is_stream(out.text) || !std::filesystem::is_regular_file(out.text, none)) {
    return;
  }
  const Json there = [&] {
    try {
      return parse_json(read_text(out.text), out.text, Comments::yes);
    } catch (const InputError&) {
      return Json();
    }
  }();
  if (there.contains("points") && !there.contains("redblue")) {
    throw UsageError(
        fmt::format("{} '{}': a suite is there: name another file", out.from, out.text));
  }
}

std::string keep_accepted(const std::string& target, Recording& recording) {
  std::error_code none;
  if (is_stream(target) || std::filesystem::file_size(target, none) == 0 || none) {
    return "";
  }
  std::map<PointKey, std::vector<Accepted>> before;
  try {
    for (RecordedPoint& recorded : parse_recording(read_text(target), target).points) {
      before[key_of(recorded.point)] = std::move(recorded.accepted);
    }
  } catch (const InputError& error) {
    return fmt::format("{}: nothing that was accepted there is kept", error.what());
  }
  for (RecordedPoint& recorded : recording.points) {
    const auto same = before.find(key_of(recorded.point));
    if (recorded.accepted.empty() && same != before.end()) {
      recorded.accepted = same->second;
    }
  }
  return "";
}

}  // namespace redblue
