#include "runtime/run/operand_home.hpp"

#include <algorithm>
#include <string>

#include "runtime/run/buffers.hpp"
#include "runtime/system/memory.hpp"

namespace redblue {

void OperandHome::fill_rows(const Readers& readers, const Signature& operand,
                            const Problem& problem, Index head, Range rows,
                            std::span<float> words) const {
  const auto reader = readers.find(operand.name);
  if (reader == readers.end()) {
    fill_made(request_, operand, problem, head, rows.begin, rows.size(), words);
    return;
  }
  // A row of a file may hold several rows of the operand: all rows of a head, or the entries of a
  // dense row. Every head has the same entries.
  const InputFile& file = reader->second;
  const Index cols = operand.cols_of(problem.shape);
  const Index stretch = file.cols() / cols;
  const Index first =
      rows.begin + (file.pattern() != nullptr ? 0 : head * operand.rows_of(problem.shape));
  const Range of_file = {first / stretch,
                         std::min((first + rows.size() + stretch - 1) / stretch, file.rows())};
  std::vector<float> whole;
  const bool in_part = of_file.size() * stretch != rows.size();
  if (in_part) {
    whole.resize(static_cast<std::size_t>(of_file.size() * file.cols()));
  }
  InputFile::reading(operand.name, [&] { file.read_rows(of_file, in_part ? whole : words); });
  if (!whole.empty()) {
    std::ranges::copy(
        std::span(whole).subspan(static_cast<std::size_t>(first % stretch * cols), words.size()),
        words.begin());
  }
}

std::vector<float> OperandHome::filled(const Readers& readers, const Signature& operand,
                                       const Problem& problem, Index heads) const {
  std::vector<float> all = buffer_for(operand, problem.shape, heads);
  const std::size_t words = words_of(operand, problem.shape);
  for (Index head = 0; head < heads; ++head) {
    fill_rows(readers, operand, problem, head, {0, operand.rows_of(problem.shape)},
              std::span(all).subspan(static_cast<std::size_t>(head) * words, words));
  }
  return all;
}

Words OperandHome::matrix_bytes(const Report& report, const Arrays& without) {
  const Plan& plan = report.kernel.plan;
  const Shape& shape = plan.problem.shape;
  Words words;
  for (const auto& matrices : {given_of(plan), find_kernel(plan.kernel).returned(plan.problem)}) {
    for (const Signature& matrix : matrices) {
      if (!without.in.contains(matrix.name) && !without.out.contains(matrix.name)) {
        words += Words(matrix.rows_of(shape)) * matrix.cols_of(shape);
      }
    }
  }
  return 4 * words * report.kernel.team.heads;
}

StoreReport OperandHome::report_of(Store& store) const {
  StoreReport report;
  report.directory = request_.store->directory.string();
  report.engine = to_string(store.engine());
  report.no_uring = store.no_uring();
  report.indirect = store.indirect();
  report.granule_bytes = store.granule_bytes();
  report.depth = request_.store->options.depth;
  report.resident = resident_bytes();
  std::ranges::transform(kPurposes, report.traffic.begin(), [&](Purpose purpose) {
    return StoreReport::OfPurpose{purpose, store.ledger().of(purpose)};
  });
  return report;
}

}  // namespace redblue
