#include "runtime/run/run.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/stored_run.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {
namespace {

Words words(const std::vector<Signature>& operands, const Shape& shape) {
  Words sum;
  for (const Signature& operand : operands) {
    sum += Words(operand.rows_of(shape)) * operand.cols_of(shape);
  }
  return sum;
}

// Matrices of all heads, each worker's intermediates and arena, in bytes; with --verify also the
// reference.
Words memory_needed(const Report& report, const Kernel& kernel, bool verify) {
  const auto& [workers, heads] = report.kernel.team;
  const Plan& plan = report.kernel.plan;
  const Index with_a_head = std::min(workers, heads);
  const Index machines = heads == 1 ? workers : with_a_head;
  Words peak = total(plan.phases).peak * machines;
  Words intermediates =
      kernel.intermediates(plan) * with_a_head + partials_of(kernel, plan, report.kernel.team);
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    peak = std::max(peak, total(forward.phases).peak);
    intermediates = std::max(intermediates, find_kernel(forward.kernel).intermediates(forward));
  }
  const Words matrices = words(kernel.given(plan.problem.sharing), plan.problem.shape) +
                         words(kernel.returns, plan.problem.shape);
  const Words bytes =
      4 * (matrices * heads + intermediates + peak) +
      Words(KernelMatrices::bytes(kernel)) * heads;  // not little where heads are small
  return verify ? bytes + verification_bytes(kernel, plan.problem.shape) : bytes;
}

void count_run(Part& part, const Buffers& inputs, Buffers& outputs, const Topology& topology,
               const Around& around, const Progress* progress) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const KernelMatrices bound(kernel, part.plan.problem, part.team.heads, inputs, outputs);
  count_part(part, topology, around, progress, [&](const Around& on_each) {
    TeamRun ran = run_on_team(kernel, part.plan, part.team, bound.heads(), topology, on_each);
    part.unpinned = std::move(ran.unpinned);
    return std::move(ran.counts);
  });
  check_finite(part, outputs);
}

// From files, made, and from the seed.
Buffers make_inputs(const Request& request, const Kernel& kernel, const Readers& readers,
                    const Size& size) {
  Buffers inputs;
  const Index heads = size.heads.value_or(1);
  for (const Signature& operand : kernel.given(size.problem.sharing)) {
    const auto reader = readers.find(operand.name);
    if (reader == readers.end() && made_by_forward(operand.name)) {
      continue;  // the forward kernel makes them
    }
    std::vector<float>& buffer = inputs[std::string(operand.name)];
    buffer = buffer_for(operand, size.problem.shape, heads);
    if (reader != readers.end()) {
      try {
        reader->second.read_rows({0, reader->second.rows()}, buffer);
      } catch (const InputError& error) {
        throw InputError(fmt::format("{} of {}", operand.name, error.what()));
      }
      continue;
    }
    const std::size_t words = words_of(operand, size.problem.shape);
    for (Index head = 0; head < heads; ++head) {
      const auto own = std::span(buffer).subspan(static_cast<std::size_t>(head) * words, words);
      fill_made(request, operand, size.problem.shape, head, 0, operand.rows_of(size.problem.shape),
                own);
    }
  }
  return inputs;
}

}  // namespace

Report count(const Request& request) {
  return planned(request, size_of(request, kernel_of(request), {}), false);
}

Report run(const Request& request, const Topology& topology, const Around& around,
           const Progress* progress) {
  const KernelName asked = kernel_of(request);
  if (around && request.threads > 1) {
    throw RequestError(fmt::format("{} {}: a run is measured on one thread",
                                   request.said("--threads"), request.threads));
  }
  if (request.printed_blocks) {
    throw RequestError(request.said("--blocks") + " printed: these may not fit in M: count only");
  }
  if (request.store) {
    return run_in_store(request, around, progress);
  }
  const Readers readers = open_inputs(request, asked);
  check_outputs(request, *asked.kernel);
  const Size size = size_of(request, asked, readers);
  if (around && size.heads.value_or(1) > 1) {
    throw InputError(fmt::format("{}: {} heads, but a run is measured on one", request.said("--in"),
                                 *size.heads));
  }
  Report report = planned(request, size, readers.contains("O"));
  const Kernel& kernel = find_kernel(report.kernel.plan.kernel);
  set_origins(report, request, readers);
  const MemoryClaim memory(request.memory, memory_needed(report, kernel, request.verify),
                           spelled(report.kernel.plan),
                           "take smaller n, m or d, fewer heads, or use count");
  // An output that cannot be written is known before the work is done.
  Writers writers = open_outputs(request, kernel, size);

  Buffers inputs = make_inputs(request, kernel, readers, size);
  if (report.forward) {
    Buffers made;
    count_run(*report.forward, inputs, made, topology, around, progress);
    inputs.merge(made);
  }
  Buffers results;
  count_run(report.kernel, inputs, results, topology, around, progress);
  if (request.verify) {
    report.error = verify(report, inputs, results);
    if (!report.error->ok) {
      return report;
    }
  }
  for (auto& [name, writer] : writers) {
    writer.append(results.find(name)->second);
  }
  for (auto& [name, writer] : writers) {
    writer.commit();
  }
  return report;
}

Around around_asked(const Request& request, Around around) {
  // backward/auto asks for some backward/...
  const auto pass = [](const std::string& kernel) { return kernel.substr(0, kernel.find('/')); };
  return [asked = pass(request.kernel), pass, around = std::move(around)](
             Machine& machine, const Plan& plan, const std::function<void()>& go) {
    if (pass(plan.kernel) == asked) {
      around(machine, plan, go);
    } else {
      go();
    }
  };
}

}  // namespace redblue
