#include "runtime/observe/devices.hpp"

namespace redblue {

const std::vector<Device>& devices() {
  constexpr Index kKiB = 1024;
  static const std::vector<Device> all = {
      {"gtx1060", 48 * kKiB,
       "shared memory of a block (CUDA C++ Programming Guide, compute capability 6.1)"},
      {"mi300x", 64 * kKiB, "local data share of a compute unit (AMD CDNA 3 white paper)"},
      {"v100", 96 * kKiB,
       "shared memory of an SM (CUDA C++ Programming Guide, compute capability 7.0)"},
      {"rtx4090", 128 * kKiB,
       "L1 and shared memory of an SM (NVIDIA Ada architecture white paper)"},
      {"a100", 192 * kKiB, "L1 and shared memory of an SM (NVIDIA A100 white paper)"},
      {"h100", 256 * kKiB, "L1 and shared memory of an SM (NVIDIA H100 white paper)"},
      {"zen3", 512 * kKiB, "L2 of a core (AMD optimization guide for family 19h)"},
      {"skylake-sp", 1024 * kKiB, "L2 of a core (Intel optimization reference manual)"},
  };
  return all;
}

}  // namespace redblue
