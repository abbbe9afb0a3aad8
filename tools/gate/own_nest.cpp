#include "tools/gate/own_nest.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/nests/count.hpp"
#include "kernels/nests/text_nest.hpp"
#include "memsim/errors.hpp"
#include "runtime/gate/comparison.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr std::size_t kMostOfNest = std::size_t{1} << 20;

constexpr std::string_view kRemedy = "name it in REDBLUE_KERNEL";  // for a missing size

struct ReadNest {
  std::string text;
  TextNest nest;
};

// Calls work(). Any fault of the nest becomes a NestMisfit that names the file.
template <class Work>
auto of_file(const std::string& file, const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const CountOverflow& error) {
    throw CountOverflow(fmt::format("{}: {}", file, error.what()));
  } catch (const ShapeMismatch& error) {
    throw NestMisfit(fmt::format("{}: {}", file, error.what()));
  } catch (const std::exception& error) {  // it names the file
    throw NestMisfit(error.what());
  }
}

std::string text_of(const std::string& file) {
  return of_file(file, [&] { return read_text(file, kMostOfNest); });
}

ReadNest parsed(std::string text, const std::string& file) {
  return of_file(file, [&] {
    TextNest nest = parse_nest(text, input_name(file));
    return ReadNest{std::move(text), std::move(nest)};
  });
}

// Returns the first line that needs the value of an extent; 0 if none does.
Index line_using(const TextNest& nest, SymbolId extent) {
  for (const NestMatrix& matrix : nest.matrices) {
    if (std::ranges::find(matrix.extents, extent, &NestIndex::symbol) != matrix.extents.end()) {
      return matrix.line;
    }
  }
  for (const NestBlock& block : nest.blocks) {
    if (block.of == extent || (block.size && block.size->uses(extent))) {
      return block.line;
    }
  }
  const auto user = std::ranges::find_if(
      nest.statements, [&](const NestStatement& statement) { return uses(statement, extent); });
  return user == nest.statements.end() ? 0 : user->line;
}

NestSizes sizes_of(const TextNest& nest, const std::string& kernel, const Arguments& given,
                   std::string_view remedy = kRemedy) {
  NestSizes sizes;
  NestExtents& of = sizes.extents;
  for (const auto& [extent, size] : {std::pair<SymbolId, Index*>(kExtentN, &of.n),
                                     {kExtentM, &of.m},
                                     {kExtentD, &of.d},
                                     {kExtentDv, &of.dv},
                                     {kExtentHeads, &of.heads},
                                     {kExtentKvHeads, &of.kv_heads},
                                     {kExtentGroup, &of.group},
                                     {kFastWords, &of.M}}) {
    const std::string& name = nest.symbols[extent].name;
    if (given.contains(name)) {
      *size = given[name];
    } else if (const Index line = line_using(nest, extent); line > 0) {
      throw NestMisfit(
          fmt::format("{}:{}: the kernel {} has no size {}: {}, or write a number here", nest.file,
                      line, kernel, name, remedy));
    }
  }
  for (const NestBlock& block : nest.blocks) {
    const std::string& name = nest.symbols[block.symbol].name;
    if (given.contains(name)) {
      sizes.blocks.add(name, given[name]);
    } else if (!block.size) {
      throw NestMisfit(fmt::format(
          "{}:{}: the kernel {} has no size {}: {}, or give the block a size in the file",
          nest.file, block.line, kernel, name, remedy));
    }
  }
  return sizes;
}

// Refuses arguments that are neither extents nor block sizes of the nest. The message names the
// sizes that the nest uses.
void require_sizes(const TextNest& nest, const Arguments& given) {
  std::vector<std::string_view> known, used;
  for (SymbolId extent = kExtentN; extent <= kFastWords; ++extent) {
    known.emplace_back(nest.symbols[extent].name);
    if (extent != kFastWords && line_using(nest, extent) > 0) {
      used.emplace_back(known.back());
    }
  }
  for (const NestBlock& block : nest.blocks) {
    known.emplace_back(nest.symbols[block.symbol].name);
    used.emplace_back(known.back());
  }
  for (const auto& [name, size] : given) {
    if (std::ranges::find(known, name) == known.end()) {
      throw NestMisfit(fmt::format("{}: the nest has no size {}: it has {}", nest.file, name,
                                   fmt::join(used, ", ")));
    }
  }
}

// A count of a nest knows the weight of sums alone. Refuses a machine with other weights.
void require_weights(const Machine& machine) {
  for (const Holds kind : kHolds) {
    if (const Index words = machine.weight(kind); kind != Holds::sums && words > 1) {
      throw NestMisfit(
          fmt::format("a word of {} weighs {} on this machine, and 1 in a nest: only sums may "
                      "weigh more than 1",
                      to_string(kind), words));
    }
  }
}

// A phase of a nest as on a machine: the first one is for statements outside phases.
std::string path_of(const TextNest& nest, std::size_t phase) {
  return phase == 0 ? "" : nest.phases[phase];
}

std::vector<PhaseCost> words_of(const TextNest& nest, const NestSizes& sizes) {
  std::vector<PhaseCost> phases = count(nest, sizes);
  for (PhaseCost& phase : phases) {
    phase.path = phase.path == nest.phases.front() ? "" : phase.path;
  }
  return phases;
}

// The lines of a nest that move or hold words of one phase.
class LinesOfPhase {
 public:
  LinesOfPhase(const ReadNest& read, const NestSizes& sizes, std::string path)
      : read_(read), path_(std::move(path)), counter_(read.nest, sizes.mask, sizes.sum_words) {
    static_cast<void>(counter_.phases(values_of(read.nest, sizes)));
  }

  struct Moved {
    Words words;
    std::set<Index> lines = {};
  };
  // Returns the words that reads, or writes, move of each matrix.
  [[nodiscard]] std::map<std::string, Moved> moved(NestStatement::Kind kind) const {
    std::map<std::string, Moved> all;
    each(read_.nest.statements, [&](const NestStatement& statement) {
      const std::vector<MovedTile> tiles = counter_.tiles(statement);
      for (std::size_t k = 0; statement.kind == kind && k < tiles.size(); ++k) {
        Moved& its = all[read_.nest.matrices[statement.targets[k].name].name];
        its.words += tiles[k].moved;
        its.lines.insert(statement.line);
      }
    });
    return all;
  }
  // Returns the tiles of the phase with their largest blocks, each as "line 9: b 64".
  [[nodiscard]] std::vector<std::string> tiles() const {
    std::vector<std::string> all;
    each(read_.nest.statements, [&](const NestStatement& statement) {
      const std::vector<MovedTile> tiles = counter_.tiles(statement);
      for (std::size_t k = 0; statement.kind != NestStatement::Kind::write && k < tiles.size();
           ++k) {
        all.push_back(fmt::format("line {}: {} {}", statement.line,
                                  read_.nest.tile_names[statement.tiles[k].name],
                                  grouped(tiles[k].largest.value())));
      }
    });
    return all;
  }
  // Returns the first line of the phase.
  [[nodiscard]] Index first() const {
    Index line = 0;
    each(read_.nest.statements,
         [&](const NestStatement& statement) { line = line == 0 ? statement.line : line; });
    return line;
  }
  // Returns the text of a line, without its indentation and comment.
  [[nodiscard]] std::string_view text(Index line) const {
    std::string_view rest = read_.text;
    for (Index k = 1; k < line; ++k) {
      rest.remove_prefix(rest.find('\n') + 1);
    }
    rest = rest.substr(0, rest.find_first_of("\r\n#"));
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest.substr(0, rest.find_last_not_of(' ') + 1);
  }

 private:
  // Visits the statements of the phase that have no body.
  template <class Visit>
  void each(const std::vector<NestStatement>& list, const Visit& visit) const {
    for (const NestStatement& statement : list) {
      if (statement.body.empty() && path_of(read_.nest, statement.phase) == path_) {
        visit(statement);
      }
      each(statement.body, visit);
    }
  }

  const ReadNest& read_;
  const std::string path_;
  NestCounter counter_;
};

// Returns each matrix with other words in the run: "of A 640 and not 576 (line 9: read A[I,J])".
std::vector<std::string> other_words(const LinesOfPhase& lines, NestStatement::Kind kind,
                                     const std::map<std::string, Index>& run) {
  std::map<std::string, LinesOfPhase::Moved> nest = lines.moved(kind);
  for (const auto& [matrix, words] : run) {
    nest[matrix];
  }
  std::vector<std::string> texts;
  for (const auto& [matrix, its] : nest) {
    const auto found = run.find(matrix);
    const Index moved = found == run.end() ? 0 : found->second;
    if (its.words == Words(moved)) {
      continue;
    }
    std::vector<std::string> places;
    for (const Index line : its.lines) {
      places.push_back(fmt::format("line {}: {}", line, lines.text(line)));
    }
    texts.push_back(fmt::format(
        "of {} {} and not {} ({})", matrix, grouped(moved), grouped(its.words.value()),
        places.empty() ? "no line moves it here" : fmt::format("{}", fmt::join(places, ", "))));
  }
  return texts;
}

// Removes the phases that move no words and that `other` does not have: a machine and a nest list
// such phases for different reasons. Their peaks are in the total.
void remove_idle(std::vector<PhaseCounts>& phases, const std::vector<PhaseCounts>& other) {
  std::erase_if(phases, [&](const PhaseCounts& phase) {
    return phase.io.io() == 0 &&
           std::ranges::find(other, phase.path, &PhaseCounts::path) == other.end();
  });
}

// Words explain more than a peak, and a phase that only one of the two has explains most.
int rank_of(const Difference& difference) {
  return difference.kind != Difference::Kind::words ? 0
         : difference.phase.empty()                 ? 3
         : difference.metric == "peak"              ? 2
                                                    : 1;
}

}  // namespace

std::vector<PhaseCost> nest_words(const std::string& file, const std::string& kernel,
                                  const Arguments& given) {
  const ReadNest read = parsed(text_of(file), file);
  return of_file(read.nest.file, [&] {
    std::vector<PhaseCost> phases = words_of(read.nest, sizes_of(read.nest, kernel, given));
    static_cast<void>(predicted(phases));  // all counts have 63 bits
    return phases;
  });
}

void NestWitness::follow(const Event& event) {
  if (PhasePath::changes(event)) {
    phase_.follow(event);
  }
  Seen& seen = seen_[phase_.path()];
  if (event.kind == Event::Kind::read || event.kind == Event::Kind::write) {
    const std::string_view matrix =
        event.block == nullptr ? event.name : std::string_view(event.block->matrix().name());
    (event.kind == Event::Kind::read ? seen.reads : seen.writes)[std::string(matrix)] +=
        event.moved;
  }
  if (event.live > seen.peak) {
    seen.peak = event.live;
    seen.tiles = machine_.contents();
  }
}

void NestWitness::compare(const std::string& file, const Point& run,
                          const RunCounts& counts) const {
  compare({.text = text_of(file), .file = file, .remedy = std::string(kRemedy)}, run, counts);
}

void NestWitness::compare(const NestOfCaller& of, const Point& run, const RunCounts& counts) const {
  check();
  const std::string& file = of.file;
  require_weights(machine_);
  const ReadNest read = parsed(of.text, file);
  if (of.only_its_sizes) {
    require_sizes(read.nest, run.arguments);
  }
  NestSizes sizes = sizes_of(read.nest, run.subject, run.arguments, of.remedy);
  sizes.mask = of.mask;
  sizes.sum_words = machine_.weight(Holds::sums);
  const std::vector<PhaseCost> words = words_of(read.nest, sizes);
  RecordedPoint nest = recorded(run, predicted(words)), ran = recorded(run, counts);
  remove_idle(nest.counts.phases, ran.counts.phases);
  remove_idle(ran.counts.phases, nest.counts.phases);
  const std::vector<Difference> all = differences(nest, ran, {});
  if (all.empty()) {
    return;
  }
  const Difference& first = *std::ranges::min_element(all, {}, rank_of);
  std::string path = first.phase == kOutside ? "" : first.phase;
  auto found = seen_.find(path);
  if (first.phase.empty()) {  // the largest peaks are in phases that move nothing
    const auto peak_of = [](const PhaseCost& phase) { return phase.peak.value(); };
    path = words.empty() ? "" : std::ranges::max_element(words, {}, peak_of)->path;
    found = std::ranges::max_element(
        seen_, {}, [](const auto& its) -> const Index& { return its.second.peak; });
  }
  const LinesOfPhase lines(read, sizes, path);
  const Seen seen = found == seen_.end() ? Seen() : found->second;
  std::string what;
  if (first.kind == Difference::Kind::phase_new) {
    what = path.empty() ? fmt::format(
                              "the kernel moves words outside phases, and the nest {} "
                              "does not",
                              file)
                        : fmt::format("the kernel enters the phase {}, and the nest {} does not",
                                      path, file);
  } else if (first.kind == Difference::Kind::phase_gone) {
    what = fmt::format("{}, and the nest {} does (line {}: {})",
                       path.empty() ? "the kernel moves no words outside phases"
                                    : fmt::format("the kernel does not enter the phase {}", path),
                       file, lines.first(), lines.text(lines.first()));
  } else if (first.metric == "reads" || first.metric == "writes") {
    const bool reads = first.metric == "reads";
    const std::vector<std::string> others =
        other_words(lines, reads ? NestStatement::Kind::read : NestStatement::Kind::write,
                    reads ? seen.reads : seen.writes);
    what = fmt::format("{} {} {} words, and {} by the nest {}: {}", place_of(first), first.metric,
                       grouped(first.after), grouped(first.before), file, fmt::join(others, "; "));
  } else if (first.metric == "peak") {
    what =
        fmt::format("{} holds {} words at its peak ({}), and {} by the nest {} (largest tiles: {})",
                    place_of(first), grouped(first.after), seen.tiles, grouped(first.before), file,
                    fmt::join(lines.tiles(), ", "));
  } else {
    what = fmt::format("from the nest {} to the run, {}", file, to_words(first));
  }
  throw std::logic_error(what + ": correct the kernel or the nest");
}

}  // namespace redblue
