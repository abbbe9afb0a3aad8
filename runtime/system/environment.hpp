#pragma once
// A copy of the environment variables. redblue reads the copy, because an interpreter that calls it
// may change the variables while another thread is in getenv().

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

  // Returns the value, or null if the variable is not set. The value lives as long as this object.
  [[nodiscard]] const char* find(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& all() const { return all_; }  // "NAME=VALUE"

 private:
  std::vector<std::string> all_;
};

// While this object lives, its thread uses `environment`, which must outlive it.
class WithEnvironment {
 public:
  explicit WithEnvironment(const Environment& environment);
  explicit WithEnvironment(const Environment&& dying) = delete;
  WithEnvironment(const WithEnvironment&) = delete;
  WithEnvironment& operator=(const WithEnvironment&) = delete;
  ~WithEnvironment();

 private:
  const Environment* before_;
};

// Returns the environment of this thread. Without a WithEnvironment it is a copy of the process's
// variables, made by the first call. main() makes that call before it starts threads.
const Environment& environment();
inline const char* variable(std::string_view name) {
  return environment().find(name);
}

// Returns the directory for temporary files: the first of TMPDIR, TMP, TEMP and TEMPDIR that is
// set, else /tmp. If it is not a directory, sets `error` and returns an empty path.
std::filesystem::path temporary_directory(std::error_code& error);

// Sets the variable unless it is set. For main(), before threads and before the first
// environment().
void set_by_default(const char* name, const char* value);

}  // namespace redblue
