#include "runtime/run/store_room.hpp"

#include <algorithm>
#include <filesystem>

#include "kernels/kernel.hpp"

namespace redblue {

StoreLayout input_layout(const Store& store, const Signature& operand, const Plan& plan) {
  const Index rows = operand.rows_of(plan.problem.shape);
  const Index cols = operand.cols_of(plan.problem.shape);
  const Kernel& kernel = find_kernel(plan.kernel);
  const Window window = kernel.fitting.window == nullptr
                            ? Window{1, cols}
                            : kernel.fitting.window(operand, plan.problem, plan.blocks);
  return store.layout(rows, cols, window, prefetch_of(plan.blocks) > 1);
}

Words room_needed(const Store& store, const Report& report, const StoreFiles& there, bool keep) {
  const Plan& plan = report.kernel.plan;
  const Kernel& kernel = find_kernel(plan.kernel);
  Words bytes;
  Words most;  // of an operand
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
  for (const Signature& operand : kernel.returned(plan.problem.wanted)) {
    bytes += add(operand);
  }
  Words words = kernel.intermediates(plan);
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    const Words its = find_kernel(forward.kernel).intermediates(forward);
    words = keep ? words + its : std::max(words, its);
  }
  constexpr Index kMatrices = 8;  // of intermediates at a time
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
