#include "runtime/run/stored_run.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/attention.hpp"
#include "memsim/host_access.hpp"
#include "memsim/store/store.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/checkpoint.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/verification.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {
namespace {

using File = std::shared_ptr<StoreFile>;
using Files = std::map<std::string, File, std::less<>>;

// Rows of about a MiB, one range after the other.
template <class Visit>
void for_rows(Index rows, Index cols, const Visit& visit) {
  constexpr Index kWords = Index{1} << 18;
  std::vector<float> words;
  for (const Range I : blocks(rows, std::clamp<Index>(kWords / cols, 1, rows))) {
    words.resize(static_cast<std::size_t>(I.size() * cols));
    visit(I, std::span(words));
  }
}

SlowMatrix matrix_of(StoreFile& file, const std::string& name) {
  return file.store().matrix(name, std::shared_ptr<StoreFile>(&file, [](StoreFile*) {}));
}

// All words of a matrix, from what `fill` puts in for a range of rows.
template <class Fill>
void make_rows(const std::string& name, StoreFile& to, const Fill& fill) {
  SlowMatrix matrix = matrix_of(to, name);
  for_rows(to.rows(), to.cols(), [&](Range I, std::span<float> words) {
    fill(I, words);
    HostAccess::put(matrix, I, words);
  });
}

class StoredRun {
 public:
  StoredRun(const Request& request, const Around& around, const Progress* progress)
      : request_(request),
        asked_(kernel_of(request)),
        around_(around),
        progress_(progress),
        store_(request.store->directory, request.store->options) {}

  Report run();

 private:
  [[nodiscard]] bool resumes() const { return request_.store->resume; }
  [[nodiscard]] std::filesystem::path checkpoint_path() const {
    return store_.path("redblue.checkpoint");
  }
  static std::string temporary(std::string_view name) {
    return std::string(name) + std::string(Store::kTemporarySuffix);
  }
  // Of files that this run makes: who may be resumed leaves them when it ends early.
  [[nodiscard]] StoreFile::Life life() const {
    return resumes() ? StoreFile::Life::lasting : StoreFile::Life::temporary;
  }

  void open_found(const Readers& readers);
  void refuse_older_results() const;
  [[nodiscard]] Words memory_needed(const Report& report, const Kernel& kernel) const;
  [[nodiscard]] Words bytes_needed(const Report& report, const Kernel& kernel) const;
  [[nodiscard]] Words bytes_there() const;
  [[nodiscard]] StoreLayout input_layout(const Signature& operand, const Plan& plan) const;
  void bring_inputs(const Report& report, const Readers& readers);
  [[nodiscard]] std::string origin_of(std::string_view name, const Readers& readers) const;
  File bring(const Signature& operand, const Plan& plan, const Readers& readers);
  void go_on(const Report& report);
  void remove_left();
  void keep_checkpoint();
  Files run_part(Part& part, bool is_forward);
  void run_forward(Part& forward);
  void hand_over(const Files& results, Writers& writers);
  void check_results(const Kernel& kernel, const Shape& shape, const Files& results);
  [[nodiscard]] Buffers in_memory(const Files& files) const;
  void tell(Report& report);

  const Request& request_;
  const KernelName asked_;
  const Around& around_;
  const Progress* progress_;
  Store store_;
  Files operands_;
  std::vector<std::string> found_;
  std::map<std::string, std::string> origins_;  // of operands that this run brought
  Checkpoint checkpoint_;
  bool from_checkpoint_ = false;
  std::optional<Index> resumed_at_;
  Index checkpoints_ = 0, checkpoint_bytes_ = 0;
};

// Operands that the store has, and nothing else is to replace.
void StoredRun::open_found(const Readers& readers) {
  for (const std::string& name : store_.names()) {
    if (find_operand(asked_.given(), name) != nullptr && !readers.contains(name) &&
        !request_.make.contains(name)) {
      operands_[name] = store_.open(name + std::string(Store::kSuffix));
      found_.push_back(name);
    }
  }
  // O and L are of the store's other operands, or of nobody knows which: also those that stay.
  if (find_operand(asked_.kernel->returns, "O") != nullptr) {
    const auto check = [&](const char* flag, const std::string& name, const char* remedy) {
      if (std::filesystem::exists(store_.path(name + std::string(Store::kSuffix)))) {
        throw RequestError(fmt::format(
            "{} {}: the store {} has another {}, beside which O and L would stay: {}take another "
            "store",
            request_.said(flag), name, store_.directory().string(), name, remedy));
      }
    };
    for (const auto& [name, reader] : readers) {
      check("--in", name, "import the file, or ");
    }
    for (const auto& [name, pattern] : request_.make) {
      check("--make", name, "");
    }
  }
  const bool has_O = operands_.contains("O");
  if (has_O != operands_.contains("L") && !readers.contains("O")) {
    throw RequestError(fmt::format("{}: {} has {} without {}: import both, or remove it",
                                   request_.said("--store"), store_.directory().string(),
                                   has_O ? "O" : "L", has_O ? "L" : "O"));
  }
  const bool of_these =
      !readers.contains("O") && std::ranges::all_of(asked_.given(), [&](const Signature& operand) {
        return operand.name == "dO" || operands_.contains(operand.name);
      });
  if (!of_these) {
    for (const std::string_view name : {kO.name, kL.name}) {
      operands_.erase(std::string(name));
      std::erase(found_, name);
    }
  } else if (has_O) {
    refuse_older_results();
  }
}

// What came after O and L is not what they were made of.
void StoredRun::refuse_older_results() const {
  const auto written = [&](const std::string& name) {
    return std::filesystem::last_write_time(operands_.at(name)->matrix()->path());
  };
  const auto made = std::min(written("O"), written("L"));
  for (const Signature& operand : asked_.given()) {
    const std::string name(operand.name);
    if (name != "dO" && !made_by_forward(name) && written(name) > made) {
      throw RequestError(fmt::format(
          "{}: {} has O and L from before {} came: remove O.rb and L.rb, or import them anew",
          request_.said("--store"), store_.directory().string(), name));
    }
  }
}

// For the verification alone all matrices come to memory.
Words StoredRun::memory_needed(const Report& report, const Kernel& kernel) const {
  const Shape& shape = report.kernel.plan.problem.shape;
  Words bytes = 4 * Words(request_.M);
  if (request_.verify) {
    bytes += verification_bytes(kernel, shape);
    for (const auto& operands : {given_of(report.kernel.plan), kernel.returns}) {
      for (const Signature& operand : operands) {
        bytes += 4 * Words(operand.rows_of(shape)) * operand.cols_of(shape);
      }
    }
  }
  return bytes;
}

// What is made during the run: with headers and tables, and with what whole sectors add to
// granules, which of intermediates is taken to be as much as of the largest operands.
Words StoredRun::bytes_needed(const Report& report, const Kernel& kernel) const {
  const Plan& plan = report.kernel.plan;
  Words bytes;
  Words most;  // of an operand
  double excess = 1;
  const auto add = [&](const Signature& operand) {
    const StoreLayout layout = input_layout(operand, plan);
    const Words words =
        Words(operand.rows_of(plan.problem.shape)) * operand.cols_of(plan.problem.shape);
    if (words >= most) {
      const Index granule = layout.rows.piece * layout.columns.piece * Index{sizeof(float)};
      excess = std::max(words > most ? 1 : excess,
                        static_cast<double>(layout.slot_bytes()) / static_cast<double>(granule));
      most = words;
    }
    return StoredMatrix::file_bytes(layout);
  };
  for (const Signature& operand : given_of(plan)) {
    const Words own = add(operand);
    bytes += operands_.contains(operand.name) ? Words(0) : own;
  }
  for (const Signature& operand : kernel.returns) {
    bytes += add(operand);
  }
  Words words = kernel.intermediates(plan);
  if (report.forward) {
    const Plan& forward = report.forward->plan;
    const Words its = find_kernel(forward.kernel).intermediates(forward);
    words = request_.store->keep ? words + its : std::max(words, its);
  }
  constexpr Index kMatrices = 8;  // of intermediates at a time
  constexpr double kTables = 1.02;
  bytes += Words(kMatrices) * 4 * StoreLayout::kSector;
  return words.overflowed() || bytes.overflowed()
             ? words + bytes
             : bytes +
                   static_cast<Index>(4 * kTables * excess * static_cast<double>(words.value()));
}

// What an earlier run left to go on with.
Words StoredRun::bytes_there() const {
  Words bytes;
  for (const auto& entry : std::filesystem::directory_iterator(store_.directory())) {
    if (entry.path().filename().string().ends_with(Store::kTemporarySuffix)) {
      bytes += static_cast<Index>(entry.file_size());
    }
  }
  return bytes;
}

// As the kernel reads it.
StoreLayout StoredRun::input_layout(const Signature& operand, const Plan& plan) const {
  const Index rows = operand.rows_of(plan.problem.shape);
  const Index cols = operand.cols_of(plan.problem.shape);
  const Kernel& kernel = find_kernel(plan.kernel);
  const Window window = kernel.fitting.window == nullptr
                            ? Window{1, cols}
                            : kernel.fitting.window(operand, plan.problem, plan.blocks);
  return store_.layout(rows, cols, window, prefetch_of(plan.blocks) > 1);
}

// Where an operand comes from, for who wants to go on with the same.
std::string StoredRun::origin_of(std::string_view name, const Readers& readers) const {
  const auto reader = readers.find(name);
  if (const auto made = request_.make.find(std::string(name)); made != request_.make.end()) {
    return std::string(to_string(made->second));
  }
  if (reader == readers.end()) {
    return fmt::format("seed {}, scale {}", request_.seed.value_or(kDefaultSeed), request_.scale);
  }
  const std::filesystem::path& path = reader->second.path();
  return fmt::format("{}, {} bytes, written at {}",
                     std::filesystem::weakly_canonical(path).string(),
                     std::filesystem::file_size(path),
                     std::filesystem::last_write_time(path).time_since_epoch().count());
}

File StoredRun::bring(const Signature& operand, const Plan& plan, const Readers& readers) {
  const std::string name(operand.name);
  const std::string file = temporary(operand.name);
  const std::string origin = origin_of(name, readers);
  if (const auto known = checkpoint_.origins.find(name);
      from_checkpoint_ && (known == checkpoint_.origins.end() || known->second != origin)) {
    throw RequestError(
        fmt::format("{}: {} came from {}, not from {}: ask for the same, or remove {}",
                    request_.said("--resume"), name,
                    known == checkpoint_.origins.end() ? "the store" : known->second, origin,
                    checkpoint_path().string()));
  }
  origins_[name] = origin;
  // One that an earlier run brought, and finished, need not come again.
  if (from_checkpoint_ && std::filesystem::exists(store_.path(file))) {
    try {
      File found = store_.open(file);
      const auto known = checkpoint_.operands.find(name);
      if (known != checkpoint_.operands.end() && found->matrix()->fingerprint() == known->second) {
        return found;
      }
    } catch (const StoreError&) {  // it was not finished
    }
  }
  File made = store_.create(file, input_layout(operand, plan), life());
  const auto reader = readers.find(name);
  if (reader != readers.end()) {
    import_rows(reader->second, name, *made);
  } else {
    generate_rows(request_, operand, plan.problem.shape, *made);
  }
  made->matrix()->close();
  return made;
}

void StoredRun::bring_inputs(const Report& report, const Readers& readers) {
  for (const Signature& operand : given_of(report.kernel.plan)) {
    const bool made_later = made_by_forward(operand.name) && report.forward;
    if (!made_later && !operands_.contains(operand.name)) {
      operands_[std::string(operand.name)] = bring(operand, report.kernel.plan, readers);
    }
  }
}

// The checkpoint has to be of this run.
void StoredRun::go_on(const Report& report) {
  Checkpoint now;
  now.plan = fmt::format("{} in {}", to_string(report.kernel.plan), simd_target());
  now.forward_plan = report.forward ? to_string(report.forward->plan) : "";
  now.origins = origins_;
  for (const auto& [name, file] : operands_) {
    now.operands[name] = file->matrix()->fingerprint();
  }
  if (!from_checkpoint_) {
    checkpoint_ = std::move(now);
    return;
  }
  const std::string where = checkpoint_path().string();
  if (checkpoint_.plan != now.plan || checkpoint_.forward_plan != now.forward_plan) {
    throw RequestError(
        fmt::format("{}: {} is of {}, and not of {}: ask for the same, or remove that file",
                    request_.said("--resume"), where, checkpoint_.plan, now.plan));
  }
  for (const auto& [name, fingerprint] : now.operands) {
    const auto known = checkpoint_.operands.find(name);
    if (known == checkpoint_.operands.end() || known->second != fingerprint) {
      throw RequestError(
          fmt::format("{}: {} is not the one of {}: bring the same, or remove that file",
                      request_.said("--resume"), name, where));
    }
  }
}

// What this run, or one that was killed, does not need any more.
void StoredRun::remove_left() {
  store_.remove_temporaries();
  WholeFile::remove_left(store_.directory());  // of checkpoints
  std::filesystem::remove(checkpoint_path());
}

void StoredRun::keep_checkpoint() {
  checkpoint_bytes_ += write(checkpoint_, checkpoint_path());
  ++checkpoints_;
}

// A kernel on the store. In steps, what is done is on disk, and what is summed is in the
// checkpoint, because the next row block changes it.
Files StoredRun::run_part(Part& part, bool is_forward) {
  const Kernel& kernel = find_kernel(part.plan.kernel);
  const Shape& shape = part.plan.problem.shape;
  const bool in_steps = resumes() && kernel.schedule.split;
  const bool sums = in_steps && kernel.schedule.split->reduce != nullptr;
  const bool goes_on = from_checkpoint_ && checkpoint_.forward_done != is_forward;
  Steps steps;
  if (goes_on && in_steps && checkpoint_.units > 0) {
    steps.first = checkpoint_.units;
    steps.before = checkpoint_.counted;
    resumed_at_ = steps.first;
  }

  Files results;
  std::vector<SlowMatrix> matrices;
  matrices.reserve(kernel.operands.size() + kernel.returns.size());
  Operands io;
  for (const Signature& operand : given_of(part.plan)) {
    const std::string name(operand.name);
    io.give(matrices.emplace_back(store_.matrix(name, operands_.at(name))));
  }
  for (const Signature& operand : kernel.returns) {
    const std::string name(operand.name);
    const bool begun = steps.before && !sums;
    File& file = results[name];
    file = begun ? store_.open(temporary(name), StoredMatrix::Expect::left_open)
                 : store_.fresh(temporary(name), operand.rows_of(shape), operand.cols_of(shape),
                                life(), {.apart = resumes()});
    SlowMatrix& matrix = matrices.emplace_back(store_.matrix(name, file));
    io.take(matrix);
    if (steps.before && sums) {
      HostAccess::put(matrix, checkpoint_.sum);
    }
  }
  if (in_steps) {
    steps.after = [&](Index done, const RunCounts& counts) {
      store_.ledger().begin(Purpose::checkpoints);
      checkpoint_.forward_done = !is_forward;
      checkpoint_.units = done;
      checkpoint_.counted = counts;
      checkpoint_.sum.clear();
      for (const auto& [name, file] : results) {
        if (sums) {
          checkpoint_.sum.resize(static_cast<std::size_t>(file->rows() * file->cols()));
          HostAccess::get(io.out(name), checkpoint_.sum);
        } else {
          file->matrix()->flush();
        }
      }
      keep_checkpoint();
      store_.ledger().begin(Purpose::kernel);
    };
  }

  store_.ledger().begin(Purpose::kernel);
  StoreWorkspace workspace(store_, request_.store->keep);
  count_part(part, Topology(), around_, progress_, [&](const Around& on_it) {
    return run_alone(kernel, part.plan, io, workspace, on_it, steps);
  });
  workspace.finish();
  store_.ledger().begin(Purpose::results);
  check_results(kernel, shape, results);
  return results;
}

void StoredRun::run_forward(Part& forward) {
  if (from_checkpoint_ && checkpoint_.forward_done) {
    forward.counted = checkpoint_.forward;
    for (const std::string_view name : {kO.name, kL.name}) {
      operands_[std::string(name)] = store_.open(temporary(std::string(name)));
    }
    return;
  }
  for (auto& [name, file] : run_part(forward, true)) {
    file->matrix()->close();
    operands_[name] = file;
  }
  checkpoint_.forward = forward.counted;
  checkpoint_.forward_done = true;
  checkpoint_.units = 0;
  if (resumes()) {
    keep_checkpoint();
  }
}

void StoredRun::check_results(const Kernel& kernel, const Shape& shape, const Files& results) {
  for (const Signature& operand : kernel.returns) {
    const File& file = results.find(operand.name)->second;
    const SlowMatrix matrix = store_.matrix(std::string(operand.name), file);
    for_rows(file->rows(), file->cols(), [&](Range I, std::span<float> words) {
      HostAccess::get(matrix, I, words);
      check_finite(kernel, operand, shape, I.begin, words);
    });
  }
}

// To files, and under their names in the store.
void StoredRun::hand_over(const Files& results, Writers& writers) {
  for (auto& [name, writer] : writers) {
    export_rows(*results.at(name), writer);
  }
  for (const auto& [name, file] : results) {
    file->seal();
  }
  // From here on there is nothing to go on with: who is killed between two names begins anew.
  std::filesystem::remove(checkpoint_path());
  for (const auto& [name, file] : results) {  // never some of this run and some of another
    std::filesystem::remove(store_.path(name + std::string(Store::kSuffix)));
  }
  for (const auto& [name, file] : results) {
    file->stay_as(name + std::string(Store::kSuffix));
  }
  for (auto& [name, writer] : writers) {
    writer.commit();
  }
}

Buffers StoredRun::in_memory(const Files& files) const {
  Buffers buffers;
  for (const auto& [name, file] : files) {
    std::vector<float>& buffer = buffers[name];
    buffer.resize(static_cast<std::size_t>(file->rows() * file->cols()));
    HostAccess::get(file->store().matrix(name, file), buffer);
  }
  return buffers;
}

void StoredRun::tell(Report& report) {
  StoreReport& told = report.store.emplace();
  told.directory = store_.directory().string();
  told.engine = to_string(store_.engine());
  told.no_uring = store_.no_uring();
  told.indirect = store_.indirect();
  told.granule_bytes = store_.granule_bytes();
  told.depth = request_.store->options.depth;
  for (const Purpose purpose : kPurposes) {
    told.traffic[purpose] = store_.ledger().of(purpose);
  }
  told.checkpoints = checkpoints_;
  told.checkpoint_bytes = checkpoint_bytes_;
  told.found = found_;
  told.resumed_at = resumed_at_;
  told.resident = resident_bytes();
}

Report StoredRun::run() {
  const Readers readers = open_inputs(request_, asked_);
  check_outputs(request_, *asked_.kernel);
  if (resumes()) {
    if (auto read = read_checkpoint(checkpoint_path())) {
      checkpoint_ = std::move(*read);
      from_checkpoint_ = true;
    }
  } else if (std::filesystem::exists(checkpoint_path())) {
    throw RequestError(fmt::format(
        "{}: a run that was ended left {}: go on from it with --resume, or remove that file",
        request_.said("--store"), checkpoint_path().string()));
  }
  open_found(readers);
  std::vector<Stored> stored;
  for (const auto& [name, file] : operands_) {
    stored.push_back({name, file->matrix()->path().string(), file->rows(), file->cols()});
  }
  const Size size = size_of(request_, asked_, readers, stored);
  if (size.heads) {
    throw RequestError(fmt::format("{}: one problem at a time runs in a store; {} heads are asked",
                                   request_.said("--store"), *size.heads));
  }
  const bool has_O = readers.contains("O") || operands_.contains("O");
  Report report = planned(request_, size, has_O);
  const Kernel& kernel = find_kernel(report.kernel.plan.kernel);
  set_origins(report, request_, readers, found_);
  const MemoryClaim memory(
      request_.memory, memory_needed(report, kernel), spelled(report.kernel.plan),
      request_.verify ? "run without --verify, which holds all matrices" : "take a smaller M");
  if (!from_checkpoint_) {
    remove_left();
  }
  Writers writers = open_outputs(request_, kernel, size);
  const Words needed = bytes_needed(report, kernel);
  const Words there = bytes_there();
  store_.reserve(needed.overflowed() ? needed
                 : needed > there    ? Words(needed.value() - there.value())
                                     : Words(0));

  bring_inputs(report, readers);
  go_on(report);
  if (report.forward) {
    run_forward(*report.forward);
  }
  checkpoint_.forward_done = true;
  Files results = run_part(report.kernel, false);
  if (request_.verify) {
    report.error = verify(report, in_memory(operands_), in_memory(results));
  }
  if (!report.error || report.error->ok) {
    hand_over(results, writers);
  }
  tell(report);
  results.clear();
  operands_.clear();
  remove_left();
  return report;
}

}  // namespace

void generate_rows(const Request& request, const Signature& operand, const Shape& shape,
                   StoreFile& to) {
  make_rows(std::string(operand.name), to, [&](Range I, std::span<float> words) {
    fill_made(request, operand, shape, 0, I.begin, I.size(), words);
  });
}

void import_rows(const NpyReader& reader, const std::string& name, StoreFile& to) {
  make_rows(name, to, [&](Range I, std::span<float> words) {
    try {
      reader.read_rows(I, words);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{} of {}", name, error.what()));
    }
  });
}

void export_rows(StoreFile& from, NpyWriter& to) {
  const SlowMatrix matrix = matrix_of(from, "");
  for_rows(from.rows(), from.cols(), [&](Range I, std::span<float> words) {
    HostAccess::get(matrix, I, words);
    to.append(words);
  });
}

Report run_in_store(const Request& request, const Around& around, const Progress* progress) {
  if (request.threads > 1) {
    throw RequestError(fmt::format("{} {}: one worker runs in a store, and the disk beside it",
                                   request.said("--threads"), request.threads));
  }
  return StoredRun(request, around, progress).run();
}

}  // namespace redblue
