// redblue sweep: counts or times points of redblue's kernels.

#include "tools/gate/sweep.hpp"

#include <memory>

#include "runtime/run/sparse_operands.hpp"
#include "runtime/subjects/kernel_subjects.hpp"
#include "runtime/subjects/kernel_sweep.hpp"
#include "runtime/sweep/kept_points.hpp"
#include "runtime/system/memory.hpp"
#include "tools/options/machine.hpp"

namespace redblue {

Action add_sweep(CLI::App& app) {
  struct Shared {
    Sparsities sparsities;
    MemoryBudget memory;
  };
  const auto shared = std::make_shared<Shared>();
  return add_sweep_of(
      app, {.subjects = [shared] { return kernel_subjects(nullptr, &shared->sparsities); },
            .hows = {"run", "count", kTimed},
            .context = [] { return sweep_context(machine_topology()); },
            .sweep_point =
                [shared](const Subject& subject, const Arguments& arguments, const std::string& how,
                         const std::function<void()>& stop) {
                  return sweep_point({subject.name, arguments},
                                     how == "count" ? How::count : How::run, how == kTimed,
                                     &shared->memory, stop, &shared->sparsities);
                },
            .on_disk = on_disk});
}

}  // namespace redblue
