#pragma once
// A copy of the environment. An interpreter that calls redblue may change the variables of its
// process at any time, and getenv() on another thread would read them meanwhile.

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redblue {

class Environment {
 public:
  // Copies the variables of the process. Requires: no other thread changes them meanwhile.
  static Environment present();

  // The value; null: it is not set. Lives as long as this object.
  [[nodiscard]] const char* find(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }  // NAME=VALUE

 private:
  std::vector<std::string> all_;
};

// While it lives, this thread works with that environment, which must outlive it.
class WithEnvironment {
 public:
  explicit WithEnvironment(const Environment& environment);
  WithEnvironment(const WithEnvironment&) = delete;
  WithEnvironment& operator=(const WithEnvironment&) = delete;
  ~WithEnvironment();

 private:
  const Environment* before_;
};

// The environment that this thread works with. Without a WithEnvironment it is a copy that the
// first call makes of the process's variables; main() calls it before it starts threads.
const Environment& environment();
inline const char* variable(std::string_view name) {
  return environment().find(name);
}

// The directory for temporary files, by TMPDIR, TMP, TEMP or TEMPDIR, else /tmp. An error, and an
// empty path, where it is no directory.
std::filesystem::path temporary_directory(std::error_code& error);

// For main(), before threads and the first environment(): sets the variable unless it is set.
void set_by_default(const char* name, const char* value);

}  // namespace redblue
