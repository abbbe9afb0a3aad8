// Devices that the page knows. `fast` is the fast memory of one `part`, in bytes, `bandwidth` of the
// device's memory in bytes a second, and `flops` of matrix products a second, by bytes of a word.
"use strict";
redblue.devices = {
  h100: {
    name: "H100 SXM", part: "SM", fast: 262144, bandwidth: 3.35e12, flops: {2: 989.4e12, 4: 66.9e12},
    source: "L1 and shared memory of an SM, HBM3, dense BF16 on tensor cores, FP32 (NVIDIA H100 white paper and data sheet)",
  },
  a100: {
    name: "A100 80 GB", part: "SM", fast: 196608, bandwidth: 2.039e12, flops: {2: 312e12, 4: 19.5e12},
    source: "L1 and shared memory of an SM, HBM2e, dense BF16 on tensor cores, FP32 (NVIDIA A100 white paper and data sheet)",
  },
  v100: {
    name: "V100 SXM2", part: "SM", fast: 98304, bandwidth: 0.9e12, flops: {2: 125e12, 4: 15.7e12},
    source: "shared memory of an SM (CUDA C++ Programming Guide, compute capability 7.0), HBM2, FP16 on tensor cores, FP32 (NVIDIA V100 data sheet)",
  },
  rtx4090: {
    name: "RTX 4090", part: "SM", fast: 131072, bandwidth: 1.008e12, flops: {2: 165.2e12, 4: 82.6e12},
    source: "L1 and shared memory of an SM, GDDR6X, dense FP16 on tensor cores with FP32 sums, FP32 (NVIDIA Ada architecture white paper)",
  },
  mi300x: {
    name: "MI300X", part: "CU", fast: 65536, bandwidth: 5.3e12, flops: {2: 1307.4e12, 4: 163.4e12},
    source: "local data share of a compute unit, HBM3, dense FP16 matrix, FP32 (AMD CDNA 3 white paper and data sheet)",
  },
  zen3: {
    name: "EPYC 7763", part: "core's L2", fast: 524288, bandwidth: 204.8e9, flops: {2: 5.02e12, 4: 5.02e12},
    source: "L2 of a core (AMD optimization guide for family 19h), 8 channels of DDR4-3200, 64 cores of 2.45 GHz and 32 float32 operations a cycle (AMD product page)",
  },
  "skylake-sp": {
    name: "Xeon 8180", part: "core's L2", fast: 1048576, bandwidth: 128e9, flops: {2: 3.05e12, 4: 3.05e12},
    source: "L2 of a core (Intel optimization reference manual), 6 channels of DDR4-2666, 28 cores of 1.7 GHz with AVX-512 and 64 float32 operations a cycle (Intel product page and specification update)",
  },
};
