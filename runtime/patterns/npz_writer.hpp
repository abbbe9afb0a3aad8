#pragma once
// Writes a sparse matrix as scipy.sparse.save_npz does, uncompressed: csr, float32, indices of 4
// bytes. The places of all entries are given first, then their values row by row. The file appears
// whole or not at all (runtime/system/whole_file.hpp). Not shared between threads.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "kernels/mask.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {

class NpzWriter {
 public:
  // Requires: single entries. Throws: InputError if the file would have 2^32 bytes or the matrix
  // 2^31 columns; the errors of WholeFile.
  NpzWriter(std::filesystem::path path, const BlockPattern& pattern);
  NpzWriter(NpzWriter&&) noexcept;
  NpzWriter& operator=(NpzWriter&&) noexcept;
  ~NpzWriter();

  // Appends the next values. Ignores values beyond the last entry. The last value finishes the
  // file.
  void append(std::span<const float> values);
  // Throws: std::logic_error unless all values were appended.
  void commit();

 private:
  struct Pending;
  std::unique_ptr<Pending> pending_;
};

}  // namespace redblue
