#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "memsim/host_access.hpp"
#include "memsim/store/store.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/operand_home.hpp"
#include "runtime/run/sparse_operands.hpp"
#include "runtime/run/store_room.hpp"
#include "runtime/run/store_rows.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {
namespace {

using File = std::shared_ptr<StoreFile>;
using Apart = StoreFile::Use::Apart;

std::string lasting_name(std::string_view operand) {
  return std::string(operand) + std::string(Store::kSuffix);
}

std::string temporary_name(std::string_view operand) {
  return std::string(operand) + std::string(Store::kTemporarySuffix);
}

Buffers in_memory(const StoreFiles& files) {
  Buffers buffers;
  for (const auto& [name, file] : files) {
    std::vector<float>& buffer = buffers[name];
    buffer.resize(static_cast<std::size_t>(file->rows() * file->cols()));
    HostAccess::get(file->store().matrix(name, file), buffer);
  }
  return buffers;
}

class StoreHome final : public OperandHome {
 public:
  StoreHome(const Request& request, const KernelName& asked)
      : OperandHome(request),
        asked_(asked),
        store_(request.store->directory, request.store->options),
        resumption_(request, store_.path("redblue.checkpoint")) {}

  std::vector<FoundOperand> find(const Readers& readers) override;
  void accept(const RequestedProblem& problem) const override;
  [[nodiscard]] MemoryNeed memory_needed(const Report& report) const override;
  void clear() override;
  void bring(Report& report, const Readers& readers) override;
  void run(Part& part, const RunHook& hook) override;
  void check(const Part& part) override;
  void take(const Part& forward) override;
  [[nodiscard]] Verdict verify(const Report& report,
                               const std::function<void(double)>& step) const override {
    return redblue::verify(report, views_of(in_memory(operands_)), views_of(in_memory(results_)),
                           step);
  }
  void hand_over(Writers& writers) override;
  void finish(Report& report) override;

 private:
  // Returns the lifetime of files that the run creates. A run with checkpoints leaves them when it
  // is stopped.
  [[nodiscard]] StoreFile::Life life() const {
    return resumption_.asked() ? StoreFile::Life::lasting : StoreFile::Life::temporary;
  }
  void refuse_other_forward(const Readers& readers) const;
  void refuse_older_forward() const;
  [[nodiscard]] bool given_with_forward(const Readers& readers) const;
  void bring_operand(const Signature& operand, const Plan& plan, const Readers& readers);
  File open_to_write(const std::string& name, Index rows, Index cols, const StoreFile::Use& use,
                     bool begun);
  void remove_left();
  class CheckpointWorkspace;

  const KernelName asked_;
  Store store_;
  Resumption resumption_;
  StoreFiles operands_, results_;
  std::optional<Index> resumed_at_;  // units done when the run resumed
};

std::vector<FoundOperand> StoreHome::find(const Readers& readers) {
  for (const std::string& name : store_.names()) {
    const std::vector<Signature> given = asked_.given();
    const Signature* operand = find_operand(given, name);
    // A store holds only dense matrices, no sparse ones.
    if (operand != nullptr && !is_sparse(*operand) && !readers.contains(name) &&
        !request_.make.contains(name)) {
      operands_[name] = store_.open(lasting_name(name));
    }
  }
  refuse_other_forward(readers);
  const bool has_O = operands_.contains("O");
  if (has_O != operands_.contains("L") && !readers.contains("O")) {
    throw UsageError(fmt::format("{}: {} has {} without {}: import both, or remove it",
                                 request_.said("store"), store_.directory().string(),
                                 has_O ? "O" : "L", has_O ? "L" : "O"));
  }
  if (!given_with_forward(readers)) {
    for (const std::string_view name : {kO.name, kL.name}) {
      operands_.erase(std::string(name));
    }
  } else if (has_O) {
    refuse_older_forward();
  }
  std::vector<FoundOperand> found;
  for (const auto& [name, file] : operands_) {
    found.push_back({name, file->matrix()->path().string(), file->rows(), file->cols()});
  }
  return found;
}

// Refuses a forward kernel if its O and L would not match the store. They stay in the store, and
// later runs take them for O and L of the store's other operands. So no other operand may come from
// a file or a rule.
void StoreHome::refuse_other_forward(const Readers& readers) const {
  const std::string directory = store_.directory().string();
  const auto has = [&](std::string_view name) {
    return std::filesystem::exists(store_.path(lasting_name(name)));
  };
  const auto refuse_if = [&](bool bad, const std::string& what) {
    if (bad) {
      throw UsageError(fmt::format("{}: {} has {}: take another store", request_.said("store"),
                                   directory, what));
    }
  };
  const Kernel& kernel = *asked_.kernel;
  const bool plain = inputs_of(kernel.pass) == Inputs::plain;
  const bool returns_O = find_operand(kernel.returns, "O") != nullptr;
  const bool O_is_here = returns_O || operands_.contains("O");
  const std::string other = plain ? "A1" : "Q", values = plain ? "V" : "A3";
  refuse_if(O_is_here && has(other),
            other + ", too: O and L are of A1, A2, A3, X and Y, or of Q, K and V");
  refuse_if(O_is_here && asked_.sharing != Sharing::none && has(values),
            values + ": O and L there are of it, and not of shared keys");
  refuse_if(O_is_here && asked_.sharing == Sharing::self && has(std::string(kK.name)),
            "K: O and L there are of it, and not of one source");
  if (!returns_O) {
    refuse_if(find_operand(kernel.returns, "L") != nullptr && has("O"),
              "O: L would stay beside it, and be taken for its own");
    return;
  }
  if (is_linear(kernel.pass) || request_.activation != Activation::softmax) {
    // Kernels take O only together with L, so O alone may stay.
    refuse_if(has("L"), "L: O there is that of softmax attention");
    return;
  }
  if (request_.softmax_scale) {
    throw UsageError(fmt::format(
        "{} {}: O and L would stay in {}, where they are those of 1 / sqrt(d): run without a store",
        request_.said("softmax_scale"), *request_.softmax_scale, directory));
  }
  if (has_mask(request_)) {
    throw UsageError(fmt::format(
        "{} '{}': O and L would stay in {}, where they are those of all pairs: run without a store",
        request_.said("mask"), request_.mask, directory));
  }
  for (const Signature& operand : asked_.given()) {
    const bool sparse = is_sparse(operand), from_file = readers.contains(operand.name);
    const std::string name(operand.name);
    if (has(name) && (sparse || from_file || request_.make.contains(name))) {
      throw UsageError(fmt::format(
          "{} {}: the store {} has another {}, beside which O and L would stay: {}take another "
          "store",
          request_.said(sparse      ? "store"
                        : from_file ? "in"
                                    : "make"),
          name, directory, name, from_file && !sparse ? "import the file, or " : ""));
    }
  }
}

// Returns true if O and L of the store belong to this run's other operands. All operands except dO
// must be in the store, with the default softmax scale and no mask.
bool StoreHome::given_with_forward(const Readers& readers) const {
  return !readers.contains("O") && !request_.softmax_scale && !has_mask(request_) &&
         std::ranges::all_of(asked_.given(), [&](const Signature& operand) {
           return operand.name == "dO" || operands_.contains(operand.name);
         });
}

// Refuses a store in which an operand is newer than O and L, because O and L were computed from an
// older one.
void StoreHome::refuse_older_forward() const {
  const auto written = [&](const std::string& name) {
    return std::filesystem::last_write_time(operands_.at(name)->matrix()->path());
  };
  const auto made = std::min(written("O"), written("L"));
  for (const Signature& operand : asked_.given()) {
    const std::string name(operand.name);
    if (name != "dO" && !made_by_forward(name) && written(name) > made) {
      throw UsageError(fmt::format(
          "{}: {} has O and L from before {} came: remove O.rb and L.rb, or import them anew",
          request_.said("store"), store_.directory().string(), name));
    }
  }
}

void StoreHome::accept(const RequestedProblem& problem) const {
  if (problem.heads) {
    throw UsageError(fmt::format("{}: one problem at a time runs in a store; {} heads are asked",
                                 request_.said("store"), *problem.heads));
  }
}

// Only a verification needs all matrices in memory.
OperandHome::MemoryNeed StoreHome::memory_needed(const Report& report) const {
  const Words arena = 4 * Words(request_.M);
  if (!request_.verify) {
    return {arena, "take a smaller M"};
  }
  const Plan& plan = report.kernel.plan;
  return {arena + matrix_bytes(report) + verification_bytes(find_kernel(plan.kernel), plan.problem),
          "run without --verify, which holds all matrices"};
}

void StoreHome::clear() {
  if (!resumption_.resumes()) {
    remove_left();
  }
}

void StoreHome::remove_left() {
  store_.remove_temporaries();
  WholeFile::remove_left(store_.directory());  // unfinished checkpoints
  resumption_.remove();
}

void StoreHome::bring(Report& report, const Readers& readers) {
  const Words needed = room_needed(store_, report, operands_, *request_.store);
  const Words there = room_left(store_);
  store_.reserve(needed.overflowed() ? needed
                 : needed > there    ? Words(needed.value() - there.value())
                                     : Words(0));
  resumption_.note(text_of_part(request_, report.kernel));
  if (report.forward) {
    resumption_.note("O and L of " + to_string(report.forward->plan));
  }
  for (const Signature& operand : given_of(report.kernel.plan)) {
    if (!made_by_forward(operand.name) || !report.forward) {
      bring_operand(operand, report.kernel.plan, readers);
    }
  }
  if (report.forward && resumption_.state.forward) {
    report.forward->counted = resumption_.state.forward;
    for (const std::string_view name : {kO.name, kL.name}) {
      operands_[std::string(name)] = store_.open(temporary_name(name));
    }
  }
}

// Brings an operand. If the store does not have it, takes it from the earlier run, from a file or
// from a seed.
void StoreHome::bring_operand(const Signature& operand, const Plan& plan, const Readers& readers) {
  const std::string name(operand.name);
  File& file = operands_[name];
  const bool found = file != nullptr;
  resumption_.note(found ? name + " of the store" : text_of_source(request_, name, readers));
  if (!found && resumption_.resumes() && store_.has(temporary_name(name))) {
    try {
      file = store_.open(temporary_name(name));
    } catch (const StoreError&) {  // the earlier run did not complete this file
    }
  }
  if (file == nullptr) {
    file = store_.create(temporary_name(name), input_layout(store_, operand, plan), life());
    const auto reader = readers.find(name);
    if (reader != readers.end()) {
      import_rows(reader->second, name, *file);
    } else {
      generate_rows(request_, operand, plan.problem, *file);
    }
    file->matrix()->close();
  }
  resumption_.note(fmt::format("{} of fingerprint {:016x}", name, file->matrix()->fingerprint()));
}

// Opens a file for writing. `begun`: an earlier run may have written a part of it.
File StoreHome::open_to_write(const std::string& name, Index rows, Index cols,
                              const StoreFile::Use& use, bool begun) {
  return begun && store_.has(name) ? store_.open(name, StoredMatrix::Expect::left_open)
                                   : store_.fresh(name, rows, cols, life(), use);
}

// A workspace in files that stay on disk if the run is stopped.
class StoreHome::CheckpointWorkspace final : public Workspace {
 public:
  // `begun` says whether an earlier run wrote a part of the named matrix that is still needed.
  CheckpointWorkspace(StoreHome& home, const Plan& plan,
                      std::function<bool(std::string_view)> begun)
      : home_(home), plan_(plan), begun_(std::move(begun)) {}
  SlowMatrix matrix(std::string name, Index rows, Index cols,
                    std::optional<Window> mostly) override {
    File& file = files_[name];
    file = home_.open_to_write(temporary_name(name + ".left"), rows, cols,
                               {.mostly = mostly, .apart = apart_left(name, plan_)}, begun_(name));
    return home_.store_.matrix(std::move(name), file);
  }
  [[nodiscard]] const StoreFiles& files() const { return files_; }

 private:
  StoreHome& home_;
  const Plan& plan_;
  std::function<bool(std::string_view)> begun_;
  StoreFiles files_;
};

// In steps, finished rows of a result are flushed to disk after each step. So are large matrices
// that stages leave for each other. A sum over row blocks is in the checkpoint instead, because the
// next row block changes it. Other matrices between stages are in the checkpoint, too.
void StoreHome::run(Part& part, const RunHook& hook) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const auto& split = kernel.schedule.split;
  const bool in_steps = resumption_.asked() && split;
  const bool sums = in_steps && split->reduce != nullptr && !split->begins_anew("g", part.plan, 0);
  Checkpoint& state = resumption_.state;
  const Index first = in_steps ? state.units : 0;
  const auto begun = [&](std::string_view matrix) {
    return first > 0 && !sums && !split->begins_anew(matrix, part.plan, first);
  };
  CheckpointWorkspace checkpointed(*this, part.plan, begun);
  Steps steps{.first = first, .as_results = in_steps ? &checkpointed : nullptr};
  if (first > 0) {
    resumed_at_ = first;
    steps.before = state.counted;
    steps.left = sums ? std::vector<float>() : state.left;
  }

  results_.clear();
  std::vector<SlowMatrix> matrices;
  matrices.reserve(kernel.operands.size() + kernel.returns.size());
  Operands io;
  for (const Signature& operand : given_of(part.plan)) {
    const std::string name(operand.name);
    const bool is_queries = asked_.sharing == Sharing::self && name == kK.name;
    File& file = operands_.at(is_queries ? std::string(kQ.name) : name);
    io.give(matrices.emplace_back(store_.matrix(name, file).holding(operand.holds)));
  }
  for (const Signature& operand : kernel.returned(part.plan.problem)) {
    const std::string name(operand.name);
    File& file = results_[name];
    const Shape& shape = part.plan.problem.shape;
    file = open_to_write(temporary_name(name), operand.rows_of(shape), operand.cols_of(shape),
                         {.apart = resumption_.asked() ? apart(operand, part.plan) : Apart::none},
                         begun(name));
    SlowMatrix& matrix = matrices.emplace_back(store_.matrix(name, file).holding(operand.holds));
    io.take(matrix);
    if (first > 0 && sums) {
      HostAccess::put(matrix, state.left);
    }
  }
  if (in_steps) {
    steps.after = [&](Index done, const RunCounts& counts, std::vector<float> left) {
      store_.ledger().begin(Purpose::checkpoints);
      const auto flush = [](const StoreFiles& files) {
        for (const auto& [name, file] : files) {
          if (file->matrix() != nullptr) {  // null: a later stage writes it
            file->matrix()->flush();
          }
        }
      };
      flush(checkpointed.files());
      if (!sums) {
        flush(results_);
      }
      state.units = done;
      state.counted = counts;
      // A kernel that sums over row blocks returns only the sum.
      state.left = sums ? in_memory(results_).begin()->second : std::move(left);
      resumption_.write();
      store_.ledger().begin(Purpose::kernel);
    };
  }

  store_.ledger().begin(Purpose::kernel);
  StoreWorkspace workspace(store_, request_.store->keep);
  part.counted = run_alone(kernel, part.plan, io, workspace, hook, steps);
  for (const auto& [name, file] : checkpointed.files()) {
    workspace.keep(name, file);
  }
  workspace.finish();
}

void StoreHome::check(const Part& part) {
  store_.ledger().begin(Purpose::results);
  const Kernel& kernel = find_kernel(part.plan.kernel);
  for (const Signature& operand : kernel.returned(part.plan.problem)) {
    const File& file = results_.find(operand.name)->second;
    const SlowMatrix matrix = store_.matrix(std::string(operand.name), file);
    for_rows(file->rows(), file->cols(), [&](Range I, std::span<float> words) {
      HostAccess::get(matrix, I, words);
      check_finite(kernel, operand, part.plan.problem, I.begin, words);
    });
  }
}

void StoreHome::take(const Part& forward) {
  for (const auto& [name, file] : results_) {
    file->matrix()->close();
  }
  operands_.merge(results_);
  resumption_.state.forward = forward.counted;
  resumption_.state.units = 0;
  resumption_.state.left.clear();
  if (resumption_.asked()) {
    resumption_.write();
  }
}

// Keeps each result in the store under its name, and exports it if an output asks for it.
void StoreHome::hand_over(Writers& writers) {
  for (auto& [name, writer] : writers) {
    export_rows(*results_.at(name), writer);
  }
  for (const auto& [name, file] : results_) {
    file->seal();
  }
  // From here on the run cannot resume: if it is stopped between two renames, it must start again.
  resumption_.remove();
  for (const auto& [name, file] : results_) {  // the store never mixes results of two runs
    std::filesystem::remove(store_.path(lasting_name(name)));
  }
  for (const auto& [name, file] : results_) {
    file->stay_as(lasting_name(name));
  }
  for (auto& [name, writer] : writers) {
    writer.commit();
  }
}

void StoreHome::finish(Report& report) {
  StoreReport& stored = report.store.emplace(report_of(store_));
  for (const auto& [name, origin] : report.operands) {
    if (origin == Origin::store) {
      stored.found.push_back(name);
    }
  }
  stored.checkpoints = resumption_.written();
  stored.checkpoint_bytes = resumption_.bytes();
  stored.resumed_at = resumed_at_;
  results_.clear();
  operands_.clear();
  remove_left();
}

}  // namespace

std::unique_ptr<OperandHome> store_home(const Request& request, const KernelName& asked) {
  if (request.threads > 1) {
    throw UsageError(fmt::format("{} {}: one worker runs in a store, and the disk beside it",
                                 request.said("threads"), request.threads));
  }
  return std::make_unique<StoreHome>(request, asked);
}

}  // namespace redblue
