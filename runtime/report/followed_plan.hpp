#pragma once
// What is said of a run of a kernel that is followed.

#include "kernels/plan.hpp"
#include "runtime/trace/followed_run.hpp"

namespace redblue {

// With the mask, as it was typed, and the blocks.
FollowedRun followed_of(const Plan& plan);

}  // namespace redblue
