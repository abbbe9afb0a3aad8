#pragma once
// Builds valid and invalid .safetensors files, independently of runtime/run/safetensors.

#include <cstddef>
#include <string>

namespace redblue {

// Returns a file with any header, any stated header length and any data.
inline std::string safetensors_file(const std::string& header, const std::string& data,
                                    std::size_t stated) {
  std::string file;
  for (std::size_t byte = 0; byte < 8; ++byte) {
    file += static_cast<char>(stated >> (8 * byte) & 0xff);
  }
  return file + header + data;
}
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  return safetensors_file(header, data, header.size());
}

// Returns an entry such as "NAME":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}.
inline std::string tensor_entry(const std::string& name, const std::string& dtype,
                                const std::string& shape, std::size_t begin, std::size_t end) {
  return '"' + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + ',' + std::to_string(end) + "]}";
}

}  // namespace redblue
