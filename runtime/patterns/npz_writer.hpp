#pragma once
// A sparse matrix as scipy.sparse.save_npz writes it, uncompressed: csr, float32, indices of 4
// bytes. Where entries are, is known from the start; their values come row by row. The file appears
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
  // Requires: single entries. Throws: InputError where the file would have 2^32 bytes, or the
  // matrix 2^31 columns; as WholeFile.
  NpzWriter(std::filesystem::path path, const BlockPattern& pattern);
  NpzWriter(NpzWriter&&) noexcept;
  NpzWriter& operator=(NpzWriter&&) noexcept;
  ~NpzWriter();

  // The next values; what comes after the last of them is left out. The last finishes the file.
  void append(std::span<const float> values);
  // Throws: std::logic_error unless all values were appended.
  void commit();

 private:
  struct Pending;
  std::unique_ptr<Pending> pending_;
};

}  // namespace redblue
