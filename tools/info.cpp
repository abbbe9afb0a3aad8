// redblue info: what this binary is, and what the machine offers it.

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kernels/kernel.hpp"
#include "runtime/build_info.hpp"
#include "runtime/memory.hpp"
#include "tools/command.hpp"
#include "tools/print.hpp"

namespace redblue {

Action add_info(CLI::App& app) {
  const auto format = std::make_shared<TextOption>(app, "--format", "table, json or csv", "FORMAT");
  return [format] {
    const Format chosen = parse_format(*format);
    const std::uint64_t memory = memory_available();
    if (chosen == Format::json) {
      const nlohmann::ordered_json json = {{"schema", 1},
                                           {"redblue", build_info::kVersion},
                                           {"compiler", build_info::kCompiler},
                                           {"build_type", build_info::kBuildType},
                                           {"system", build_info::kSystem},
                                           {"word", "float32"},
                                           {"kernels", kernels().size()},
                                           {"memory_available_bytes", memory}};
      print(json.dump(2) + "\n");
    } else {
      print(
          fmt::format("redblue           {}\ncompiler          {}, {}\nsystem            {}\n"
                      "word              float32, 4 bytes\nkernels           {}\n"
                      "memory available  {}\n",
                      build_info::kVersion, build_info::kCompiler, build_info::kBuildType,
                      build_info::kSystem, kernels().size(), format_bytes(memory)));
    }
    return 0;
  };
}

}  // namespace redblue
