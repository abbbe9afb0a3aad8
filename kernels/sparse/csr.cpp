#include "kernels/sparse/csr.hpp"

#include "kernels/sparse/telling.hpp"

namespace redblue {

ByColumns::ByColumns(const BlockPattern& of, Range rows)
    : offsets_(static_cast<std::size_t>(of.cols) + 2),
      entries_(static_cast<std::size_t>(stored_in(of, rows))) {
  const Range all = entries_of(of, rows);
  for (Index entry = all.begin; entry < all.end; ++entry) {
    ++offsets_[static_cast<std::size_t>(of.columns[static_cast<std::size_t>(entry)]) + 2];
  }
  for (std::size_t column = 2; column < offsets_.size(); ++column) {
    offsets_[column] += offsets_[column - 1];
  }
  // Each offset moves from the end of the previous column to the end of its column.
  for (Index row = rows.begin; row < rows.end; ++row) {
    Index entry = entries_of(of, row).begin;
    for (const Index column : of.row(row)) {
      entries_[offsets_[static_cast<std::size_t>(column) + 1]++] = {row, entry++};
    }
  }
  offsets_.pop_back();
}

CsrEntries read_entries(Machine& machine, const SlowCsr& of, Range entries) {
  CsrEntries read{entries, machine.read_indices(entries.size(), entries.size()), {}};
  if (entries.size() > 0) {
    read.values = machine.read(of.values.row_block(entries));
  }
  return read;
}

CsrEntries read_csr(Machine& machine, const SlowCsr& of) {
  const Range all{0, of.pattern.stored()};
  const Index words = all.size() + of.pattern.rows + 1;
  return {all, machine.read_indices(words, words),
          all.size() > 0 ? machine.read(of.values.row_block(all)) : Tile()};
}

CsrEntries CsrPass::rows(Range rows) {
  const Range entries = entries_of(of_.pattern, rows);
  const Index words = entries.size() + rows.size();
  CsrEntries read{entries, machine_->read_indices(words, words), {}};
  if (entries.size() > 0) {
    read.values = machine_->read(of_.values.row_block(entries));
  }
  return read;
}

void CsrPass::row() {
  pointer_.reset();
  pointer_ = machine_->read_indices(1);
}

CsrWriter::CsrWriter(Machine& machine, const BlockPattern& pattern, SlowMatrix& values, Index piece)
    : machine_(&machine), pattern_(&pattern), values_(&values), piece_(piece) {
  pointer();
}

void CsrWriter::pointer() {
  const Tile tile = machine_->initialize("index", 1, 1, Holds::indices);
  machine_->write_indices(tile, 1);
}

void CsrWriter::row(const Tile& words, Index first_word, bool packed) {
  const Range all = entries_of(*pattern_, next_++);
  for (Index begin = all.begin; begin < all.end; begin += piece_) {
    const Range some{begin, std::min(begin + piece_, all.end)};
    const Tile index = machine_->initialize("index", some.size(), 1, Holds::indices);
    Tile values = machine_->initialize(values_->name(), some.size(), 1, kUnset, values_->holds());
    const float* const from = ConstView(words).at(0, 0) + first_word;
    float* const to = View(values).at(0, 0);
    for (Index entry = some.begin; entry < some.end; ++entry) {
      const float* const word =
          from + (packed ? entry - all.begin : pattern_->columns[static_cast<std::size_t>(entry)]);
      to[entry - some.begin] = *word;
      if (machine_->is_heard()) [[unlikely]] {
        tell_map(*machine_, "copy", to + (entry - some.begin), Old::overwritten, {word});
      }
    }
    machine_->write_indices(index, some.size());
    machine_->write(values, values_->row_block(some));
  }
  pointer();
}

}  // namespace redblue
