#pragma once
// A tensor of a .safetensors file (huggingface.co/docs/safetensors): 8 bytes of a length, so many
// of JSON that says of each tensor its dtype, shape and bytes, and then the bytes of all.
//
// The whole header is checked, of the bytes those of one tensor are read. A file is refused where
// its header is not what the format says: a key twice, an unknown dtype, bytes that do not fit the
// shape, that overlap, or that no tensor has.

#include <filesystem>

#include "runtime/system/array_reader.hpp"

namespace redblue {

// F16, BF16, F32 and F64; little-endian, C order; 1-D, 2-D and 3-D.
class TensorReader : public ArrayReader {
 public:
  // Requires: tensor_path(path).
  // Throws: std::system_error; InputError with the file, the tensor and the fault.
  explicit TensorReader(const std::filesystem::path& path);
};

}  // namespace redblue
