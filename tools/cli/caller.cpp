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

UnchangedEnvironment::UnchangedEnvironment() {
  if (the_caller != nullptr && the_caller->hold_environment) {
    the_caller->hold_environment();
  }
}

UnchangedEnvironment::~UnchangedEnvironment() {
  if (the_caller != nullptr && the_caller->release_environment) {
    the_caller->release_environment();
  }
}

}  // namespace redblue
