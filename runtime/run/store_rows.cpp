#include "runtime/run/store_rows.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "memsim/host_access.hpp"
#include "runtime/run/resolve.hpp"

namespace redblue {
namespace {

// Makes a matrix over a file, which must outlive it.
SlowMatrix matrix_of(StoreFile& file, const std::string& name) {
  return file.store().matrix(name, std::shared_ptr<StoreFile>(&file, [](StoreFile*) {}));
}

}  // namespace

void for_rows(Index rows, Index cols,
              const std::function<void(Range rows, std::span<float> words)>& visit) {
  constexpr Index kWords = Index{1} << 18;
  std::vector<float> words;
  for (const Range I : blocks(rows, std::clamp<Index>(kWords / cols, 1, rows))) {
    words.resize(static_cast<std::size_t>(I.size() * cols));
    visit(I, words);
  }
}

void generate_rows(const Request& request, const Signature& operand, const Problem& problem,
                   StoreFile& to) {
  SlowMatrix matrix = matrix_of(to, std::string(operand.name));
  for_rows(to.rows(), to.cols(), [&](Range I, std::span<float> words) {
    fill_made(request, operand, problem, 0, I.begin, I.size(), words);
    HostAccess::put(matrix, I, words);
  });
}

void import_rows(const InputFile& reader, const std::string& name, StoreFile& to) {
  SlowMatrix matrix = matrix_of(to, name);
  // Without entries, the matrix still has one word.
  if (reader.rows() == 0) {
    HostAccess::put(matrix, {0, 1}, std::vector<float>(1));
    return;
  }
  // Rows of the operand in one row of the file. More than 1 for stored entries.
  const Index stretch = reader.cols() / to.cols();
  for_rows(reader.rows(), reader.cols(), [&](Range I, std::span<float> words) {
    InputFile::reading(name, [&] { reader.read_rows(I, words); });
    HostAccess::put(matrix, {I.begin * stretch, I.end * stretch}, words);
  });
}

void export_rows(StoreFile& from, OutputFile& to) {
  const SlowMatrix matrix = matrix_of(from, "");
  for_rows(from.rows(), from.cols(), [&](Range I, std::span<float> words) {
    HostAccess::get(matrix, I, words);
    to.append(words);
  });
}

}  // namespace redblue
