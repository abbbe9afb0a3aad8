#pragma once
// Runs work on several threads at the same time: on all of them or on none.

#include <functional>
#include <string_view>

#include "memsim/words.hpp"

namespace redblue {

// Calls work(0) on the calling thread, and work(1) to work(count - 1) on one new thread each. All
// threads start before any work begins. `what` names one of them in errors ("rank"). Requires: work
// does not throw. Throws: std::system_error if the system refuses a thread. In that case work was
// never called, and the threads that did start have ended.
void run_together(Index count, std::string_view what, const std::function<void(Index)>& work);

}  // namespace redblue
