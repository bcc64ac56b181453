// SPDX-License-Identifier: Apache-2.0
#include "tool/training/saved_model_entry.h"

#include <filesystem>
#include <utility>

namespace tutti::tool {

namespace {
constexpr const char *kSavedModel = "saved_model";
}

bool is_saved_model(const ConfigNode &layer) { return layer.is_map() && layer.find(kSavedModel) != nullptr; }

void complete_saved_model(ConfigNode &layer) {
  check_keys(layer, {kSavedModel, "as"});
  ConfigNode &saved = *layer.find(kSavedModel);
  if (saved.is_scalar()) {
    ConfigNode map = map_node("path", saved);
    map.at = saved.at;
    set_paths(map, saved.path);
    saved = std::move(map);
  }
  check_keys(saved, {"path", "output", "feature"});
  ConfigNode *const path = saved.find("path");
  if (path == nullptr) refuse(saved, "'path' is missing: a checkpoint, or a directory of them");
  if (text_of(*path).empty()) refuse(*path, "expected a checkpoint, or a directory of them, got ''");
  path->text = std::filesystem::absolute(text_of(*path)).lexically_normal().string();
  text_in(saved, "output"), text_in(saved, "feature");
}

tutti_value write_saved_model(const Graph &graph, const ConfigNode &layer, tutti_value previous) {
  const ConfigNode &saved = *layer.find(kSavedModel);
  const std::string output = text_in(saved, "output"), feature = text_in(saved, "feature");
  if (previous.id == 0 && !feature.empty())
    refuse(*saved.find("feature"), "it says which feature the result before it stands for, and there is none");
  return graph.saved_model(text_of(*saved.find("path")).c_str(), output.c_str(), previous, feature.c_str());
}

}  // namespace tutti::tool
