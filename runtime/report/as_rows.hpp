#pragma once
// Rows about schedules of other projects in the reports of `redblue count`, `plan` and `bounds`.
// The schedules are the nests that come with redblue. A row has the words that a nest moves with
// its own tiles, whether the tiles fit in M, and the blocks that redblue would plan for its loops.

#include <optional>
#include <string>
#include <vector>

#include "runtime/run/nest_file.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {

// A project, and its nests. Each nest is for one pass, or for some sizes of it.
struct Project {
  std::string name;
  std::vector<const KnownFile*> nests = {};
};

// Returns all projects with nests, sorted by name. The nest NAME-forward or NAME-backward belongs
// to the project NAME, and so does NAME-VARIANT-forward if NAME-forward is a nest.
const std::vector<Project>& projects();

struct AsRow {
  std::string as;                        // the project, or the name of a nest
  std::string nest = {};                 // the nest that fits the size; empty if none does
  std::string title = {};                // of the nest
  std::vector<std::string> source = {};  // lines of its comment that say where it is from
  std::string missing = {};              // the reason if the row has no words, else empty
  // The nest with its own tiles (`counted`) and with planned blocks (`planned`). Both use the M of
  // the task if the tiles fit in it. Otherwise both use the least M for the tiles, which is
  // `too_many` words larger.
  std::optional<Choice> counted = {}, planned = {};
  Index too_many = 0;
  std::optional<Index> word_bytes = {};  // bytes of a word, if the request sets it
};

// Returns whether some project has a nest of this pass.
bool has_nests(Pass pass);

// Returns the row of a project. Gradients start from O and L. Without `plans` it has no planned
// blocks, for which a search takes most of the time. Requires: has_nests(task.pass) and one level
// of fast memory. Throws: as choices().
AsRow as_row(const Project& project, const Task& task, bool plans = true);
// Returns the row of a nest, with the name of its kernel.
AsRow as_row(const Kernel& nest, const Task& task, bool plans = true);

Cells as_cells(const AsRow& row);
// Returns the last columns of as_cells(): the M that the tiles need, and the planned blocks with
// their words. Null gives the same columns without values, for the row of a redblue kernel.
Cells tiles_cells(const AsRow* row);
// Returns lines of text: the source of each nest and its planned blocks, or the reason why it has
// no words.
std::string to_words(const std::vector<AsRow>& rows);

// Returns the lines of a nest's comment that say where it is from.
std::vector<std::string> source_of(const KnownFile& nest);

}  // namespace redblue
