// The command as one function for a page: a JSON request in, a JSON answer out.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/cli/caller.hpp"
#include "tools/cli/frame.hpp"

namespace redblue {
namespace {

std::vector<Subcommand> subcommands() {
  return {{"count", "", add_count},
          {"plan", "", add_plan},
          {"bounds", "", add_bounds},
          {"curve", "", add_curve},
          {"list", "", add_list}};
}

// Runs {"arguments": ["count", "forward/flash", ...]}, the words of a command line after its name.
// Returns the exit code, standard output and the lines of standard error.
std::string answer(const char* request) {
  Caller caller;
  const CalledBy called(caller);
  int code = 0;
  try {
    auto words = nlohmann::json::parse(request).at("arguments").get<std::vector<std::string>>();
    std::vector<char*> arguments = {const_cast<char*>("redblue")};
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    code = execute_command(static_cast<int>(arguments.size()), arguments.data(), "redblue", "",
                           subcommands());
  } catch (...) {
    const Failure failure = current_failure();
    caller.words.push_back(failure.what);
    code = failure.code;
  }
  return nlohmann::json{{"code", code}, {"data", caller.data}, {"words", caller.words}}.dump();
}

}  // namespace
}  // namespace redblue

// Memory is the caller's to fill and to read: room() is where it puts a request, and answer()
// returns text that stays until the next call.
extern "C" {

char* room(int size) {
  static std::string request;
  request.assign(static_cast<std::size_t>(size), '\0');
  return request.data();
}

const char* answer(const char* request) {
  static std::string text;
  text = redblue::answer(request);
  return text.c_str();
}
}
