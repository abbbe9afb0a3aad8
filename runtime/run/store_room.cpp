#include "runtime/run/store_room.hpp"

#include <algorithm>
#include <filesystem>

#include "kernels/kernel.hpp"
#include "kernels/masked.hpp"

namespace redblue {

namespace {

using Apart = StoreFile::Use::Apart;

Window window_of(const Signature& operand, const Kernel& kernel, const Problem& problem,
                 const Blocks& blocks) {
  return kernel.fitting.window == nullptr ? Window{1, operand.cols_of(problem.shape)}
                                          : kernel.fitting.window(operand, problem, blocks);
}

// Returns the bytes of a file with windows kept apart. Requires: not Apart::none.
Words bytes_apart(const Store& store, const Signature& operand, const Plan& plan,
                  const Problem& problem, Apart apart) {
  const Kernel& kernel = find_kernel(plan.kernel);
  const Index rows = std::max<Index>(operand.rows_of(problem.shape), 1);
  Window window = window_of(operand, kernel, problem, plan.blocks);
  if (apart == Apart::rows) {
    window.rows = 1;
  } else if (kernel.fitting.written) {
    window.rows = std::min(rows, kernel.fitting.written(operand, problem, plan.blocks));
  }
  return StoredMatrix::file_bytes(StoreLayout::for_blocks(rows, operand.cols_of(problem.shape),
                                                          window, store.granule_bytes(), 1));
}

}  // namespace

StoreLayout input_layout(const Store& store, const Signature& operand, const Plan& plan) {
  const Shape& shape = plan.problem.shape;
  return store.layout(operand.rows_of(shape), operand.cols_of(shape),
                      window_of(operand, find_kernel(plan.kernel), plan.problem, plan.blocks),
                      prefetch_of(plan.blocks) > 1);
}

// With dead rows, blocks of live rows can begin anywhere. In another order, the rows of a block are
// scattered. Both need rows kept apart. A result that a resumed run starts again needs no such
// care.
Apart apart(const Signature& result, const Plan& plan) {
  const auto& split = find_kernel(plan.kernel).schedule.split;
  if (!split || split->reduce != nullptr) {
    return Apart::none;
  }
  const Problem& problem = plan.problem;
  const Index live =
      size_of(result.rows == &Shape::m ? problem.live_keys() : problem.live_queries());
  const bool all = result.rows == &Shape::d || live == result.rows_of(problem.shape);
  const bool in_order = result.rows != &Shape::n || is_in_order(plan.blocks);
  return all && in_order ? apart_left(result.name, plan) : Apart::rows;
}

Apart apart_left(std::string_view matrix, const Plan& plan) {
  const bool anew = find_kernel(plan.kernel).schedule.split->in_one_step(matrix, plan);
  return anew ? Apart::none : Apart::windows;
}

Words room_needed(const Store& store, const Report& report, const StoreFiles& there,
                  const Request::OnDisk& asked) {
  const Plan& plan = report.kernel.plan;
  const Kernel& kernel = find_kernel(plan.kernel);
  Words bytes;
  Words most;  // words of the largest operand
  double excess = 1;
  const auto add = [&](const Signature& operand) {
    const StoreLayout layout = input_layout(store, operand, plan);
    const Words words =
        Words(operand.rows_of(plan.problem.shape)) * operand.cols_of(plan.problem.shape);
    if (words >= most) {
      const Index granule = layout.rows.piece * layout.columns.piece * Index{sizeof(float)};
      excess = std::max(words > most ? 1 : excess,
                        static_cast<double>(layout.slot_bytes()) / static_cast<double>(granule));
      most = words;
    }
    return StoredMatrix::file_bytes(layout);
  };
  for (const Signature& operand : given_of(plan)) {
    const Words own = add(operand);
    bytes += there.contains(operand.name) ? Words(0) : own;
  }
  for (const Signature& operand : kernel.returned(plan.problem)) {
    const Words own = add(operand);
    const Apart its = asked.resume ? apart(operand, plan) : Apart::none;
    bytes += its == Apart::none ? own : bytes_apart(store, operand, plan, plan.problem, its);
  }
  Words words = kernel.intermediates(plan);
  if (asked.resume && kernel.schedule.split && !words.overflowed()) {
    const Problem live = plan.problem.live_part();
    for (const Signature& matrix : kernel.schedule.split->left_as_results) {
      if (apart_left(matrix.name, plan) == Apart::windows) {
        bytes += bytes_apart(store, matrix, plan, live, Apart::windows);
        words = words.value() - matrix.rows_of(live.shape) * matrix.cols_of(live.shape);
      }
    }
  }
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    const Words its = find_kernel(forward.kernel).intermediates(forward);
    words = asked.keep ? words + its : std::max(words, its);
  }
  constexpr Index kMatrices = 8;  // intermediates that exist at once
  constexpr double kTables = 1.02;
  bytes += Words(kMatrices) * 4 * StoreLayout::kSector;
  return words.overflowed() || bytes.overflowed()
             ? words + bytes
             : bytes +
                   static_cast<Index>(4 * kTables * excess * static_cast<double>(words.value()));
}

Words room_left(const Store& store) {
  Words bytes;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory())) {
    if (entry.path().filename().string().ends_with(Store::kTemporarySuffix)) {
      bytes += static_cast<Index>(entry.file_size());
    }
  }
  return bytes;
}

}  // namespace redblue
