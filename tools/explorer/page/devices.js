// Devices that the page knows. `fast` is the fast memory of one `part`, in bytes, as the command
// knows it (runtime/observe/devices). `bandwidth` is that of the device's memory in bytes a second,
// and `flops` of matrix products a second, by bytes of a word.
"use strict";
redblue.devices = {
  // https://glennklockwood.com/garden/processors/h100 (from NVIDIA's white paper)
  h100: {
    name: "H100 SXM", part: "SM", fast: 262144, bandwidth: 3.35e12, flops: {2: 989.4e12, 4: 66.9e12},
    source: "L1 of an SM, of which 228 KiB can be shared memory, HBM3, dense BF16 on tensor cores, FP32 (NVIDIA H100 white paper and data sheet)",
  },
  // https://glennklockwood.com/garden/processors/A100 (from NVIDIA's data sheet)
  a100: {
    name: "A100 80 GB", part: "SM", fast: 196608, bandwidth: 2.039e12, flops: {2: 312e12, 4: 19.5e12},
    source: "L1 of an SM, of which 164 KiB can be shared memory, HBM2e, dense BF16 on tensor cores, FP32 (NVIDIA A100 white paper and data sheet)",
  },
  // https://www.olcf.ornl.gov/for-users/system-user-guides/summit/nvidia-v100-gpus/ (memories),
  // https://developer.nvidia.com/programming-tensor-cores-cuda-9-0 (FP16),
  // https://cvw.cac.cornell.edu/gpu-architecture/gpu-example-tesla-v100/tesla (FP32)
  v100: {
    name: "V100 SXM2", part: "SM", fast: 98304, bandwidth: 0.9e12, flops: {2: 125e12, 4: 15.7e12},
    source: "shared memory of an SM, HBM2 (Summit user guide of Oak Ridge), FP16 on tensor cores (NVIDIA developer blog), FP32 (Cornell virtual workshop)",
  },
  // https://www.thefpsreview.com/gpu-family/nvidia-geforce-rtx-4090-gpu-family-specifications
  // (memories), https://waredb.com/processor/nvidia-geforce-rtx-4090 (flops)
  rtx4090: {
    name: "RTX 4090", part: "SM", fast: 131072, bandwidth: 1.008e12, flops: {2: 165.2e12, 4: 82.6e12},
    source: "L1 of an SM, of which 100 KiB can be shared memory, GDDR6X, dense FP16 on tensor cores with FP32 sums, FP32 (NVIDIA Ada architecture white paper)",
  },
  // https://rocm.docs.amd.com/en/latest/reference/gpu-specs.html (memory of a unit),
  // https://github.com/alpharomercoma/MI300X-vs-H200 (FP16, bandwidth), AMD's data sheet (FP32)
  mi300x: {
    name: "MI300X", part: "CU", fast: 65536, bandwidth: 5.3e12, flops: {2: 1307.4e12, 4: 163.4e12},
    source: "local data share of a compute unit (ROCm's GPU specifications), HBM3, dense FP16 matrix, FP32 (AMD MI300X data sheet)",
  },
  // https://techgage.com/article/amd-epyc-milan-launch-performance/ (cores, clock),
  // https://www.tomshardware.fr/epyc-genoa-la-prise-en-charge-de-12-canaux-de-memoire-ddr5-confirmee/
  zen3: {
    name: "EPYC 7763", part: "core's L2", fast: 524288, bandwidth: 204.8e9, flops: {2: 5.02e12, 4: 5.02e12},
    source: "L2 of a core (AMD optimization guide for family 19h), 8 channels of DDR4-3200, 64 cores of 2.45 GHz and 32 float32 operations a cycle (AMD product page)",
  },
};
