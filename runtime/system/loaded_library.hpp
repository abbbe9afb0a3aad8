#pragma once
// A shared library that is loaded when it is first needed: no start waits for it, and the command
// works where it is not installed.

#include <string>

namespace redblue {

class LoadedLibrary {
 public:
  // A function of the library, whatever its type.
  struct Symbol {
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor): it becomes what it is
      return reinterpret_cast<Function*>(address);
    }
    void* address;
  };

  // `file`: its name for the loader, as libhwloc.so.15. It stays until the process ends.
  explicit LoadedLibrary(const char* file);

  // Why something of it cannot be used; empty where all that was asked for is there.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Null, and a problem, where it is not there.
  [[nodiscard]] Symbol operator[](const char* function);

 private:
  void* library_;
  std::string problem_;
};

}  // namespace redblue
