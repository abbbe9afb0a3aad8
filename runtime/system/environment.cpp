#include "runtime/system/environment.hpp"

#include <algorithm>
#include <cstdlib>

#include <unistd.h>

namespace redblue {
namespace {

thread_local const Environment* the_environment = nullptr;

}  // namespace

Environment Environment::present() {
  Environment present;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    present.all_.emplace_back(*entry);
  }
  return present;
}

const char* Environment::find(std::string_view name) const {
  const auto found = std::ranges::find_if(all_, [&](std::string_view variable) {
    return variable.size() > name.size() && variable.starts_with(name) &&
           variable[name.size()] == '=';
  });
  return found == all_.end() ? nullptr : found->c_str() + name.size() + 1;
}

WithEnvironment::WithEnvironment(const Environment& environment) : before_(the_environment) {
  the_environment = &environment;
}

WithEnvironment::~WithEnvironment() {
  the_environment = before_;
}

const Environment& environment() {
  if (the_environment != nullptr) {
    return *the_environment;
  }
  static const Environment at_start = Environment::present();
  return at_start;
}

std::filesystem::path temporary_directory(std::error_code& error) {
  std::filesystem::path directory = "/tmp";
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    if (const char* const text = variable(name)) {
      directory = text;
      break;
    }
  }
  const bool there = std::filesystem::is_directory(directory, error);
  if (!there && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  return there ? directory : std::filesystem::path();
}

void set_by_default(const char* name, const char* value) {
  ::setenv(name, value, 0);
}

}  // namespace redblue
