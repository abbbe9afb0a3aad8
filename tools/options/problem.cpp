#include "tools/options/problem.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/run/mask_spec.hpp"
#include "runtime/run/nest_file.hpp"
#include "runtime/system/tensor_path.hpp"
#include "tools/cli/caller.hpp"
#include "tools/cli/inputs.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/options/machine.hpp"

namespace redblue {

TableOptions::TableOptions(CLI::App& app, const Keys& keys, const std::vector<Option>& changed)
    : takes_M_(std::ranges::find(keys, "M") != keys.end()) {
  for (const std::string_view key : keys) {
    const auto found = std::ranges::find(changed, key, &Option::key);
    const Option option = found != changed.end() ? *found : redblue::option(key);
    const std::string flag = spelled(key, Spelling::flag), text(option.text);
    if (option.is_switch()) {
      switches_.emplace_back(option.key, Switch(app, flag, text, to_string(option.group)));
    } else {
      texts_.emplace_back(option.key, TextOption(app, flag, text, std::string(option.type),
                                                 to_string(option.group), option.repeats));
    }
  }
}

Settings TableOptions::settings() const {
  Settings settings(Spelling::flag);
  for (const auto& [key, option] : texts_) {
    for (Given& given : option.all()) {
      settings.add(key, std::move(given.text));
    }
  }
  for (const auto& [key, option] : switches_) {
    if (option.get()) {
      settings.add(key, "1");
    }
  }
  return settings;
}

void TableOptions::fill(const Settings& settings, Request& request) const {
  redblue::fill(settings, machine_at_hand(), request);
  if (const Caller* const its = caller(); its != nullptr && settings.contains("mask")) {
    request.mask_of_caller = its->mask;
  }
  if (takes_M_ && request.M == 0) {
    throw UsageError(
        fmt::format("{0} is missing: the words of fast memory, for example {0} 8192, or {1} a100",
                    settings.said("M"), settings.said("device")));
  }
}

namespace {

Keys with(Keys keys, const Keys& others) {
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

}  // namespace

ProblemOptions::ProblemOptions(CLI::App& app, const Keys& others)
    : kernel_(app, "kernel", std::string(option("kernel").text)),
      nest_(app, "--nest", "instead of a kernel: a loop nest written as text in FILE", "FILE"),
      table_(app, with({"n", "m", "d", "dv", "mask", "activation", "softmax_scale", "sharing",
                        "wanted", "M", "device", "prefetch", "objective", "multiple", "blocks"},
                       with(others, {"threads"}))) {}

std::optional<std::string> ProblemOptions::kernel() const {
  const auto kernel = kernel_.get();
  const auto nest = nest_.get();
  if (kernel && nest) {
    throw UsageError(fmt::format("{} {}: {} is a kernel, too: give one of the two", nest->from,
                                 nest->text, *kernel));
  }
  return nest ? std::optional(named_nest(nest->text)) : kernel;
}

void ProblemOptions::fill(Request& request) const {
  const auto kernel = this->kernel();
  if (!kernel) {
    throw UsageError("kernel is required");
  }
  request.kernel = kernel_name(*kernel, true);
  fill_problem(request);
}

void ProblemOptions::fill_problem(Request& request) const {
  request.stop = stop_if_caller_asks();
  table_.fill(request);
  if (request.sharing == Sharing::self) {
    throw UsageError("--sharing 'self': expected none or kv");
  }
}

void refuse_inputs(const Given& out, const Request& request) {
  for (const auto& [operand, file] : request.in) {
    const auto tensor = tensor_path(file);
    refuse_input(out, tensor ? tensor->file : file);
  }
  for (const std::string& file : files_of_mask(request.mask)) {
    refuse_input(out, file);
  }
}

}  // namespace redblue
