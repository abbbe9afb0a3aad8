#pragma once
// Copies matrices to and from a store, in ranges of rows of about 1 MiB.

#include <functional>
#include <span>
#include <string>

#include "memsim/range.hpp"
#include "memsim/store/store.hpp"
#include "runtime/run/input_file.hpp"
#include "runtime/run/output_file.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

// Calls visit(rows, words) for each range of rows in order. `words` is room for the range.
void for_rows(Index rows, Index cols,
              const std::function<void(Range rows, std::span<float> words)>& visit);

// Writes the rows of one head of an operand, by the request's rule or from its seed.
void generate_rows(const Request& request, const Signature& operand, const Problem& problem,
                   StoreFile& to);
// `name` is for messages.
void import_rows(const InputFile& reader, const std::string& name, StoreFile& to);
void export_rows(StoreFile& from, OutputFile& to);

}  // namespace redblue
