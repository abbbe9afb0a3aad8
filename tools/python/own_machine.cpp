// A tile of Python's machine is row-major, so that NumPy sees it as an array without a copy. Tiles
// of C++ are in panels of 16 columns, and no strides describe that. Only arithmetic and backings
// know the layout of a tile: kernels in Python use NumPy's arithmetic, and the backing below moves
// words row by row. So the machine itself is the one of C++, with all its rules.
//
// NumPy's arrays have addresses, so tiles stay where they are (Arena::Tiles::stay). An array owns
// its tile. The tile dies with the last array that shows its words, and the machine with the last
// tile.

#include "tools/python/own_machine.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "kernels/mask.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"
#include "runtime/run/attention.hpp"
#include "runtime/run/mask_spec.hpp"
#include "runtime/run/nest_file.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/gate/own_nest.hpp"
#include "tools/options/machine.hpp"
#include "tools/python/errors.hpp"

namespace py = pybind11;

namespace redblue {
namespace {

constexpr const char* kTile = "redblue.tile";

// The words of a NumPy array with one or two dimensions and any strides.
class ArrayBacking final : public Backing {
 public:
  explicit ArrayBacking(const py::array& array)
      : words_(static_cast<char*>(const_cast<void*>(array.data()))),
        to_next_row_(array.strides(0)),
        to_next_column_(array.ndim() == 1 ? kWord : array.strides(1)) {}

  void read(Range rows, Range columns, std::span<float> to) const override {
    each_row(rows, columns, to.data(), [&](const char* from, float* row, Index words) {
      if (to_next_column_ == kWord) {
        std::memcpy(row, from, static_cast<std::size_t>(words * kWord));
        return;
      }
      for (Index j = 0; j < words; ++j) {
        std::memcpy(row + j, from + j * to_next_column_, kWord);
      }
    });
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    each_row(rows, columns, from.data(), [&](char* to, const float* row, Index words) {
      if (to_next_column_ == kWord) {
        std::memcpy(to, row, static_cast<std::size_t>(words * kWord));
        return;
      }
      for (Index j = 0; j < words; ++j) {
        std::memcpy(to + j * to_next_column_, row + j, kWord);
      }
    });
  }
  // Tiles are row-major.
  void read_tile(Range rows, Range columns, Orientation, std::span<float> to) const override {
    read(rows, columns, to);
  }
  void write_tile(Range rows, Range columns, Orientation, std::span<const float> from) override {
    write(rows, columns, from);
  }

 private:
  static constexpr Index kWord = sizeof(float);

  // Calls visit(first word in the array, first word in the tile, words) for each row, or once if
  // all rows lie one behind the other.
  template <class Word, class Visit>
  void each_row(Range rows, Range columns, Word* tile, const Visit& visit) const {
    char* const first = words_ + rows.begin * to_next_row_ + columns.begin * to_next_column_;
    if (to_next_column_ == kWord && to_next_row_ == columns.size() * kWord) {
      visit(first, tile, rows.size() * columns.size());
      return;
    }
    for (Index i = 0; i < rows.size(); ++i) {
      visit(first + i * to_next_row_, tile + i * columns.size(), columns.size());
    }
  }

  char* words_;
  Index to_next_row_, to_next_column_;  // in bytes
};

// Returns a value as messages of the package show it.
std::string shown(py::handle value) {
  return py::module_::import("redblue").attr("_kind")(value).cast<std::string>();
}

Holds kind_of(py::handle text) {
  for (const Holds kind : kHolds) {
    if (PyUnicode_Check(text.ptr()) != 0 &&
        PyUnicode_CompareWithASCIIString(text.ptr(), std::string(to_string(kind)).c_str()) == 0) {
      return kind;
    }
  }
  throw UsageError(
      fmt::format("kind is {}; expected operands, scores, sums or indices", shown(text)));
}

std::string type_of(py::handle value) {
  return py::str(py::type::handle_of(value).attr("__name__")).cast<std::string>();
}

// An array in slow memory.
struct Slow {
  py::array array;  // owns the words; its owner may give it another shape
  SlowMatrix matrix;
  bool is_vector;

  [[nodiscard]] py::tuple shape() const {
    return is_vector ? py::make_tuple(matrix.rows()) : py::make_tuple(matrix.rows(), matrix.cols());
  }
};

// A block of a matrix, which it keeps alive.
struct SlowBlock {
  std::shared_ptr<Slow> of;
  Range rows, columns;
  std::optional<Holds> holds = std::nullopt;
};

// Returns the range of a slice. Slices of Python end where an array ends; a machine refuses a block
// that leaves its matrix.
Range range_of(const Slow& of, py::handle slice, Index extent) {
  Py_ssize_t begin = 0, end = 0, step = 1;
  if (PySlice_Check(slice.ptr()) == 0 || PySlice_Unpack(slice.ptr(), &begin, &end, &step) != 0 ||
      step != 1) {
    PyErr_Clear();
    throw UsageError(
        fmt::format("{0}[...] takes ranges of rows and columns, as {0}[0:64] or {0}[0:64, 0:32]",
                    of.matrix.name()));
  }
  return {begin, end == PY_SSIZE_T_MAX ? extent : end};
}

std::shared_ptr<SlowBlock> block_of(const std::shared_ptr<Slow>& of, py::handle key) {
  return saying([&] {
    Range rows, columns{0, of->matrix.cols()};
    if (PyTuple_Check(key.ptr()) != 0 && PyTuple_GET_SIZE(key.ptr()) == 2 && !of->is_vector) {
      rows = range_of(*of, PyTuple_GET_ITEM(key.ptr(), 0), of->matrix.rows());
      columns = range_of(*of, PyTuple_GET_ITEM(key.ptr(), 1), columns.end);
    } else {
      rows = range_of(*of, key, of->matrix.rows());
    }
    static_cast<void>(of->matrix.block(rows, columns));  // refuses ranges outside
    return std::make_shared<SlowBlock>(SlowBlock{of, rows, columns});
  });
}

std::string text_of(const SlowBlock& part) {
  const auto range = [](Range its) { return fmt::format("{}:{}", its.begin, its.end); };
  return fmt::format("{}[{}{}]", part.of->matrix.name(), range(part.rows),
                     part.of->is_vector ? "" : ", " + range(part.columns));
}

class OwnMachine {
 public:
  explicit OwnMachine(Index M) : machine_(M, Arena::Tiles::stay), witness_(machine_) {}

  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const NestWitness& witness() const { return witness_; }
  // Opens a phase, and returns the number of phases that are then open.
  std::size_t enter(const std::string& name) {
    if (name.empty()) {
      throw UsageError("a phase has a name");
    }
    phases_.push_back(std::make_unique<Phase>(machine_, name));
    return phases_.size();
  }
  // Requires: the phase that enter() opened when it returned `open`.
  void leave(std::size_t open) {
    if (open != phases_.size()) {
      throw UsageError(fmt::format("a phase ends while {} is open: phases end in reverse order",
                                   phases_.empty() ? "none" : machine_.open_phase()));
    }
    phases_.pop_back();
  }

 private:
  Machine machine_;
  NestWitness witness_;
  std::vector<std::unique_ptr<Phase>> phases_;
};
using Shared = std::shared_ptr<OwnMachine>;

// The tile of an array.
struct Held {
  Held(Shared its_machine, Tile&& its_tile);
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held();

  Shared machine;  // outlives the tile
  Tile tile;
  const float* first_word;
};

// All tiles that live, by the address of their first word. Python's lock guards them.
std::map<const float*, const Held*> living;

Held::Held(Shared its_machine, Tile&& its_tile)
    : machine(std::move(its_machine)), tile(std::move(its_tile)), first_word(&tile(0, 0)) {
  living.emplace(first_word, this);
}
Held::~Held() {
  living.erase(first_word);
}

// Returns the array that owns the tile.
py::array array_of(const Shared& machine, Tile&& tile, bool is_vector) {
  auto held = std::make_unique<Held>(machine, std::move(tile));
  const Index rows = held->tile.rows(), cols = held->tile.cols();
  const float* const words = held->first_word;
  const py::capsule owner(held.get(), kTile, [](PyObject* capsule) {
    delete static_cast<Held*>(PyCapsule_GetPointer(capsule, kTile));
  });
  static_cast<void>(held.release());
  return is_vector ? py::array_t<float>(std::vector<Index>{rows}, words, owner)
                   : py::array_t<float>({rows, cols}, words, owner);
}

// Calls make(). If M is too small and a tile of the same name lives, the message says why it may.
template <class Make>
Tile explaining(const Machine& machine, std::string_view name, const Make& make) {
  try {
    return make();
  } catch (const FastMemoryOverflow& error) {
    const std::string all = ", " + machine.contents();
    if (all.find(fmt::format(", {} ", name)) == std::string::npos) {
      throw;
    }
    throw FastMemoryOverflow(
        fmt::format("{}; the last {} lives until its array is deleted: `del` it before the next",
                    error.what(), name),
        error.missing());
  }
}

const SlowBlock& checked_part(py::handle value, const char* call) {
  if (!py::isinstance<SlowBlock>(value)) {
    throw UsageError(
        fmt::format("{} takes a block of a matrix of the machine, such as Q[0:64], and not {}",
                    call, type_of(value)));
  }
  return *value.cast<const SlowBlock*>();
}

py::array read(const Shared& self, py::handle block) {
  return saying([&] {
    const SlowBlock& part = checked_part(block, "read");
    const SlowMatrix& matrix = part.of->matrix;
    return array_of(
        self,
        explaining(self->machine(), matrix.name(),
                   [&] {
                     const ConstBlock from = matrix.block(part.rows, part.columns);
                     return self->machine().read(part.holds ? from.holding(*part.holds) : from);
                   }),
        part.of->is_vector);
  });
}

py::array make(const Shared& self, const std::string& name, Index rows,
               const std::optional<Index>& cols, float value, py::handle kind) {
  return saying([&] {
    return array_of(self,
                    explaining(self->machine(), name,
                               [&] {
                                 return self->machine().initialize(name, rows, cols.value_or(1),
                                                                   value, kind_of(kind));
                               }),
                    !cols);
  });
}

// Returns the tile whose words an array shows; null if there is none. Words have an address,
// whatever library's view shows them.
const Held* tile_under(const py::array& array) {
  const auto* const word = static_cast<const float*>(array.data());
  const auto after = living.upper_bound(word);
  if (array.size() == 0 || after == living.begin()) {
    return nullptr;
  }
  const Held& before = *std::prev(after)->second;
  return word < before.first_word + before.tile.words() ? &before : nullptr;
}

// Returns the tile that the array is. Throws: UsageError, also for a part of a tile.
const Tile& tile_of(const Shared& self, py::handle value) {
  if (!py::isinstance<py::array>(value)) {
    throw UsageError(fmt::format("write takes a tile, and not {}", type_of(value)));
  }
  const auto array = py::reinterpret_borrow<py::array>(value);
  const py::object base = array.base();
  if (base && PyCapsule_IsValid(base.ptr(), kTile) != 0) {
    const Held& held = *static_cast<const Held*>(PyCapsule_GetPointer(base.ptr(), kTile));
    if (held.machine != self) {
      throw UsageError(fmt::format("the tile {} is of another machine", held.tile.name()));
    }
    if (array.size() == held.tile.words() && (array.flags() & py::array::c_style) != 0) {
      return held.tile;
    }
  }
  if (const Held* const held = tile_under(array)) {
    throw UsageError(fmt::format("write takes a whole tile, and not a view of {0}: give {0} itself",
                                 held->tile.name()));
  }
  throw UsageError(
      "write takes a tile, and this array is none: NumPy made it outside of fast memory; compute "
      "into a tile, by out=tile or tile[...] = value");
}

void write(const Shared& self, py::handle array, py::handle block) {
  saying([&] {
    const SlowBlock& part = checked_part(block, "write");
    const Tile& tile = tile_of(self, array);
    if (!part.of->array.writeable()) {
      throw UsageError(
          fmt::format("{} cannot be written to: its array is read-only", part.of->matrix.name()));
    }
    if (tile.rows() != part.rows.size() || tile.cols() != part.columns.size()) {
      throw ShapeMismatch(fmt::format("the tile {} is {} x {}, and the block {} is {} x {}",
                                      tile.name(), tile.rows(), tile.cols(), text_of(part),
                                      part.rows.size(), part.columns.size()));
    }
    const Block to = part.of->matrix.block(part.rows, part.columns);
    self->machine().write(tile, part.holds ? to.holding(*part.holds) : to);
  });
}

// A machine of M words, as text: "65536", "64K" or "L2*0.25".
Shared machine_of(const std::string& M) {
  return saying([&] {
    const FastMemory size = parse_fast_memory(M, "M");
    if (const auto* part = std::get_if<CachePart>(&size)) {
      return std::make_shared<OwnMachine>(words_of_cache(*part, 1));
    }
    if (const auto* words = std::get_if<Index>(&size)) {
      return std::make_shared<OwnMachine>(*words);
    }
    throw UsageError("M 'auto': expected words, such as 65536, '64K' or 'L2*0.25'");
  });
}

std::shared_ptr<Slow> matrix_of(const std::string& name, const py::array& array, py::handle kind) {
  return saying([&] {
    if (const Held* const held = tile_under(array)) {
      throw InputError(fmt::format(
          "{} is in fast memory, as the tile {}; expected an array of its own: give a copy()", name,
          held->tile.name()));
    }
    SlowMatrix matrix(name, array.shape(0), array.ndim() == 1 ? 1 : array.shape(1),
                      std::make_unique<ArrayBacking>(array));
    return std::make_shared<Slow>(
        Slow{array, std::move(matrix).holding(kind_of(kind)), array.ndim() == 1});
  });
}

Description described(Machine& machine) {
  const PhaseCounts all = total(machine.phases());
  std::vector<Cells> rows;
  const auto add = [&](const std::string& name, const PhaseCounts& counts, bool whole) {
    rows.push_back(
        {{{"phase", whole ? "" : "path", "phase"},
          CellValue(name).shown(name.empty() ? kOutside : name)},
         {"reads", counts.io.reads},
         {"writes", counts.io.writes},
         {in_json(whole ? "io" : ""), counts.io.io()},
         {in_table("share"),
          decimals(100 * quotient(counts.io.io(), std::max<Index>(all.io.io(), 1)).value(), 1,
                   "%")},
         {"peak", counts.peak},
         {in_table("peak / M"), decimals(quotient(counts.peak, machine.capacity()), 3)}});
  };
  for (const PhaseCounts& phase : leaves(machine.phases())) {
    add(phase.path, phase, false);
  }
  add("total", all, true);
  Description of;
  of.say("machine of M={} words", machine.capacity());
  of.text("\n");
  of.facts({{in_json("schema"), 1},
            {in_json_and_csv("M"), machine.capacity()},
            {in_json("live"), machine.live()}});
  of.table("phases", "total", rows);
  if (machine.live() > 0) {
    of.text(fmt::format("\n{} words are live: {}\n", grouped(machine.live()), machine.contents()));
  }
  return of;
}

// Returns a report as JSON, as a table and as CSV.
py::tuple report(const Shared& self) {
  return saying([&] {
    const Description of = described(self->machine());
    return py::make_tuple(to_json(of), printable_lines(to_table(of)), to_csv(of));
  });
}

// Returns the counts of all phases, and of the total with an empty path.
py::list counts(const Shared& self) {
  return saying([&] {
    const RunCounts all = final_counts(self->machine());
    py::list rows;
    const auto add = [&](const PhaseCounts& its) {
      rows.append(py::make_tuple(its.path, its.io.reads, its.io.writes, its.peak, its.indices.reads,
                                 its.indices.writes));
    };
    std::ranges::for_each(all.phases, add);
    add(all.total);
    return rows;
  });
}

void check(const Shared& self, const std::string& text, const std::string& file,
           const std::vector<std::pair<std::string, std::string>>& sizes,
           const std::optional<std::string>& mask) {
  saying([&] {
    Arguments given;
    for (const auto& [name, size] : sizes) {
      given.set(name, parse_size(size, name));
    }
    if (given.contains("M")) {
      throw UsageError("M is a size of the machine, not of a check: leave it out");
    }
    given.set("M", self->machine().capacity());
    NestOfCaller of{
        .text = text, .file = file, .remedy = "give it to check", .only_its_sizes = true};
    if (mask) {
      const auto size = [&](const char* name) {
        return given.contains(name) ? given[name]
                                    : throw UsageError("a check with a mask needs n and m");
      };
      const Shape shape{size("n"), size("m"), 1, 1};
      of.mask = parse_mask(*mask, shape, "mask '" + *mask + "'");
      if (!of.mask.full() &&
          (size_of(of.mask.live_queries()) < shape.n || size_of(of.mask.live_keys()) < shape.m)) {
        throw UsageError("a check takes a mask in which each query and each key has a live pair");
      }
    }
    self->witness().compare(of, {"of this machine", given}, final_counts(self->machine()));
  });
}

// Returns the text of a nest that comes with redblue, and its file. Requires: a name "nest:...".
// Throws: UsageError.
std::pair<std::string, std::string> nest_text(const std::string& name) {
  return saying([&] {
    static_cast<void>(load_nest_named(name));  // refuses an unknown name
    const std::string file = name.substr(name.find(':') + 1) + ".nest";
    const auto found = std::ranges::find_if(
        known_nests(), [&](const KnownFile& nest) { return nest.name == file; });
    return std::pair(std::string(found->text), file);
  });
}

}  // namespace

Index words_of_cache(const CachePart& part, Index threads) {
  const Environment present = Environment::present();
  const WithEnvironment with(present);
  const auto words =
      fast_memory(machine_topology(), part, static_cast<std::size_t>(std::max<Index>(threads, 1)));
  return words && words->words > 0 ? words->words
                                   : cache_words(part.level, part.share, threads);  // says why
}

void add_machine(py::module_& module) {
  py::class_<Slow, std::shared_ptr<Slow>>(module, "SlowMatrix")
      .def("__getitem__", &block_of)
      .def_property_readonly("name", [](const Slow& its) { return its.matrix.name(); })
      .def_property_readonly("shape", &Slow::shape)
      .def("__repr__", [](const Slow& its) {
        return fmt::format("SlowMatrix({}, {} x {})", its.matrix.name(), its.matrix.rows(),
                           its.matrix.cols());
      });
  py::class_<SlowBlock, std::shared_ptr<SlowBlock>>(module, "Block")
      .def("holding",
           [](const SlowBlock& its, py::handle kind) {
             return saying([&] {
               SlowBlock same = its;
               same.holds = kind_of(kind);
               return same;
             });
           })
      .def_property_readonly("shape",
                             [](const SlowBlock& its) -> py::tuple {
                               return its.of->is_vector
                                          ? py::make_tuple(its.rows.size())
                                          : py::make_tuple(its.rows.size(), its.columns.size());
                             })
      .def("__repr__", &text_of);
  py::class_<OwnMachine, Shared>(module, "Machine")
      .def(py::init(&machine_of))
      .def("read", &read)
      .def("make", &make)
      .def("write", &write)
      .def("enter", [](OwnMachine& its,
                       const std::string& name) { return saying([&] { return its.enter(name); }); })
      .def("leave", [](OwnMachine& its, std::size_t open) { saying([&] { its.leave(open); }); })
      .def("weigh", [](OwnMachine& its, py::handle kind,
                       Index words) { saying([&] { its.machine().weigh(kind_of(kind), words); }); })
      .def("report", &report)
      .def("counts", &counts)
      .def("check", &check)
      .def_property_readonly("M", [](OwnMachine& its) { return its.machine().capacity(); })
      .def_property_readonly("live", [](OwnMachine& its) { return its.machine().live(); })
      .def_property_readonly("contents", [](OwnMachine& its) { return its.machine().contents(); });
  module.def("slow_matrix", &matrix_of);
  module.def("nest_text", &nest_text);
}

}  // namespace redblue
