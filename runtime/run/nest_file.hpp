#pragma once
// Nests as names of kernels: a file (file:mine.nest, or mine.nest), a schedule of another project
// that comes with redblue (nest:flash-attention-2-forward), or a nest that this program loaded
// (loaded:mine).

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/known_file.hpp"

namespace redblue {

// Returns whether a name of a kernel names a nest.
bool names_nest(std::string_view name);
// Returns the name of a nest for the text of an option: nest:NAME, loaded:NAME, or file:TEXT for
// other texts.
std::string named_nest(const std::string& text);
// Returns the same. A relative path of a nest starts at `directory`.
std::string nest_in(const std::filesystem::path& directory, const std::string& text);
// Loads the nest. Returns the name of its kernel: file:mine.nest. Throws UsageError if the content
// is wrong (with the line), or for an unknown schedule. Throws std::system_error if the file cannot
// be read, and InputError if it is too large.
std::string load_nest_named(const std::string& name);

// Returns the nests that come with redblue, as compiled into this program. Their names end in
// .nest.
const std::vector<KnownFile>& known_nests();

}  // namespace redblue
