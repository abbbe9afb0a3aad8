#pragma once
// Computes the disk space that a run in a store needs, from layouts and formulas only.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "memsim/store/store.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

using StoreFiles = std::map<std::string, std::shared_ptr<StoreFile>, std::less<>>;

// Returns the layout of an operand that suits the kernel that reads it.
StoreLayout input_layout(const Store& store, const Signature& operand, const Plan& plan);

// Returns how the windows of a file must be kept apart. Words that a resumed run keeps must not
// share a granule with words that it writes. apart() is for a result, apart_left() for a matrix
// that one stage leaves for the next and that is stored like a result.
StoreFile::Use::Apart apart(const Signature& result, const Plan& plan);
StoreFile::Use::Apart apart_left(std::string_view matrix, const Plan& plan);

// Returns the bytes of the files that the run will create, with headers, tables and padding to
// whole sectors. The padding of other intermediates is an estimate: the same share as for the
// largest operand. `there` holds operands that are already on disk.
Words room_needed(const Store& store, const Report& report, const StoreFiles& there,
                  const Request::OnDisk& asked);

// Returns the bytes of the temporary files that an earlier run left for this run.
Words room_left(const Store& store);

}  // namespace redblue
