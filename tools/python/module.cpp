// The native half of the Python package: the command as a function, with arrays instead of files.
// The other half, redblue/__init__.py, defines the Python interface.
//
// A call starts a thread for the work and waits for it without the interpreter's lock, so other
// Python threads keep running. While it waits, it checks for signals. If a Python signal handler
// raises, as the handler of Ctrl-C does, the call asks the work to end.

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <cxxabi.h>
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "kernels/nests/nest_kernel.hpp"
#include "kernels/nests/text_nest.hpp"
#include "memsim/errors.hpp"
#include "runtime/report/problem_cost.hpp"
#include "runtime/run/arrays.hpp"
#include "runtime/run/attention.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/nest_file.hpp"
#include "runtime/run/options.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/theory/planner.hpp"
#include "runtime/theory/work.hpp"
#include "tools/cli/caller.hpp"
#include "tools/cli/frame.hpp"
#include "tools/commands/command_tree.hpp"
#include "tools/commands/redblue.hpp"
#include "tools/options/machine.hpp"
#include "tools/python/errors.hpp"
#include "tools/python/own_machine.hpp"

namespace py = pybind11;

namespace redblue {
namespace {

using FloatArray = py::array_t<float, py::array::c_style>;
using Words = std::vector<std::string>;

// Python runs signal handlers in this thread only.
bool is_main_thread() {
  const py::object main = py::module_::import("threading").attr("main_thread")();
  return main.attr("ident").cast<unsigned long>() == PyThread_get_thread_ident();
}

// Lets a worker thread, which must not take Python's lock, have its caller hold the lock. While the
// caller holds it, no thread changes os.environ, and so none changes the environment of the
// process.
class Lending {
 public:
  // Called by the worker.
  void take() {
    turn_.lock();
    std::unique_lock lock(mutex);
    wanted_ = true;
    changed.notify_all();
    changed.wait(lock, [&] { return lent_; });
  }
  void give_back() {
    {
      const std::lock_guard lock(mutex);
      wanted_ = lent_ = false;
      changed.notify_all();
    }
    turn_.unlock();
  }
  // Called by any thread: a line for the caller's callback. A newer line replaces one that was not
  // shown yet.
  void show(std::string_view line) {
    const std::lock_guard lock(mutex);
    line_ = line;
    changed.notify_all();
  }
  // Called by the caller, which holds the mutex.
  [[nodiscard]] bool is_wanted() const { return wanted_; }
  [[nodiscard]] bool has_line() const { return !line_.empty(); }
  std::string take_line() { return std::exchange(line_, {}); }
  // Called by the caller, which holds Python's lock and the mutex. Returns when the worker gives
  // the lock back.
  void lend(std::unique_lock<std::mutex>& lock) {
    lent_ = wanted_;
    changed.notify_all();
    changed.wait(lock, [&] { return !lent_; });
  }

  std::mutex mutex;
  std::condition_variable changed;

 private:
  std::mutex turn_;
  bool wanted_ = false, lent_ = false;
  std::string line_;
};

// Releases Python's lock, which the calling thread holds, and takes it back at the end.
class GivenLock {
 public:
  GivenLock() : state_(PyEval_SaveThread()) {}
  GivenLock(const GivenLock&) = delete;
  GivenLock& operator=(const GivenLock&) = delete;
  ~GivenLock() { take(); }

  // If Python is shutting down, it ends a thread that asks for the lock by unwinding the stack.
  // Unwinding would join other threads, so this thread waits for the end of the process instead.
  void take() noexcept {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      while (true) {
        ::pause();
      }
    }
  }
  void give() { state_ = PyEval_SaveThread(); }

 private:
  PyThreadState* state_;
};

// Calls the callback. If it raises, sets Python's error and returns false.
bool shown(const py::object& show, const std::string& line) {
  try {
    show(line);
    return true;
  } catch (py::error_already_set& error) {
    error.restore();
    return false;
  }
}

// Does the work on another thread. `show` is a callback for lines, or None. Throws: the
// exception of the work; py::error_already_set if a signal handler or the callback raises, after
// `stop` is set and the work has ended.
void work_aside(std::atomic<bool>& stop, Lending& lending, const std::function<void()>& work,
                const py::object& show = py::none()) {
  constexpr std::chrono::milliseconds kBetweenLooks{20};
  std::exception_ptr failure;
  bool has_ended = false, signalled = false;
  // The worker must not ask for Python's lock: a Python that is shutting down never grants it.
  const bool hears_signals = is_main_thread();
  {
    GivenLock python;
    std::thread worker;
    try {
      worker = std::thread([&] {
        try {
          work();
        } catch (...) {
          failure = std::current_exception();
        }
        const std::lock_guard lock(lending.mutex);
        has_ended = true;
        lending.changed.notify_all();
      });
    } catch (const std::system_error& error) {
      failure = std::make_exception_ptr(no_thread("a call of redblue", error.code()));
      has_ended = true;
    }
    std::unique_lock lock(lending.mutex);
    const auto calls = [&] { return has_ended || lending.is_wanted() || lending.has_line(); };
    while (!has_ended) {
      if (!hears_signals) {
        lending.changed.wait(lock, calls);
      } else {
        lending.changed.wait_for(lock, kBetweenLooks, calls);
      }
      if (!has_ended && (lending.is_wanted() || lending.has_line() || !signalled)) {
        const std::string line = lending.take_line();
        lock.unlock();
        python.take();
        if (!signalled && !line.empty()) {
          signalled = !shown(show, line);
        }
        if (hears_signals && !signalled) {
          signalled = PyErr_CheckSignals() != 0;
        }
        stop = signalled;
        lock.lock();
        lending.lend(lock);
        python.give();
      }
    }
    lock.unlock();
    if (worker.joinable()) {
      worker.join();
    }
  }
  if (signalled) {
    throw py::error_already_set();
  }
  if (failure != nullptr) {
    set_error(failure);
    throw py::error_already_set();
  }
}

// Returns whether a call must run alone: it chooses the vector instructions of the whole process,
// opens its counters, or times kernels. Other calls may run at the same time.
bool must_be_alone(const Words& words, const Environment& environment) {
  const char* simd = environment.find("REDBLUE_SIMD");
  bool alone = simd != nullptr && *simd != '\0';
  for (const std::string& word : words) {
    alone = alone || word == "info" || word == "measure" || word == "calibrate" || word == "tune" ||
            word.starts_with("--simd");
  }
  return alone;
}

std::shared_timed_mutex calls;

template <class Lock>
Lock locked(const std::atomic<bool>& stop) {
  Lock lock(calls, std::defer_lock);
  while (!lock.try_lock_for(std::chrono::milliseconds(20))) {
    if (stop) {
      throw std::runtime_error("ended before it began");
    }
  }
  return lock;
}

void in_turn(bool alone, const std::atomic<bool>& stop, const std::function<void()>& work) {
  if (!alone) {
    const auto lock = locked<std::shared_lock<std::shared_timed_mutex>>(stop);
    work();
    return;
  }
  const auto lock = locked<std::unique_lock<std::shared_timed_mutex>>(stop);
  struct Restored {
    ~Restored() { use_simd_target(simd); }
    std::string simd = simd_target();
  } const restored;
  work();
}

std::vector<Index> shape_of(const py::array& array) {
  return {array.shape(), array.shape() + array.ndim()};
}

// Returns an array that owns the words.
py::array to_array(Arrays::Taken taken) {
  auto* words = new std::vector<float>(std::move(taken.words));
  const py::capsule owner(words, [](void* its) { delete static_cast<std::vector<float>*>(its); });
  return FloatArray(taken.shape, words->data(), owner);
}

// Returns the first mark from `at` on that is set, or that is not, else `end`. Looks at eight marks
// at once.
Index next_mark(const unsigned char* marks, bool set, Index at, Index end) {
  constexpr Index kAtOnce = sizeof(std::uint64_t);
  constexpr std::uint64_t kLowest = 0x0101010101010101, kHighest = kLowest << 7;
  for (; at + kAtOnce <= end; at += kAtOnce) {
    std::uint64_t some = 0;
    std::memcpy(&some, marks + at, sizeof some);
    // If a byte is 0, the lowest bit of `zeros` is in the first such byte.
    const std::uint64_t zeros = (some - kLowest) & ~some & kHighest;
    if (const std::uint64_t found = set ? some : zeros; found != 0) {
      return at + std::countr_zero(found) / 8;
    }
  }
  while (at < end && (marks[at] != 0) != set) {
    ++at;
  }
  return at;
}

// Returns the mask of the pairs that are marked, row by row.
Mask mask_of_marks(Index queries, Index keys, const unsigned char* marks) {
  std::vector<MaskRun> runs;
  std::vector<MaskSegment> live;
  for (Index query = 0; query < queries; ++query, marks += keys) {
    live.clear();
    for (Index begin = next_mark(marks, true, 0, keys); begin < keys;) {
      const Index end = next_mark(marks, false, begin, keys);
      live.push_back({{begin}, {end}});
      begin = next_mark(marks, true, end, keys);
    }
    runs.push_back({{query, query + 1}, live});
  }
  return {queries, keys, std::move(runs), MaskIndex::pattern()};
}

// Returns the mask: a text, a matrix of bool, or the offsets of documents.
std::variant<Mask, std::string> mask_of(const py::object& mask) {
  if (mask.is_none()) {
    return Mask();
  }
  if (py::isinstance<py::str>(mask)) {
    return mask.cast<std::string>();
  }
  const auto array = mask.cast<py::array>();
  if (array.ndim() == 1) {
    const auto offsets = mask.cast<py::array_t<Index, py::array::c_style>>();
    const std::vector<Index> ends(offsets.data(), offsets.data() + offsets.size());
    return Mask::documents(ends, ends).called("documents");
  }
  const auto pairs = mask.cast<py::array_t<bool, py::array::c_style>>();
  return mask_of_marks(pairs.shape(0), pairs.shape(1),
                       reinterpret_cast<const unsigned char*>(pairs.data()))
      .called("pattern");
}

struct Called {
  int code;
  std::string data, table, csv;
  Words words;
  std::map<std::string, py::array> results;
};

// Runs a command. `words` are the command line after the program's name. With `returns`, results
// come back as arrays. `mask` stands for the text of --mask, and `show` is called with lines about
// the progress; both may be None. Requires: the caller may write to the arrays of `out`, even if
// NumPy marks them read-only. NumPy before 2.1 marks all arrays from DLPack read-only.
Called call(const Words& words, const std::map<std::string, FloatArray>& in,
            const std::map<std::string, FloatArray>& out, bool returns, const py::object& mask,
            const py::object& show) {
  Arrays arrays;
  for (const auto& [name, array] : in) {
    arrays.in[name] = {shape_of(array), {array.data(), static_cast<std::size_t>(array.size())}};
  }
  for (const auto& [name, array] : out) {
    arrays.out[name] = {shape_of(array),
                        {const_cast<float*>(array.data()), static_cast<std::size_t>(array.size())}};
  }
  Words all = {"redblue"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) {
    argv.push_back(word.data());
  }
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);

  const Environment present = Environment::present();  // needs Python's lock
  Lending lending;
  Caller caller;
  caller.hold_environment = [&] { lending.take(); };
  caller.release_environment = [&] { lending.give_back(); };
  if (!mask.is_none()) {
    caller.mask = std::get<Mask>(mask_of(mask));
  }
  if (!show.is_none()) {
    caller.show = [&](std::string_view line) { lending.show(line); };
  }
  int code = 0;
  const auto work = [&] {
    const CalledBy called(caller);
    const WithEnvironment with(present);
    in_turn(must_be_alone(words, present), caller.stop, [&] {
      code = execute_command(argc, argv.data(), "redblue", kDescription,
                             redblue_subcommands(nullptr, returns ? &arrays : nullptr));
    });
  };
  work_aside(caller.stop, lending, work, show);
  Called ended{code,
               std::move(caller.data),
               std::move(caller.table),
               std::move(caller.csv),
               std::move(caller.words),
               {}};
  for (auto& [name, taken] : arrays.results) {
    ended.results[name] = to_array(std::move(taken));
  }
  return ended;
}

// Runs the command as a program does: with the streams and signals of this process. Returns the
// exit code. Requires: the process runs nothing else.
int run_as_program(Words words) {
  words.insert(words.begin(), "redblue");
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  prepare_environment();
  return run_redblue(static_cast<int>(words.size()), argv.data());
}

// Returns a subcommand as a dict: its name, help, arguments, options and subcommands.
py::dict described(const CommandTree& tree) {
  py::list arguments, options, subcommands;
  for (const CommandArgument& argument : tree.arguments) {
    arguments.append(py::dict(py::arg("name") = argument.name, py::arg("help") = argument.help,
                              py::arg("required") = argument.required,
                              py::arg("several") = argument.several));
  }
  for (const CommandOption& option : tree.options) {
    if (const std::string& flag = option.names.back(); flag != "--help" && flag != "--version") {
      options.append(py::dict(py::arg("flag") = flag, py::arg("help") = option.help,
                              py::arg("repeats") = option.repeats,
                              py::arg("switch") = option.type.empty(),
                              py::arg("value") = option.type));
    }
  }
  for (const CommandTree& subcommand : tree.subcommands) {
    subcommands.append(described(subcommand));
  }
  return py::dict(py::arg("name") = tree.path.back(), py::arg("help") = tree.help,
                  py::arg("arguments") = arguments, py::arg("options") = options,
                  py::arg("subcommands") = subcommands);
}

py::object commands() {
  return described(
      command_tree("redblue", kDescription, redblue_subcommands(nullptr, nullptr)))["subcommands"];
}

// Returns the names of all operands that any kernel takes.
std::set<std::string> operands() {
  std::set<std::string> all;
  for (const KernelName& name : all_kernel_names()) {
    for (const Signature& operand : name.given()) {
      all.emplace(operand.name);
    }
  }
  return all;
}

// Throws a UsageError of the package.
void check_text_of_mask(const std::string& spec) {
  saying([&] { check_mask(spec, "mask '" + printable(spec) + "'"); });
}

// Returns the mask as a matrix of bool. The numbers of queries and keys are texts in the form of
// the command line.
py::array_t<bool> pairs_of(const std::string& spec, const std::string& n_text,
                           const std::string& m_text) {
  Index n = 0, m = 0;
  Mask mask;
  const Environment present = Environment::present();
  std::atomic<bool> never = false;
  Lending lending;
  work_aside(never, lending, [&] {
    const WithEnvironment with(present);
    n = parse_size(n_text, "n");
    m = parse_size(m_text, "m");
    mask = parse_mask(spec, {n, m, 1, 1}, "mask '" + spec + "'");
  });
  py::array_t<bool> pairs({n, m});
  auto live = pairs.mutable_unchecked<2>();
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < m; ++j) {
      live(i, j) = mask.full();
    }
    if (!mask.full()) {
      mask.each_range(i, {0, m}, [&](Range keys) {
        for (Index j = keys.begin; j < keys.end; ++j) {
          live(i, j) = true;
        }
      });
    }
  }
  return pairs;
}

// attention() and gradients() call runtime/run/attention.hpp on arrays of heads x rows x columns.
// Require: shapes conform, and arrays are contiguous (redblue/calls.py sees to both).

AttentionProblem problem_of(const FloatArray& Q, const FloatArray& K, const FloatArray& V,
                            const py::object& mask, std::optional<float> scale) {
  return {.shape = {Q.shape(1), K.shape(1), Q.shape(2), V.shape(2)},
          .heads = Q.shape(0),
          .kv_heads = K.shape(0),
          .mask = mask_of(mask),
          .softmax_scale = scale};
}

Objective objective_of(const std::string& text) {
  for (const Objective objective : {Objective::words, Objective::balanced, Objective::time}) {
    if (text == to_string(objective)) {
      return objective;
    }
  }
  throw UsageError("objective '" + text + "': expected words, balanced or time");
}

AttentionOptions options_of(const py::object& M, Index threads, const std::string& kernel,
                            const std::string& objective) {
  AttentionOptions options{
      .threads = threads, .kernel = kernel, .objective = objective_of(objective)};
  if (!M.is_none()) {
    const FastMemory size = parse_fast_memory(M.cast<std::string>(), "M");
    if (const auto* part = std::get_if<CachePart>(&size)) {
      options.M = words_of_cache(*part, threads);
    } else if (const auto* words = std::get_if<Index>(&size)) {
      options.M = *words;
    }
  }
  return options;
}

std::span<const float> words_of(const FloatArray& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}
// Requires: the array may be written to.
std::span<float> result_words(FloatArray& array) {
  return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

// Returns the work. If it chooses M, it finds the answers of `redblue tune` in Python's
// environment. Requires: Python's lock.
std::function<void()> choosing(const AttentionOptions& options, std::function<void()> work) {
  if (options.M) {
    return work;
  }
  read_machine();
  return [present = Environment::present(), work = std::move(work)] {
    const WithEnvironment with(present);
    work();
  };
}

// Runs the call in this thread if it is short and need not wait for a call that must be alone. Else
// runs it aside, where Ctrl-C ends it.
void compute(const AttentionProblem& problem, AttentionOptions& options,
             const std::function<void()>& work) {
  constexpr double kShort = 1e8;  // multiply-adds of a product: some milliseconds
  const Shape& shape = problem.shape;
  const bool is_short = static_cast<double>(shape.n) * static_cast<double>(shape.m) *
                            static_cast<double>(std::max(shape.d, shape.dv)) *
                            static_cast<double>(problem.heads) <
                        kShort;
  if (std::shared_lock turn(calls, std::defer_lock); is_short && turn.try_lock()) {
    const py::gil_scoped_release released;
    work();
    return;
  }
  std::atomic<bool> stop = false;
  options.stop = [&] {
    if (stop) {
      throw std::runtime_error("ended by a signal");
    }
  };
  Lending lending;
  work_aside(stop, lending, [&] { in_turn(false, stop, work); });
}

void attention_of(const FloatArray& Q, const FloatArray& K, const FloatArray& V, FloatArray& O,
                  FloatArray& L, const py::object& mask, std::optional<float> scale,
                  const py::object& M, Index threads, const std::string& kernel,
                  const std::string& objective) {
  const AttentionProblem problem = problem_of(Q, K, V, mask, scale);
  const AttentionOperands given{.Q = words_of(Q), .K = words_of(K), .V = words_of(V)};
  const AttentionResults results{.O = result_words(O), .L = result_words(L)};
  saying([&] {
    AttentionOptions options = options_of(M, threads, kernel, objective);
    compute(problem, options,
            choosing(options, [&] { attention(problem, given, results, options); }));
  });
}

void gradients_of(const FloatArray& Q, const FloatArray& K, const FloatArray& V,
                  const FloatArray& dO, const std::optional<FloatArray>& O,
                  const std::optional<FloatArray>& L, FloatArray& dQ, FloatArray& dK,
                  FloatArray& dV, const py::object& mask, std::optional<float> scale,
                  const py::object& M, Index threads, const std::string& kernel,
                  const std::string& objective) {
  const AttentionProblem problem = problem_of(Q, K, V, mask, scale);
  GradientOperands given{.Q = words_of(Q), .K = words_of(K), .V = words_of(V), .dO = words_of(dO)};
  if (O && L) {
    given.O = words_of(*O);
    given.L = words_of(*L);
  }
  const GradientResults results{
      .dQ = result_words(dQ), .dK = result_words(dK), .dV = result_words(dV)};
  saying([&] {
    AttentionOptions options = options_of(M, threads, kernel, objective);
    compute(problem, options,
            choosing(options, [&] { gradients(problem, given, results, options); }));
  });
}

// cost() calls runtime/report/problem_cost.hpp. Words are totals of all heads.

// Returns the width of values that are the first columns of the keys, and drops it from the
// request. Kernels compute no such values, but their formulas hold.
std::optional<Index> taken_prefix(Request& request) {
  if (request.sharing != Sharing::kv || !request.dv || !request.d || *request.dv == *request.d) {
    return std::nullopt;
  }
  if (*request.dv > *request.d || request.pass != Pass::attention) {
    throw UsageError(fmt::format("dv {}: with sharing kv, values are {}", *request.dv,
                                 request.pass == Pass::attention
                                     ? fmt::format("columns of keys of width d = {}", *request.d)
                                     : "keys; a part of them is for problem attention"));
  }
  return std::exchange(request.dv, std::nullopt);
}

struct AskedCost {
  Request request;
  Task task;
};
AskedCost asked_cost(const std::vector<std::pair<std::string, std::string>>& given,
                     const py::object& mask) {
  Settings settings(Spelling::key);
  for (const auto& [key, text] : given) {
    settings.add(key, text);
  }
  AskedCost asked;
  Request& request = asked.request;
  fill(settings, machine_at_hand(), request);
  const std::optional<Index> prefix = taken_prefix(request);
  request.asked_as = fmt::format("problem {}", to_string(*request.pass));
  request.kernel = fmt::format("{}/auto", to_string(*request.pass));
  const std::variant<Mask, std::string> pairs = mask_of(mask);
  if (const auto* const text = std::get_if<std::string>(&pairs)) {
    request.mask = *text;
  } else {
    request.mask_of_caller = std::get<Mask>(pairs);
  }
  const RequestedProblem found = requested_problem(request, requested_kernel(request), {});
  asked.task = {.pass = *request.pass,
                .problem = found.problem,
                .memory = request.memory_of_plan(),
                .heads = found.kv_heads()};
  if (prefix) {
    asked.task.problem.shape.dv = *prefix;
  }
  if (request.M == 0) {
    asked.task.memory.M = 1;  // bounds need one; they are not asked for
  }
  return asked;
}

py::object moved_of(const AskedCost& asked, const std::string& tiles) {
  if (asked.request.M == 0) {
    return py::none();
  }
  const CountedTiles moved = counted_tiles(asked.task, tiles);
  py::dict blocks;
  for (const auto& [name, size] : moved.choice.plan.blocks) {
    blocks[py::str(name)] = size;
  }
  return py::dict(py::arg("M") = asked.request.M, py::arg("words") = moved.choice.words.value(),
                  py::arg("bound_words") = moved.bound.words, py::arg("bound") = moved.bound.name,
                  py::arg("kernel") = spelled(moved.choice.plan), py::arg("blocks") = blocks,
                  py::arg("beyond_M") = moved.too_many);
}

py::object cost_of(const std::vector<std::pair<std::string, std::string>>& given,
                   const py::object& mask, const std::string& tiles) {
  py::object found;
  saying([&] {
    const Environment present = Environment::present();
    const WithEnvironment with(present);
    const AskedCost asked = asked_cost(given, mask);
    const LeastWork work = work_of(asked.task);
    const OperandWords operands = operand_words(asked.task);
    found = py::dict(py::arg("word") = asked.request.word_bytes.value_or(kFloatBytes),
                     py::arg("flops") = work.flops.value(), py::arg("exps") = work.exps.value(),
                     py::arg("compulsory") = operands.compulsory.value(),
                     py::arg("operands") = operands.all.value(),
                     py::arg("moved") = moved_of(asked, tiles));
  });
  return found;
}

// Loads a nest, and returns the name of its kernel: the given one, or the one of its header. Adds a
// word or a number to the name of a kernel of redblue, and of another text. Throws: NestError.
// Requires: Python's lock.
std::string load(const std::string& text, std::string name) {
  static std::map<std::string, std::string> texts;  // by name
  if (name.empty()) {
    name = parse_nest(text, "nest").name;
  }
  const bool is_option = name.starts_with('-');
  if (is_option || find_auto(name) != nullptr ||
      (!texts.contains(name) && parse_kernel_name(name))) {
    name = "nest " + name;
  }
  const std::string first = name;
  for (int number = 2; names_nest(name) || texts.try_emplace(name, text).first->second != text;
       ++number) {
    name = fmt::format("{} {}", first, number);
  }
  return std::string(load_nest(name, text, "nest").name);
}

}  // namespace
}  // namespace redblue

PYBIND11_MODULE(_redblue, module) {
  using redblue::Called;
  redblue::environment();  // the import holds Python's lock, so nobody changes the variables now
  module.attr("version") = redblue::build_info::kVersion;
  py::class_<Called>(module, "Called")
      .def_readonly("code", &Called::code)
      .def_readonly("data", &Called::data)
      .def_readonly("table", &Called::table)
      .def_readonly("csv", &Called::csv)
      .def_readonly("words", &Called::words)
      .def_readonly("results", &Called::results);
  module.def("call", &redblue::call);
  module.def("run_as_program", &redblue::run_as_program);
  module.def("commands", &redblue::commands);
  module.def("operands", &redblue::operands);
  module.def("check_mask", &redblue::check_text_of_mask);
  module.def("pairs_of", &redblue::pairs_of);
  module.def("load_nest", &redblue::load);
  module.def("attention", &redblue::attention_of);
  module.def("gradients", &redblue::gradients_of);
  module.def("cost", &redblue::cost_of);
  redblue::add_machine(module);
}
