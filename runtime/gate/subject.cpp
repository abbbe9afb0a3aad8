#include "runtime/gate/subject.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/text/printable.hpp"

namespace redblue {

std::string to_string(const Value& value) {
  const Index* size = std::get_if<Index>(&value);
  return size != nullptr ? std::to_string(*size) : std::get<std::string>(value);
}

const Value& Arguments::value(std::string_view name) const {
  const auto found = std::ranges::find(
      values_, name, [](const auto& item) -> const auto& { return item.first; });
  if (found == values_.end()) {
    throw std::out_of_range(fmt::format("no argument is called {}", name));
  }
  return found->second;
}

Index Arguments::operator[](std::string_view name) const {
  const Index* size = std::get_if<Index>(&value(name));
  if (size == nullptr) {
    throw std::out_of_range(fmt::format("the argument {} is no size", name));
  }
  return *size;
}

bool Arguments::contains(std::string_view name) const {
  return std::ranges::any_of(values_, [&](const auto& item) { return item.first == name; });
}

void Arguments::set(std::string name, Value value) {
  for (auto& [known, old] : values_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  values_.emplace_back(std::move(name), std::move(value));
}

std::string to_string(const Arguments& arguments) {
  std::string text;
  for (const auto& [name, value] : arguments) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, to_string(value));
  }
  return text;
}

NamedTexts parse_named_texts(std::string_view text) {
  NamedTexts texts;
  const std::string_view whole = text;
  const auto skip_blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  };
  for (skip_blanks(); !text.empty() && whole != kNone; skip_blanks()) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos || text.find(' ') < equals) {
      throw std::invalid_argument(
          fmt::format("expected NAME=TEXT, and blanks between several, or none; '{}' is not",
                      shortened(std::string(text))));
    }
    const std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    const bool quoted = text.starts_with('"');
    const std::size_t end = text.find(quoted ? '"' : ' ', quoted ? 1 : 0);
    if (quoted && end == std::string_view::npos) {
      throw std::invalid_argument(fmt::format("a \" is missing after {}=", shortened(name)));
    }
    const std::string_view value = quoted ? text.substr(1, end - 1) : text.substr(0, end);
    if (!texts.emplace(name, value).second) {
      throw std::invalid_argument(shortened(name) + " is named twice");
    }
    text.remove_prefix(
        std::min(end == std::string_view::npos ? end : end + (quoted ? 1 : 0), text.size()));
  }
  if (texts.empty() && whole != kNone) {
    throw std::invalid_argument("it is empty: expected NAME=TEXT, or none");
  }
  return texts;
}

std::string to_string(const NamedTexts& texts) {
  std::string text;
  for (const auto& [name, value] : texts) {
    const char* quote = value.empty() || value.find(' ') != std::string::npos ? "\"" : "";
    if (name.empty() || name.find_first_of("= ") != std::string::npos ||
        value.find('"') != std::string::npos) {
      throw std::invalid_argument(
          fmt::format("{}={}: no name with = or a blank, and no text with a \" can be written",
                      shortened(name), shortened(value)));
    }
    text += fmt::format("{}{}={}{}{}", text.empty() ? "" : " ", name, quote, value, quote);
  }
  return text.empty() ? std::string(kNone) : text;
}

RunCounts final_counts(const Machine& machine) {
  if (machine.live() != 0) {
    throw std::logic_error(
        fmt::format("{} words are still in fast memory at the end ({}): a tile outlives the work",
                    machine.live(), machine.contents()));
  }
  if (const std::string phase = machine.open_phase(); !phase.empty()) {
    throw std::logic_error(
        fmt::format("phase {} is still open at the end: it outlives the work", phase));
  }
  RunCounts counts{.phases = leaves(machine.phases()), .total = total(machine.phases())};
  std::set<std::string_view> paths;
  for (const PhaseCounts& phase : counts.phases) {
    if (!is_utf8(phase.path)) {  // recordings need UTF-8
      throw std::logic_error(
          fmt::format("the phase {} has a name that is not UTF-8", printable(phase.path)));
    }
    if (!paths.insert(phase.path).second) {
      throw std::logic_error(
          fmt::format("two phases are {}: one of that name, and one within another", phase.path));
    }
  }
  return counts;
}

Subject subject_of(std::string name, std::function<void(Machine&, const Arguments&)> work,
                   const std::vector<std::string>& sizes) {
  Subject subject{.name = std::move(name), .summary = {}, .parameters = {}, .run = {}};
  for (const std::string& size : sizes) {
    subject.parameters.push_back({.name = size, .help = {}});
  }
  subject.parameters.push_back({.name = "M", .help = "words of fast memory"});
  subject.run = [work = std::move(work)](const Arguments& arguments) {
    Machine machine(arguments["M"]);
    work(machine, arguments);
    return final_counts(machine);
  };
  return subject;
}

namespace {

void check(const Subject& subject, const Parameter& parameter, const Value& value) {
  const std::string* word = std::get_if<std::string>(&value);
  if (parameter.is_text ? word == nullptr
      : parameter.words.empty()
          ? word != nullptr || std::get<Index>(value) < 1
          : word == nullptr || std::ranges::find(parameter.words, *word) == parameter.words.end()) {
    throw std::invalid_argument(fmt::format(
        "{}: {} is '{}': expected {}", subject.name, parameter.name, shortened(to_string(value)),
        parameter.is_text         ? std::string("a text")
        : parameter.words.empty() ? std::string("a size of at least 1")
                                  : fmt::format("{}", fmt::join(parameter.words, " or "))));
  }
}

}  // namespace

Arguments complete(const Subject& subject, const Arguments& given) {
  for (const auto& [name, value] : given) {
    if (std::ranges::find(subject.parameters, name, &Parameter::name) == subject.parameters.end()) {
      std::vector<std::string> names;
      for (const Parameter& parameter : subject.parameters) {
        names.push_back(parameter.name);
      }
      throw std::invalid_argument(fmt::format("{} takes no '{}': it takes {}", subject.name,
                                              shortened(name), fmt::join(names, ", ")));
    }
  }
  Arguments all;
  all.set_directory(given.directory());
  for (const Parameter& parameter : subject.parameters) {
    if (given.contains(parameter.name)) {
      all.set(parameter.name, given.value(parameter.name));
    } else if (parameter.otherwise) {
      all.set(parameter.name, *parameter.otherwise);
    } else if (!parameter.same_as.empty()) {
      all.set(parameter.name, all.value(parameter.same_as));
    } else if (parameter.is_optional) {
      continue;
    } else {
      throw std::invalid_argument(fmt::format("{}: {} is missing", subject.name, parameter.name));
    }
    check(subject, parameter, all.value(parameter.name));
  }
  if (subject.check) {
    subject.check(all);
  }
  return all;
}

Arguments brief(const Subject& subject, const Arguments& complete) {
  Arguments said;
  said.set_directory(complete.directory());
  for (const Parameter& parameter : subject.parameters) {
    if (parameter.is_optional && !complete.contains(parameter.name)) {
      continue;
    }
    const Value& value = complete.value(parameter.name);
    if (value != parameter.otherwise &&
        (parameter.same_as.empty() || value != complete.value(parameter.same_as))) {
      said.set(parameter.name, value);
    }
  }
  return said;
}

RunCounts predicted(const std::vector<PhaseCost>& phases,
                    const std::vector<std::vector<PhaseCost>>& inner) {
  const auto of = [](const PhaseCost& cost) {
    return PhaseCounts{.path = cost.path,
                       .io = {cost.reads.value(), cost.writes.value()},
                       .operations = {},
                       .peak = cost.peak.value(),
                       .indices = {cost.index_reads.value(), cost.index_writes.value()}};
  };
  const auto level_of = [&](const std::vector<PhaseCost>& costs) {
    RunCounts::Level level{.phases = {}, .total = of(total(costs))};
    std::ranges::transform(costs, std::back_inserter(level.phases), of);
    return level;
  };
  const RunCounts::Level own = level_of(phases);
  RunCounts counts{.phases = own.phases, .total = own.total};
  std::ranges::transform(inner, std::back_inserter(counts.inner), level_of);
  return counts;
}

}  // namespace redblue
