#pragma once
// A shared library that is loaded when it is first needed. It does not slow the start of the
// command, and the command also works where the library is not installed.

#include <string>

namespace redblue {

class LoadedLibrary {
 public:
  // The address of a function. It converts to a pointer of any function type.
  struct Symbol {
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor): it becomes what it is
      return reinterpret_cast<Function*>(address);
    }
    void* address;
  };

  // `file` is the name for the loader, such as libhwloc.so.15. The library stays loaded until the
  // process ends.
  explicit LoadedLibrary(const char* file);

  // Says why the library or a requested function cannot be used. Empty if everything was found.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Returns the address of the function. If it is missing, returns null and sets problem().
  [[nodiscard]] Symbol operator[](const char* function);

 private:
  void* library_;
  std::string problem_;
};

}  // namespace redblue
