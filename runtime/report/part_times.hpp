#pragma once
// The last line of a report: does the traffic matter? It compares three times: of the words at a
// bandwidth, of the flops, and of the exponentials.

#include <optional>
#include <string>
#include <vector>

#include "runtime/report/device_figures.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {

// The work of a kernel. The words of all workers together move at the bandwidth of one core: how
// much more several cores have together is not known. Workers share the flops and the exponentials.
struct Work {
  WordsOfLevels moved;
  double flops = 0, exps = 0;
  Index workers = 1;
};

// Adds the flops and the exponentials of this plan for `heads` problems. There is one exponential
// for each live pair, and two if the kernel computes p twice. A forward pass may run on fewer
// workers than the rest.
void add_operations(Work& work, const Plan& plan, Index heads,
                    std::optional<Index> workers = std::nullopt);

// The seconds of each part, and the origin of the speeds.
struct PartTimes {
  double words = 0, flops = 0;
  std::optional<double> exps = {};  // nullopt: the speed is not known
  std::string from;
};

// Returns nullopt if the speed of words or flops is not known. Levels move words at the same time,
// so the slowest level counts. `memory` has the levels.
std::optional<PartTimes> part_times(const Work& work, const Rates& rates, const Memory& memory);
std::optional<PartTimes> part_times(const Work& work, const Device& device);
// Same, by the device if it has the figures, else by a calibration of this machine unless the
// device is another one.
std::optional<PartTimes> part_times(const Work& work, const std::optional<Device>& device,
                                    const std::optional<Rates>& calibration, const Memory& memory);

Description describe(const PartTimes& times);

}  // namespace redblue
