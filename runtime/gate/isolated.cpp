#include "runtime/gate/isolated.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <typeinfo>

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/subprocess.hpp"
#include "runtime/system/system_call.hpp"
#include "runtime/text/counts_json.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// Encode numbers that the child sends to its parent. A count beyond 63 bits is null.
Json to_json(const Words& words) {
  return words.overflowed() ? Json() : Json(words.value());
}
Words words_of(const Json& json) {
  constexpr Index kMost = std::numeric_limits<Index>::max();
  return json.is_null() ? Words(kMost) + 1 : Words(json.get<Index>());
}

Json to_json(const RunCounts& counts) {
  return counts_json(counts);
}

Json to_json(const std::vector<PhaseCost>& phases) {
  Json json = Json::array();
  for (const PhaseCost& cost : phases) {
    json.push_back(
        Json::array({cost.path, to_json(cost.reads), to_json(cost.writes), to_json(cost.peak),
                     to_json(cost.flops), to_json(cost.index_reads), to_json(cost.index_writes)}));
  }
  return json;
}
std::vector<PhaseCost> costs_of(const Json& json) {
  std::vector<PhaseCost> phases;
  for (const Json& cost : json) {
    phases.push_back({cost.at(0).get<std::string>(), words_of(cost.at(1)), words_of(cost.at(2)),
                      words_of(cost.at(3)), words_of(cost.at(4)), words_of(cost.at(5)),
                      words_of(cost.at(6))});
  }
  return phases;
}

// Returns the type name of the exception that is being handled.
std::string type_name() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) {
    return "something";
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type->name();
}

template <class Work>
Json outcome_of(const Work& work) {
  const auto thrown = [](const char* kind, const std::string& what) {
    return Json{{"thrown", kind}, {"what", printable(what)}};
  };
  try {
    return {{"result", to_json(work())}};
  } catch (const FastMemoryOverflow& error) {
    Json json = thrown("overflow", error.what());
    json["missing"] = error.missing();
    return json;
  } catch (const FastMemoryTooSmall& error) {
    return thrown("too small", error.what());
  } catch (const CountOverflow& error) {
    return thrown("count", error.what());
  } catch (const std::bad_alloc& error) {
    return thrown("memory", error.what());
  } catch (const std::exception& error) {
    return thrown("other", error.what());
  } catch (...) {
    return thrown("other", fmt::format("it threw {}, which is no std::exception", type_name()));
  }
}

[[noreturn]] void throw_again(const Json& json) {
  const auto kind = json.at("thrown").get<std::string>();
  const auto what = json.at("what").get<std::string>();
  if (kind == "overflow") {
    throw FastMemoryOverflow(what, json.at("missing").get<Index>());
  }
  if (kind == "too small") {
    throw FastMemoryTooSmall(what);
  }
  if (kind == "count") {
    throw CountOverflow(what);
  }
  if (kind == "memory") {
    throw std::bad_alloc();
  }
  throw std::runtime_error(what);
}

std::string ending_of(int status) {
  return WIFSIGNALED(status)
             ? fmt::format("it ended by SIG{} ({})", sigabbrev_np(WTERMSIG(status)),
                           sigdescr_np(WTERMSIG(status)))
             : fmt::format("it ended its process with exit code {}", WEXITSTATUS(status));
}

// The child answers through an unnamed file. A pipe would stay open in children that other threads
// start at the same time.
void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = retry([&] { return ::write(file, text.data(), text.size()); });
    if (put <= 0) {
      return;  // the parent notices the incomplete text
    }
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

template <class Work>
Json in_a_child(const Work& work) {
  const Descriptor said(::memfd_create("redblue", MFD_CLOEXEC));
  if (said.get() < 0) {
    fail("memfd_create");
  }
  std::fflush(nullptr);  // otherwise buffered text would be written twice
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    fail("fork");
  }
  if (child == 0) {
    try {
      if (dies_with(parent)) {
        write_all(said.get(), outcome_of(work).dump(Json::BadText::replaced));
        std::fflush(nullptr);
      }
      ::_exit(0);
      // No memory for the answer. The exception must not unwind into the parent's frames.
    } catch (...) {
      ::_exit(1);
    }
  }
  int status = 0;
  if (retry([&] { return ::waitpid(child, &status, 0); }) < 0) {
    fail("waitpid");
  }
  std::string text;
  ::lseek(said.get(), 0, SEEK_SET);
  read_to_end(said.get(), text);
  if (status != 0 || text.empty()) {
    throw std::runtime_error(ending_of(status));
  }
  Json json = parse_json(text, "what the kernel's process said");
  if (json.contains("thrown")) {
    throw_again(json);
  }
  return json.at("result");
}

}  // namespace

StdoutToStderr::StdoutToStderr() : output_((std::fflush(nullptr), ::dup(STDOUT_FILENO))) {
  if (output_ >= 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
}

StdoutToStderr::~StdoutToStderr() {
  std::fflush(nullptr);
  if (output_ >= 0) {
    ::dup2(output_, STDOUT_FILENO);
    ::close(output_);
  }
}

void in_child(const std::function<void()>& work) {
  static_cast<void>(counted_in_child([&] {
    work();
    return RunCounts{.phases = {}, .total = {.path = {}, .io = {}, .operations = {}}};
  }));
}

RunCounts counted_in_child(const std::function<RunCounts()>& work) {
  return parse_run_counts(in_a_child(work));
}

Subject isolated(Subject subject) {
  subject.run = [run = std::move(subject.run)](const Arguments& arguments) {
    return counted_in_child([&] {
      const StdoutToStderr aside;
      return run(arguments);
    });
  };
  if (subject.formula) {
    subject.formula = [formula = std::move(subject.formula)](const Arguments& arguments) {
      return costs_of(in_a_child([&] {
        const StdoutToStderr aside;
        return formula(arguments);
      }));
    };
  }
  return subject;
}

}  // namespace redblue
