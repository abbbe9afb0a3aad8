#include "runtime/ranks/rank_home.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "kernels/kernel.hpp"
#include "runtime/ranks/noted_rows.hpp"
#include "runtime/ranks/transfers.hpp"

namespace redblue {
namespace {

// Returns the layout of a matrix for the kernel of the part, as for an operand on one machine.
StoreLayout layout_for(const RankPart& part, const HomeMatrix& matrix, const Store& store) {
  const Plan& plan = part.plan();
  const auto& window = part.of().kernel().fitting.window;
  return store.layout(
      std::max<Index>(size_of(matrix.there), 1), matrix.cols,
      window == nullptr ? Window{1, matrix.cols} : window(matrix.of, plan.problem, plan.blocks),
      prefetch_of(plan.blocks) > 1);
}

// Creates a file and removes its name at once, so that a killed rank leaves no file.
std::unique_ptr<Backing> on_disk(const std::string& name, const StoreLayout& layout, Store& store) {
  const std::string file = name + std::string(Store::kTemporarySuffix);
  auto made = store.create(file, layout, StoreFile::Life::temporary);
  std::filesystem::remove(store.path(file));
  return store.backing(std::move(made));
}

// Calls visit(rows, columns, words) for the windows of a sequence of words.
template <class Word, class Visit>
void for_windows_of(Index first, std::span<Word> words, Index cols, const Visit& visit) {
  while (!words.empty()) {
    const Index row = first / cols, column = first % cols;
    const Index left = std::ssize(words);
    const Index rows = column == 0 ? std::max<Index>(left / cols, 1) : 1;
    const Index width = std::min(cols - column, left);
    const auto size = static_cast<std::size_t>(rows * width);
    visit(Range{row, row + rows}, Range{column, column + width}, words.first(size));
    words = words.subspan(size);
    first += rows * width;
  }
}

}  // namespace

RankHome::RankHome(const RankPart& part, Store* store) : store_(store) {
  begin(Purpose::inputs);
  for (HomeMatrix& matrix : home_of(part)) {
    Held its;
    if (store != nullptr) {
      its.lying = on_disk(matrix.name, layout_for(part, matrix, *store), *store);
    } else {
      its.memory.resize(
          static_cast<std::size_t>(std::max<Index>(matrix.words().value(), matrix.cols)),
          std::numeric_limits<float>::quiet_NaN());
      its.lying = std::make_unique<BorrowedBacking>(its.memory.data(), matrix.cols);
    }
    its.about = std::move(matrix);
    std::string name = its.about.name;
    held_.emplace(std::move(name), std::move(its));
  }
}

std::vector<std::string> RankHome::handed_over(const RankPart& part) {
  std::vector<std::string> names;
  for (const Signature& result : part.of().kernel().returned(part.plan().problem)) {
    names.emplace_back(result.name);
    names.push_back(dead_name(result.name));
  }
  return names;
}

RankHome::Files RankHome::files(const RankPart& part) {
  const std::vector<std::string> results = handed_over(part);
  Files files;
  for (const HomeMatrix& matrix : home_of(part)) {
    ++files.home;
    files.handed_over += std::ranges::count(results, matrix.name);
  }
  return files;
}

Words RankHome::file_bytes(const RankPart& part, const Store& store, Index heads) {
  const std::vector<std::string> results = handed_over(part);
  Words bytes;
  for (const HomeMatrix& matrix : home_of(part)) {
    const bool stays = std::ranges::find(results, matrix.name) != results.end();
    bytes += StoredMatrix::file_bytes(layout_for(part, matrix, store)) * (stays ? heads : 1);
  }
  return bytes;
}

RankHome::Held& RankHome::held(std::string_view matrix) {
  return held_.find(matrix)->second;
}

const RankHome::Held& RankHome::held(std::string_view matrix) const {
  return held_.find(matrix)->second;
}

const HomeMatrix& RankHome::about(std::string_view matrix) const {
  return held(matrix).about;
}

std::vector<std::string> RankHome::names() const {
  std::vector<std::string> all;
  for (const auto& [name, _] : held_) {
    all.push_back(name);
  }
  return all;
}

Words RankHome::words() const {
  Words words;
  for (const auto& [_, matrix] : held_) {
    words += matrix.about.words();
  }
  return words;
}

void RankHome::keep(const std::vector<std::string>& matrices) {
  std::erase_if(held_, [&](const auto& its) {
    return std::ranges::find(matrices, its.first) == matrices.end();
  });
}

Range RankHome::here(std::string_view matrix, Range rows) const {
  if (rows.size() == 0) {
    return {0, 0};
  }
  const Index first = NumbersWithin(about(matrix).there).below(rows.begin);
  return {first, first + rows.size()};
}

Range RankHome::own(std::string_view matrix) const {
  return here(matrix, about(matrix).own);
}

Index RankHome::lying_rows(std::string_view matrix) const {
  return size_of(about(matrix).there);
}

void RankHome::get(std::string_view matrix, Index first, std::span<float> words) const {
  const Held& its = held(matrix);
  for_windows_of(first, words, its.about.cols, [&](Range rows, Range columns, auto some) {
    its.lying->read(rows, columns, some);
  });
}

void RankHome::put(std::string_view matrix, Index first, std::span<const float> words) {
  const Held& its = held(matrix);
  for_windows_of(first, words, its.about.cols, [&](Range rows, Range columns, auto some) {
    its.lying->write(rows, columns, some);
  });
}

void RankHome::copy(std::string_view matrix, Index first, const RankHome& from,
                    std::string_view other, Range rows) {
  constexpr Index kWords = Index{1} << 18;
  const Index cols = about(matrix).cols;
  std::vector<float> words;
  for (const Range some : blocks(rows.size(), std::max<Index>(kWords / cols, 1))) {
    words.resize(static_cast<std::size_t>(some.size() * cols));
    from.get(other, (rows.begin + some.begin) * cols, words);
    put(matrix, (first + some.begin) * cols, words);
  }
}

std::span<float> RankHome::in_memory(std::string_view matrix, Range words) {
  return std::span(held(matrix).memory)
      .subspan(static_cast<std::size_t>(words.begin), static_cast<std::size_t>(words.size()));
}

void RankHome::begin(Purpose purpose) const {
  if (store_ != nullptr) {
    store_->ledger().begin(purpose);
  }
}

SlowMatrix RankHome::as_matrix(std::string_view matrix, std::string_view called) {
  Held& its = held(matrix);
  return for_kernel(its, std::string(called.empty() ? std::string_view(its.about.name) : called),
                    {0, its.about.rows}, its.about.there, 0);
}

SlowMatrix RankHome::own_as_matrix(std::string_view matrix) {
  Held& its = held(matrix);
  const Range rows = its.about.own;
  return for_kernel(its, its.about.name, rows, {{0, rows.size()}}, own(matrix).begin);
}

SlowMatrix RankHome::for_kernel(Held& its, std::string name, Range rows, Ranges there,
                                Index first) {
  std::unique_ptr<Backing> words =
      std::make_unique<SpreadRows>(*its.lying, std::move(there), first);
  if (noting_) {
    words = std::make_unique<NotedRows>(std::move(words), [&its, rows, this](Range written) {
      note(its.about.name, {rows.begin + written.begin, rows.begin + written.end});
    });
  }
  return SlowMatrix(std::move(name), std::max<Index>(rows.size(), 1), its.about.cols,
                    std::move(words))
      .holding(its.about.of.holds);
}

void RankHome::note(std::string_view matrix, Range rows) {
  if (noting_) {
    held(matrix).changed.push_back(here(matrix, rows));
  }
}

std::map<std::string, Ranges> RankHome::take_changes() {
  std::map<std::string, Ranges> all;
  for (auto& [name, matrix] : held_) {
    if (matrix.changed.empty()) {
      continue;
    }
    Ranges changed = std::exchange(matrix.changed, {});
    std::ranges::sort(changed, {}, &Range::begin);
    Ranges& apart = all[name];
    for (const Range rows : changed) {
      if (!apart.empty() && rows.begin <= apart.back().end) {
        apart.back().end = std::max(apart.back().end, rows.end);
      } else {
        apart.push_back(rows);
      }
    }
  }
  return all;
}

}  // namespace redblue
