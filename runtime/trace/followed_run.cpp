#include "runtime/trace/followed_run.hpp"

#include "runtime/text/table.hpp"

namespace redblue {

std::string sizes_text(const FollowedRun& run, bool together) {
  std::string text;
  for (std::size_t k = 0; k < run.sizes.size(); ++k) {
    const auto& [name, size] = run.sizes[k];
    const bool same = together && k + 1 < run.sizes.size() && run.sizes[k + 1].second == size;
    text += name + " = ";
    if (!same) {
      text += grouped(size) + (k + 1 < run.sizes.size() ? ", " : "");
    }
  }
  return text;
}

Json followed_json(const FollowedRun& run) {
  Json json = {{"kernel", run.kernel}};
  for (const auto& [name, size] : run.sizes) {
    json[name] = size;
  }
  json["M"] = run.M;
  return json;
}

}  // namespace redblue
