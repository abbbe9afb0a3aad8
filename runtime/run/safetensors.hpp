#pragma once
// Reads a tensor of a .safetensors file (huggingface.co/docs/safetensors). The file has three
// parts: the header's length in 8 bytes, a header in JSON, and the bytes of all tensors. The header
// gives each tensor's dtype, shape and place.
//
// The reader checks the whole header, and reads the bytes of one tensor only. It refuses a file if
// the header breaks the format: a key occurs twice, a dtype is unknown, or a tensor's bytes do not
// fit its shape. Tensors must not overlap, and every byte must belong to a tensor.

#include <filesystem>

#include "runtime/system/array_reader.hpp"

namespace redblue {

// Supports F16, BF16, F32 and F64, little-endian, C order, in one to three dimensions.
class TensorReader : public ArrayReader {
 public:
  // Requires: tensor_path(path).
  // Throws: std::system_error; InputError with the file, the tensor and the fault.
  explicit TensorReader(const std::filesystem::path& path);
};

}  // namespace redblue
