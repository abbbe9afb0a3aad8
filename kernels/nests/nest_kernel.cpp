#include "kernels/nests/nest_kernel.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/masked.hpp"
#include "kernels/nests/count.hpp"
#include "kernels/nests/fit.hpp"
#include "kernels/nests/walk.hpp"
#include "kernels/registry.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

NestSizes sizes_of(const TextNest& nest, const Problem& problem, const Blocks& blocks, Index M) {
  const bool by_group = nest.uses_extent(kExtentGroup) || nest.of_all_heads();
  const Shape& shape = problem.shape;
  return {.extents = {.n = by_group ? problem.queries() : shape.n,
                      .m = shape.m,
                      .d = shape.d,
                      .dv = shape.dv,
                      .heads = problem.stacked * problem.kv_heads,
                      .kv_heads = problem.kv_heads,
                      .group = problem.stacked,
                      .M = M},
          .blocks = blocks,
          .mask = by_group ? problem.one_head().mask : problem.mask,
          .sum_words = problem.sum_words,
          .softmax = problem.normalised()};
}

// M is a part of the blocks of a plan, because sizes may depend on it.
constexpr std::string_view kM = "M";

NestSizes sizes_of(const TextNest& nest, const Problem& problem, const Blocks& blocks) {
  return sizes_of(nest, problem, blocks, blocks.contains(kM) ? blocks[kM] : 1);
}

// The parts of a schedule are shared out to threads or devices. A fast memory does not choose them.
constexpr std::string_view kPart = "Part";

// Returns the nest without the sizes of its blocks.
TextNest freed(TextNest nest) {
  for (NestBlock& block : nest.blocks) {
    if (!follows(nest, block) && nest.symbols[block.symbol].name != kPart) {
      block.size.reset();
    }
  }
  return nest;
}

Blocks fitted(const TextNest& nest, const Problem& problem, const Memory& memory,
              Objective objective) {
  if (memory.all_blocks) {
    Memory chosen = memory;
    chosen.all_blocks = false;
    return fitted(freed(nest), problem, chosen, objective);
  }
  NestSizes sizes = sizes_of(nest, problem, {}, memory.M);
  for (const auto& [name, size] : memory.given) {
    sizes.blocks.add(name, size);
  }
  Blocks blocks = objective == Objective::words ? fit(nest, sizes, memory.multiple)
                                                : fit_evenly(nest, sizes, memory.multiple);
  if (nest.uses_extent(kFastWords)) {
    blocks.add(std::string(kM), memory.M);
  }
  return blocks;
}

// The matrices of the kernels of this problem. A kernel may return more than the problem asks for.
struct Matrices {
  std::vector<Signature> operands, results;
};
Matrices matrices_of(Pass pass) {
  Matrices all{{}, results_of(pass)};
  for (const KernelName& name : all_kernel_names_of(pass)) {
    if (name.kernel->takes_sparse || name.sharing != Sharing::none) {
      continue;
    }
    const auto add = [](std::vector<Signature>& known, const std::vector<Signature>& more) {
      for (const Signature& matrix : more) {
        if (find_operand(known, matrix.name) == nullptr) {
          known.push_back(matrix);
        }
      }
    };
    add(all.operands, name.kernel->operands);
    add(all.results, name.kernel->returns);
  }
  return all;
}

SymbolId symbol_of(Index Shape::*extent) {
  return extent == &Shape::n   ? kExtentN
         : extent == &Shape::m ? kExtentM
         : extent == &Shape::d ? kExtentD
                               : kExtentDv;
}

std::string text_of(const TextNest& nest, const Signature& matrix) {
  std::string text = std::string(matrix.name) + "[" + nest.symbols[symbol_of(matrix.rows)].name;
  return text +
         (matrix.cols == nullptr ? "]" : "," + nest.symbols[symbol_of(matrix.cols)].name + "]");
}

// Whether the nest declares the matrix with the extents of the problem. A file may have `d` for
// `dv`, and further extents for heads.
bool has_extents(const NestMatrix& matrix, const Signature& of) {
  std::vector<SymbolId> extents;
  for (const NestIndex& index : matrix.extents) {
    const SymbolId symbol = index.kind == NestIndex::Kind::extent ? index.symbol : kNoSymbol;
    if (symbol != kExtentGroup && symbol != kExtentHeads && symbol != kExtentKvHeads) {
      extents.push_back(symbol);
    }
  }
  const auto is = [](SymbolId given, Index Shape::*expected) {
    const SymbolId symbol = symbol_of(expected);
    return given == symbol || (symbol == kExtentDv && given == kExtentD);
  };
  return extents.size() == (of.cols == nullptr ? 1U : 2U) && is(extents[0], of.rows) &&
         (of.cols == nullptr || is(extents[1], of.cols));
}

// Sets operands and results. Throws: NestError for matrices that the problem does not have.
void set_matrices(Kernel& kernel, const TextNest& nest) {
  if (nest.of_all_heads()) {
    throw NestError(
        nest.file, nest.matrices.front().line,
        "heads and kv_heads are extents of 'problem none': use group, for the query heads "
        "of one head of keys");
  }
  const Matrices known = matrices_of(*nest.pass);
  const std::string problem = "the problem " + std::string(to_string(*nest.pass));
  const auto texts = [&](const std::vector<Signature>& matrices) {
    std::string all;
    for (const Signature& matrix : matrices) {
      all += (all.empty() ? "" : " ") + text_of(nest, matrix);
    }
    return all;
  };
  for (const NestMatrix& matrix : nest.matrices) {
    if (matrix.kind == NestMatrix::Kind::temp) {
      continue;
    }
    const bool is_input = matrix.kind == NestMatrix::Kind::input;
    const std::vector<Signature>& of = is_input ? known.operands : known.results;
    const Signature* found = find_operand(of, matrix.name);
    if (found == nullptr || !has_extents(matrix, *found)) {
      throw NestError(nest.file, matrix.line,
                      problem + " has no " + (is_input ? "input " : "result ") + matrix.name +
                          (found == nullptr ? "" : " of these extents") + ": expected some of " +
                          texts(of) + ", or 'problem none'");
    }
    (is_input ? kernel.operands : kernel.returns).push_back(*found);
  }
  const std::vector<Signature>& wanted = results_of(*nest.pass);
  if (std::ranges::none_of(wanted, [&](const Signature& result) {
        return find_operand(kernel.returns, result.name) != nullptr;
      })) {
    throw NestError(
        nest.file, nest.matrices.front().line,
        problem + " has the results " + texts(wanted) + ": the nest returns none of them");
  }
}

// Whether a matrix has d columns where the problem has dv.
bool takes_one_width(const TextNest& nest) {
  const auto names_dv = [](const std::vector<Signature>& matrices, const NestMatrix& matrix) {
    const Signature* found = find_operand(matrices, matrix.name);
    return found != nullptr && found->cols == &Shape::dv &&
           matrix.extents.back().symbol == kExtentD;
  };
  const Matrices known = nest.pass ? matrices_of(*nest.pass) : Matrices();
  return std::ranges::any_of(nest.matrices, [&](const NestMatrix& matrix) {
    return names_dv(known.operands, matrix) || names_dv(known.results, matrix);
  });
}

// Each input is read once, and each result is written once.
Words compulsory(const TextNest& nest, const Problem& problem) {
  const std::vector<Index> values = sizes_of(nest, problem.live_part(), {}, 1).extents.values();
  Words all;
  for (const NestMatrix& matrix : nest.matrices) {
    Words words = matrix.kind == NestMatrix::Kind::temp ? 0 : 1;
    for (const NestIndex& extent : matrix.extents) {
      words *= extent.kind == NestIndex::Kind::number   ? extent.number
               : extent.kind == NestIndex::Kind::extent ? values[extent.symbol]
                                                        : Index{1};
    }
    all += words;
  }
  return all;
}

Kernel kernel_of(std::string_view name, const std::shared_ptr<const TextNest>& nest) {
  Kernel kernel;
  kernel.name = name;
  kernel.summary = nest->name;
  kernel.pass = nest->pass.value_or(Pass::own);
  kernel.is_nest = true;
  kernel.of_all_heads = nest->of_all_heads();
  if (nest->pass) {
    set_matrices(kernel, *nest);
  } else {
    kernel.compulsory = [nest](const Problem& problem) { return compulsory(*nest, problem); };
  }
  kernel.schedule.code = [nest](Machine& machine, const Plan& plan, const Operands& io,
                                Workspace&) {
    NestOperands operands;
    if (nest->pass) {
      operands.in = [&io](const std::string& matrix) { return &io.in(matrix); };
      operands.out = [&io](const std::string& matrix) { return &io.out(matrix); };
    }
    walk(machine, *nest, sizes_of(*nest, plan.problem, plan.blocks), operands);
  };
  kernel.formula = {
      .cost =
          [nest, one_width = takes_one_width(*nest)](const Problem& problem, const Blocks& blocks) {
            require(!one_width || problem.shape.d == problem.shape.dv,
                    "the nest has d columns of values: write dv for another width");
            return count(*nest, sizes_of(*nest, problem, blocks));
          },
      .nest = [nest](
                  const Problem& problem,
                  const Blocks& blocks) { return lines(*nest, sizes_of(*nest, problem, blocks)); }};
  kernel.fitting.fit = [nest](const Problem& problem, const Memory& memory, Objective objective) {
    return fitted(*nest, problem, memory, objective);
  };
  for (const NestBlock& block : nest->blocks) {
    if (follows(*nest, block)) {
      kernel.fitting.optional_blocks.push_back({nest->symbols[block.symbol].name});
    }
  }
  kernel.numerics.folds_partial_sums = !nest->two_step;
  kernel.numerics.recomputes = !nest->once;
  return with_masks(std::move(kernel));
}

struct Loaded {
  std::string name, text;
  std::shared_ptr<const TextNest> nest;
  Kernel kernel;
};

// Loaded nests. None is ever removed, so kernels keep their places.
class LoadedNests {
 public:
  const Kernel& load(const std::string& name, std::string_view text, std::string_view file) {
    const std::scoped_lock lock(mutex_);
    for (const Loaded& other : loaded_) {
      if (other.name == name && other.text == text) {
        return other.kernel;
      }
    }
    auto nest = std::make_shared<const TextNest>(parse_nest(text, file));
    Loaded& added = loaded_.emplace_back(Loaded{name, std::string(text), nest, {}});
    try {
      added.kernel = kernel_of(added.name, nest);
    } catch (...) {
      loaded_.pop_back();
      throw;
    }
    return added.kernel;
  }
  const TextNest& nest_of(const Kernel& kernel) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find_if(
        loaded_, [&](const Loaded& other) { return &other.kernel == &kernel; });
    require(found != loaded_.end(), "only a loaded nest has a formula");
    return *found->nest;
  }
  // The last that was loaded with this name.
  const Kernel* find(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(loaded_.rbegin(), loaded_.rend(),
                                    [&](const Loaded& other) { return other.name == name; });
    return found == loaded_.rend() ? nullptr : &found->kernel;
  }

 private:
  std::mutex mutex_;
  std::deque<Loaded> loaded_;
};
LoadedNests& loaded() {
  static LoadedNests nests;
  return nests;
}

}  // namespace

const Kernel& load_nest(const std::string& name, std::string_view text, std::string_view file) {
  return loaded().load(name, text, file);
}

NestFormula formula_of(const Kernel& loaded_nest, const Plan& plan) {
  const TextNest& nest = loaded().nest_of(loaded_nest);
  return formula(nest, sizes_of(nest, plan.problem, plan.blocks));
}

const Kernel* find_loaded(std::string_view name) {
  return loaded().find(name);
}

}  // namespace redblue
