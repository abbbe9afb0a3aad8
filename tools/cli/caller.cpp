#include "tools/cli/caller.hpp"

namespace redblue {
namespace {

thread_local Caller* the_caller = nullptr;

}  // namespace

CalledBy::CalledBy(Caller& caller) {
  the_caller = &caller;
}

CalledBy::~CalledBy() {
  the_caller = nullptr;
}

Caller* caller() {
  return the_caller;
}

}  // namespace redblue
