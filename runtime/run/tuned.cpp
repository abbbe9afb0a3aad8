#include "runtime/run/tuned.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "runtime/observe/machine_file.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/build_context.hpp"

namespace redblue {
namespace {

bool keeps_rows_of_scores(const AutoRequest& request) {
  if (!is_backward(request.pass)) {
    return false;
  }
  if (const auto named = parse_kernel_name(request.kernel)) {
    return !named->kernel->needs_forward();
  }
  return request.pass != Pass::backward || !request.has_forward;
}

// The rule without answers.
std::optional<CachePart> usual_part(const AutoRequest& request, const Topology& topology) {
  constexpr Index kEnough = Index{4} << 20;
  const auto threads = static_cast<std::size_t>(request.threads);
  const auto part = [&](CacheLevel level, double share) -> std::optional<CachePart> {
    const auto whole = fast_memory(topology, {level, 1}, threads);
    if (!whole || whole->words == 0) {
      return std::nullopt;
    }
    return CachePart{
        level, std::min(share, static_cast<double>(kEnough) / static_cast<double>(whole->words))};
  };
  std::optional<CachePart> found;
  if (keeps_rows_of_scores(request)) {
    found = part(CacheLevel::L3, 0.25);
  }
  return found ? found : part(CacheLevel::L2, 0.5);
}

double distance(const AutoRequest& request, const TunedProblem& tuned) {
  const auto apart = [](const std::optional<Index>& size, Index other) {
    return size ? std::abs(std::log(static_cast<double>(*size) / static_cast<double>(other))) : 0;
  };
  return apart(request.n, tuned.n) + apart(request.d, tuned.d);
}

// Returns the fastest of the kernels that the request allows, or null.
const TunedKernel* fastest(const AutoRequest& request, const TunedProblem& tuned) {
  const bool scratch = is_backward(request.pass) && !request.has_forward;
  const TunedKernel* best = nullptr;
  const auto seconds = [&](const TunedKernel& of) {
    return scratch ? of.from_scratch : of.seconds;
  };
  for (const TunedKernel& kernel : tuned.kernels) {
    if ((request.kernel.empty() || kernel.kernel == request.kernel) &&
        (best == nullptr || seconds(kernel) < seconds(*best))) {
      best = &kernel;
    }
  }
  return best;
}

Pass pass_named(const JsonField& field) {
  for (std::uint8_t k = 0; k < static_cast<std::uint8_t>(Pass::own); ++k) {
    if (field.text() == to_string(static_cast<Pass>(k))) {
      return static_cast<Pass>(k);
    }
  }
  field.refuse("is no problem");
}

CacheLevel level_named(const JsonField& field) {
  for (const CacheLevel level : kCacheLevels) {
    if (field.text() == to_string(level)) {
      return level;
    }
  }
  field.refuse("is no cache");
}

TunedKernel kernel_in(const JsonField& entry) {
  TunedKernel kernel{.kernel = entry["kernel"].text(),
                     .part = {level_named(entry["cache"]), entry["share"].measure()},
                     .seconds = entry["seconds"].measure(),
                     .from_scratch = entry["from_scratch"].measure()};
  if (!(kernel.part.share > 0) || kernel.part.share > 1) {
    entry["share"].refuse("is no share of a cache");
  }
  if (!std::isfinite(kernel.seconds) || !std::isfinite(kernel.from_scratch)) {
    entry["seconds"].refuse("is no time");
  }
  return kernel;
}

TunedProblem problem_in(const JsonField& entry) {
  TunedProblem problem{.pass = pass_named(entry["problem"]),
                       .mask = entry["mask"].text(),
                       .n = entry["n"].size(),
                       .m = entry["m"].size(),
                       .d = entry["d"].size(),
                       .heads = entry["heads"].size(),
                       .kv_heads = entry["kv_heads"].size(),
                       .threads = entry["threads"].size(),
                       .date = entry["date"].text()};
  for (const JsonField& kernel : entry["kernels"].items()) {
    problem.kernels.push_back(kernel_in(kernel));
  }
  if (problem.kernels.empty()) {
    entry["kernels"].refuse("is empty");
  }
  return problem;
}

Json json_of_problem(const TunedProblem& problem) {
  Json kernels = Json::array();
  for (const auto& [kernel, part, seconds, from_scratch] : problem.kernels) {
    kernels.push_back({{"kernel", kernel},
                       {"cache", to_string(part.level)},
                       {"share", part.share},
                       {"seconds", seconds},
                       {"from_scratch", from_scratch}});
  }
  return {{"problem", to_string(problem.pass)},
          {"mask", problem.mask},
          {"n", problem.n},
          {"m", problem.m},
          {"d", problem.d},
          {"heads", problem.heads},
          {"kv_heads", problem.kv_heads},
          {"threads", problem.threads},
          {"date", problem.date},
          {"kernels", kernels}};
}

}  // namespace

std::string mask_class(std::string_view spec) {
  if (spec.find_first_of("&|") != std::string_view::npos) {
    return "several";
  }
  constexpr std::string_view kAround = " ()";
  const std::size_t first = spec.find_first_not_of(kAround);
  if (first == std::string_view::npos) {
    return "full";
  }
  const std::string_view term = spec.substr(first, spec.find(':', first) - first);
  return std::string(term.substr(0, term.find_last_not_of(kAround) + 1));
}

std::string mask_class(const Mask& mask) {
  return mask.spec().empty() && !mask.full() ? "array" : mask_class(mask.spec());
}

std::optional<AutoMemory> auto_memory(const AutoRequest& request,
                                      const std::vector<TunedProblem>& tuned,
                                      const Topology& topology) {
  // The M of a problem of quite another size may not hold a block of this one.
  const double kFar = std::log(4);
  std::optional<AutoMemory> nearest;
  double least = kFar;
  for (const TunedProblem& problem : tuned) {
    if (problem.pass != request.pass || problem.mask != request.mask ||
        problem.threads != request.threads) {
      continue;
    }
    const TunedKernel* const kernel = fastest(request, problem);
    // The last problem of the file is the latest: it counts if two are equally near.
    if (const double apart = distance(request, problem); kernel != nullptr && apart <= least) {
      nearest = {kernel->part, kernel->kernel, true};
      least = apart;
    }
  }
  if (nearest) {
    return nearest;
  }
  const std::optional<CachePart> part = usual_part(request, topology);
  return part ? std::optional(AutoMemory{.part = *part}) : std::nullopt;
}

std::vector<TunedProblem> read_tuned(std::string_view text, const std::string& name,
                                     const Topology& topology) {
  const MachineFile file(text, name, kTune, topology);
  std::vector<TunedProblem> tuned;
  for (const JsonField& entry : file.top()["problems"].items()) {
    tuned.push_back(problem_in(entry));
  }
  return tuned;
}

std::string tuned_text(const std::vector<TunedProblem>& tuned, const Topology& topology) {
  Json context = build_json();
  context["simd"] = simd_target();
  context["model"] = topology.model;
  context["source"] = topology.source;
  context["caches"] = caches_json(topology);
  Json problems = Json::array();
  for (const TunedProblem& problem : tuned) {
    problems.push_back(json_of_problem(problem));
  }
  return Json{{"schema", kSchema}, {"context", context}, {"problems", problems}}.document();
}

void add_tuned(std::vector<TunedProblem>& tuned, TunedProblem problem) {
  const auto key = [](const TunedProblem& of) {
    return std::tie(of.pass, of.mask, of.n, of.m, of.d, of.heads, of.kv_heads, of.threads);
  };
  std::erase_if(tuned, [&](const TunedProblem& old) { return key(old) == key(problem); });
  tuned.push_back(std::move(problem));
}

}  // namespace redblue
