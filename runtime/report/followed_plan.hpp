#pragma once
// The description of a traced run: its kernel, sizes, mask and blocks.

#include "kernels/plan.hpp"
#include "runtime/trace/followed_run.hpp"

namespace redblue {

// Returns the description of a run of this plan. The mask is given as the user typed it.
FollowedRun followed_of(const Plan& plan);

}  // namespace redblue
