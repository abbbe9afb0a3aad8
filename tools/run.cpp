// redblue run: runs a kernel on inputs from files or from a seed, counted.

#include <memory>

#include <fmt/format.h>

#include "runtime/experiment.hpp"
#include "tools/command.hpp"
#include "tools/print.hpp"
#include "tools/problem_options.hpp"
#include "tools/sizes.hpp"

namespace redblue {
namespace {

void fill_files(const TextOption& option, Request& request,
                std::map<std::string, std::filesystem::path>& files) {
  for (const Given& given : option.all()) {
    request.said_as[option.flag()] = given.from;
    const std::size_t equals = given.text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == given.text.size()) {
      throw UsageError(fmt::format("{} '{}': expected NAME=FILE, for example A1=a1.npy", given.from,
                                   given.text));
    }
    const std::string name = given.text.substr(0, equals);
    if (!files.emplace(name, given.text.substr(equals + 1)).second) {
      throw UsageError(fmt::format("{}: {} is named twice", given.from, name));
    }
  }
}

}  // namespace

Action add_run(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          in(command, "--in", "an operand from a .npy file; may be repeated", "NAME=FILE"),
          out(command, "--out", "a result to a .npy file; may be repeated", "NAME=FILE"),
          seed(command, "--seed", "of the operands that no file gives; 1", "NUMBER"),
          scale(command, "--scale", "their scores' standard deviation; 1", "NUMBER"),
          verify(command, "--verify", "compare with a double-precision evaluation"),
          format(command, "--format", "table, json or csv", "FORMAT") {}
    ProblemOptions problem;
    TextOption in, out, seed, scale;
    Switch verify;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->problem.fill(request);
    fill_files(options->in, request, request.in);
    fill_files(options->out, request, request.out);
    if (const auto seed = options->seed.get()) {
      request.seed = parse_seed(seed->text, seed->from);
    }
    if (const auto scale = options->scale.get()) {
      request.scale = parse_scale(scale->text, scale->from);
    }
    request.verify = options->verify.get();
    const Format format = parse_format(options->format);

    const Report report = run(request);
    print(report, format);
    // CSV has no room for the verdict; and what is not as it should be is said in any case.
    constexpr double kUsual = 1e-3;
    if (report.error) {
      const Verdict& error = *report.error;
      if (format == Format::csv || !error.ok || !error.explained ||
          !(error.given_off.value_or(0) <= kUsual)) {
        say(to_words(error));
      }
      return error.ok ? 0 : 1;
    }
    return 0;
  };
}

}  // namespace redblue
