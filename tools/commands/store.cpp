// redblue store: lists, verifies, imports and exports matrices of a store on disk.

#include "memsim/store/store.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "kernels/attention.hpp"
#include "runtime/report/context.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/store_rows.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/sizes.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/problem.hpp"

namespace redblue {
namespace {

using Path = std::filesystem::path;
using Texts = std::vector<std::string>;

std::string file_of(const std::string& name) {
  return name + std::string(Store::kSuffix);
}

StoreOptions options_of(Index granule_bytes) {
  StoreOptions options;
  options.granule_bytes = granule_bytes;
  options.before_each = stop_if_asked();
  return options;
}

// Throws: UsageError for a bad name. A valid name is not a path and does not clash with a run's
// files.
void check_name(const std::string& name, const std::string& item) {
  const bool good = std::ranges::all_of(name, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
  });
  if (!good) {
    throw UsageError(fmt::format(
        "{}: '{}' is no name of a matrix: expected letters, digits, _ and -", item, name));
  }
}

std::pair<std::string, Path> name_and_file(const std::string& item) {
  const std::size_t equals = item.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == item.size()) {
    throw UsageError(fmt::format("'{}': expected NAME=FILE, for example A1=a1.npy", item));
  }
  return {item.substr(0, equals), item.substr(equals + 1)};
}

void check_directory(const Path& directory) {
  if (!std::filesystem::exists(directory)) {
    throw std::runtime_error(fmt::format(
        "there is no store {}: redblue store import or generate makes one", directory.string()));
  }
}

// Returns the directory given as DIR, or as file:DIR in the form of a run.
Path directory_meant(const std::string& text) {
  return text.starts_with("file:") ? store_directory({text, "directory"}) : Path(text);
}

// Returns the requested matrices, or all.
Texts chosen(const Store& store, const Texts& asked) {
  const Texts all = store.names();
  if (all.empty()) {
    throw std::runtime_error(fmt::format(
        "{} is no store: no matrix is there (redblue store import or generate makes one)",
        store.directory().string()));
  }
  for (const std::string& name : asked) {
    if (std::ranges::find(all, name) == all.end()) {
      const std::string where = store.directory().string();
      throw std::runtime_error(
          fmt::format("the store {0} has no matrix {1} (redblue store info {0})", where, name));
    }
  }
  return asked.empty() ? all : asked;
}

// Makes a matrix. It gets its name only when it is complete.
template <class Fill>
void make(Store& store, const std::string& name, Index rows, Index cols, const Fill& fill) {
  const auto file = store.create(name + std::string(Store::kTemporarySuffix),
                                 StoreLayout::row_major(rows, cols, store.granule_bytes()),
                                 StoreFile::Life::temporary);
  fill(*file);
  file->seal();
  file->stay_as(file_of(name));
}

Cells matrix_cells(const std::string& name, const StoredMatrix& matrix) {
  const auto& [rows, columns] = matrix.layout();
  const auto both = [](Index r, Index c) {
    return CellValue(Json::array({r, c})).shown(fmt::format("{} x {}", r, c));
  };
  return {{{"matrix", "name", "matrix"}, name},
          {"rows", rows.extent},
          {"columns", columns.extent},
          {{"block", "block", ""}, both(rows.block, columns.block)},
          {in_csv("block_rows"), rows.block},
          {in_csv("block_columns"), columns.block},
          {{"granule", "granule", ""}, both(rows.piece, columns.piece)},
          {in_csv("granule_rows"), rows.piece},
          {in_csv("granule_columns"), columns.piece},
          {"bytes", StoredMatrix::file_bytes(matrix.layout()).value()},
          {in_json("element"), "float32"},
          {"fingerprint", fmt::format("{:016x}", matrix.fingerprint())}};
}

int info(const Path& directory, const Texts& asked, Format format) {
  check_directory(directory);
  Store store(directory);
  Description of;
  of.fact("schema", kSchema);
  of.table("matrices", rows_of(chosen(store, asked), [&](const std::string& name) {
             return matrix_cells(name, *store.open(file_of(name))->matrix());
           }));
  print(of, format);
  return 0;
}

int verify(const Path& directory, const Texts& asked) {
  check_directory(directory);
  Store store(directory, options_of(StoreOptions().granule_bytes));
  int code = 0;
  for (const std::string& name : chosen(store, asked)) {
    try {
      const auto [granules, unwritten] = store.open(file_of(name))->matrix()->verify();
      const Index written = granules - unwritten;
      print(fmt::format("{}: {} {} what was written{}\n", printable(name),
                        counted(written, "granule"), written == 1 ? "is" : "are",
                        unwritten == 0   ? ""
                        : unwritten == 1 ? ", 1 never was"
                                         : fmt::format(", {} never were", unwritten)));
    } catch (const StoreError& error) {  // other matrices may still be complete
      say(error.what());
      code = 1;
    }
  }
  return code;
}

int import_files(const Path& directory, const Texts& items, Index granule_bytes) {
  for (const std::string& item : items) {  // checks the names before making a store
    check_name(name_and_file(item).first, item);
  }
  std::optional<Store> store;
  for (const std::string& item : items) {
    const auto [name, path] = name_and_file(item);
    const InputFile reader(path);
    if (reader.pattern() != nullptr) {
      throw InputError(
          fmt::format("{} of {}: a store has dense matrices, from .npy or .safetensors files", name,
                      path.string()));
    }
    if (reader.shape().size() > 2) {
      throw InputError(
          fmt::format("{} of {} has {} dimensions, expected 1 or 2: a store has no "
                      "heads",
                      name, path.string(), reader.shape().size()));
    }
    if (!store) {
      store.emplace(directory, options_of(granule_bytes));
    }
    make(*store, name, reader.rows(), reader.cols(),
         [&, &matrix = name](StoreFile& file) { import_rows(reader, matrix, file); });
    print(fmt::format("{}: {} x {} from {}{}\n", name, reader.rows(), reader.cols(),
                      printable(path.string()),
                      reader.type() == ElementType::float32
                          ? ""
                          : fmt::format(", {} converted to float32", to_string(reader.type()))));
  }
  return 0;
}

// Generates the attention operands that a run without files would use.
int generate(const Path& directory, const Texts& asked, const Request& request, const Shape& shape,
             Index granule_bytes) {
  const std::vector<Signature> weighted = {kA1, kA2, kA3, kX, kY, kdO};
  const std::vector<Signature> all = {kA1, kA2, kA3, kX, kY, kdO, kQ, kK, kV};
  std::vector<Signature> operands = weighted;
  if (!asked.empty()) {
    operands = all;
    std::erase_if(operands, [&](const Signature& operand) {
      return std::ranges::find(asked, operand.name) == asked.end();
    });
  }
  for (const std::string& name : asked) {
    if (find_operand(operands, name) == nullptr) {
      throw UsageError(fmt::format("'{}': expected some of A1, A2, A3, X, Y, dO, Q, K, V", name));
    }
  }
  Problem problem(shape);
  problem.inputs = find_operand(operands, kQ.name) == nullptr ? Inputs::weighted : Inputs::plain;
  check_made(request, operands, "the store");
  Store store(directory, options_of(granule_bytes));
  for (const Signature& operand : operands) {
    const std::string name(operand.name);
    const Index rows = operand.rows_of(shape);
    const Index cols = operand.cols_of(shape);
    make(store, name, rows, cols,
         [&](StoreFile& file) { generate_rows(request, operand, problem, file); });
    const auto made = request.make.find(name);
    print(fmt::format("{}: {} x {} {}\n", name, rows, cols,
                      made != request.make.end()
                          ? fmt::format("made: {}", to_string(made->second))
                          : fmt::format("from seed {}", request.seed.value_or(kDefaultSeed))));
  }
  return 0;
}

int export_files(const Path& directory, const Texts& items) {
  check_directory(directory);
  Store store(directory, options_of(StoreOptions().granule_bytes));
  Texts names;
  std::set<Path> places;
  bool data_on_standard_output = false;
  for (const std::string& item : items) {
    const auto [name, path] = name_and_file(item);
    names.push_back(name);
    data_on_standard_output |= is_standard_output(path);
    if (!places.insert(place_of(path)).second) {
      throw UsageError(fmt::format("'{}': another matrix goes to this file", item));
    }
  }
  static_cast<void>(chosen(store, names));
  std::vector<OutputFile> writers;
  std::string said;
  for (const std::string& item : items) {
    const auto [name, path] = name_and_file(item);
    const auto file = store.open(file_of(name));
    const Index rows = file->rows();
    const Index cols = file->cols();
    // L has one dimension, as in a run.
    writers.emplace_back(NpyWriter(
        path, name == kL.name && cols == 1 ? std::vector{rows} : std::vector{rows, cols}));
    export_rows(*file, writers.back());
    said += fmt::format("{}: {} x {} to {}\n", name, rows, cols, printable(path.string()));
  }
  print(said, beside(data_on_standard_output));
  for (OutputFile& writer : writers) {  // commits all files or none
    writer.commit();
  }
  return 0;
}

Index granule_of(const TextOption& option) {
  const auto granule = option.get();
  return granule ? parse_granule(*granule) : StoreOptions().granule_bytes;
}

}  // namespace

Action add_store(CLI::App& app) {
  struct Options {
    std::function<int(const Options&)> action;  // of the subcommand in use
    std::string directory;
    Texts items;
    std::optional<TextOption> format, import_granule, granule;
    std::optional<TableOptions> made;
  };
  const auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const char* items, bool required) {
    CLI::App* command = &add_subcommand(app, name, help);
    command->add_option("directory", options->directory, "directory of the store")
        ->required()
        ->option_text(" ");
    command->add_option("items", options->items, items)->required(required)->option_text(" ");
    return command;
  };
  // Actions take the options as an argument: a copy inside an action would keep them alive forever.
  const auto runs = [options](CLI::App* command, std::function<int(const Options&)> action) {
    command->final_callback([options, action] { options->action = action; });
  };

  CLI::App* info_command =
      add("info", "list the matrices of a store", "matrices (default: all)", false);
  options->format.emplace(*info_command, "--format", "output format (default: table)",
                          "table|json|csv");
  runs(info_command, [](const Options& given) {
    return info(directory_meant(given.directory), given.items, parse_format(*given.format));
  });
  runs(add("verify", "check the contents of matrices against their checksums",
           "matrices (default: all)", false),
       [](const Options& given) { return verify(directory_meant(given.directory), given.items); });
  CLI::App* import_command = add("import", "read matrices from .npy files or .safetensors tensors",
                                 "NAME=FILE: a matrix and the file to read", true);
  options->import_granule.emplace(*import_command, "--granule", "unit of transfer (default: 64KiB)",
                                  "BYTES");
  runs(import_command, [](const Options& given) {
    return import_files(directory_meant(given.directory), given.items,
                        granule_of(*given.import_granule));
  });
  CLI::App* generate_command =
      add("generate", "make operands from a seed",
          "operands to make: A1, A2, A3, X, Y, dO, Q, K, V (default: the first six)", false);
  options->made.emplace(*generate_command, Keys{"n", "m", "d", "make", "seed", "scale"});
  options->granule.emplace(*generate_command, "--granule", "unit of transfer (default: 64KiB)",
                           "BYTES");
  runs(generate_command, [](const Options& given) {
    Request request;
    given.made->fill(request);
    if (!request.n || !request.d) {
      throw UsageError(request.n ? "--d is missing" : "--n is missing");
    }
    return generate(directory_meant(given.directory), given.items, request,
                    {*request.n, request.m.value_or(*request.n), *request.d},
                    granule_of(*given.granule));
  });
  runs(add("export", "write matrices to .npy files",
           "NAME=FILE: a matrix and the file to write (-: standard output)", true),
       [](const Options& given) {
         return export_files(directory_meant(given.directory), given.items);
       });
  return [options] { return options->action(*options); };
}

}  // namespace redblue
