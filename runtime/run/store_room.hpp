#pragma once
// The room of a run on disk, from layouts and formulas alone.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "memsim/store/store.hpp"
#include "runtime/run/outcome.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

using StoreFiles = std::map<std::string, std::shared_ptr<StoreFile>, std::less<>>;

// The layout of an operand for the kernel that reads it.
StoreLayout input_layout(const Store& store, const Signature& operand, const Plan& plan);

// What a resumed run finds must not share a granule with what it writes. Of a result; and of a
// matrix that stages leave for each other among the results.
StoreFile::Use::Apart apart(const Signature& result, const Plan& plan);
StoreFile::Use::Apart apart_left(std::string_view matrix, const Plan& plan);

// Bytes of the files that the run will make, with their headers, tables and whole sectors. What
// sectors add to other intermediates is estimated: as much as they add to the largest operand.
// `there` are operands that need no room.
Words room_needed(const Store& store, const Report& report, const StoreFiles& there,
                  const Request::OnDisk& asked);

// Bytes of the temporary files that an earlier run left for this one.
Words room_left(const Store& store);

}  // namespace redblue
