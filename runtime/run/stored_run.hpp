#pragma once
// A run in a store on disk: its operands are matrices of the store, or come into it by rows from
// files or from a seed; intermediates live there; results stay there under their names, and go to
// files where asked. In memory are M words, a few buffers, and no matrix.
//
// With Request::OnDisk::resume, each finished row block leaves a checkpoint, and a run that was
// ended goes on from there: with the same operands and plan, to the same bits and counts.

#include "memsim/store/store.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/npy.hpp"

namespace redblue {

// Throws: as run(); StoreError for what the store's files hold.
Report run_in_store(const Request& request, const Around& around = nullptr,
                    const Progress* progress = nullptr);

// A matrix as rows from somewhere else: into a store, and out of it. `name` is for messages; what
// the request does not make is made from its seed. Throws: as NpyReader, NpyWriter, fill_made() and
// StoredMatrix.
void generate_rows(const Request& request, const Signature& operand, const Shape& shape,
                   StoreFile& to);
void import_rows(const NpyReader& reader, const std::string& name, StoreFile& to);
void export_rows(StoreFile& from, NpyWriter& to);

}  // namespace redblue
