#include "runtime/system/loaded_library.hpp"

#include <dlfcn.h>

namespace redblue {
namespace {

// Returns such text as "libpapi.so.7.0: cannot open shared object file: No such file or directory".
std::string loading_problem() {
  const char* text = ::dlerror();
  return text == nullptr ? "the loader says nothing" : text;
}

}  // namespace

// RTLD_GLOBAL, because plugins of hwloc look up its functions among the global symbols.
LoadedLibrary::LoadedLibrary(const char* file) : library_(::dlopen(file, RTLD_LAZY | RTLD_GLOBAL)) {
  if (library_ == nullptr) {
    problem_ = loading_problem();
  }
}

LoadedLibrary::Symbol LoadedLibrary::operator[](const char* function) {
  void* const address = library_ == nullptr ? nullptr : ::dlsym(library_, function);
  if (address == nullptr && problem_.empty()) {
    problem_ = loading_problem();
  }
  return {address};
}

}  // namespace redblue
