// SPDX-License-Identifier: Apache-2.0
//
// Names inside a directory of checkpoints: the one place that knows them. Pure functions and constants.
#ifndef TUTTI_CHECKPOINT_LAYOUT_H_
#define TUTTI_CHECKPOINT_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

namespace tutti::impl::checkpoint {

inline constexpr std::string_view kCheckpointPrefix = "checkpoint-";
/// Hidden directories that are being written or removed: "<prefix><step>.<process>.<number>".
inline constexpr std::string_view kUnfinishedPrefix = ".unfinished-checkpoint-";

inline constexpr std::string_view kWeightsFile = "weights.safetensors";
inline constexpr std::string_view kSlotsFile = "slots.safetensors";
/// Slots that predicting may need: the moving averages.
inline constexpr std::string_view kAveragesFile = "averages.safetensors";
inline constexpr std::string_view kGraphFile = "graph.json";
inline constexpr std::string_view kManifestFile = "manifest.json";

inline std::string checkpoint_path(std::string_view directory, int64_t step) {
  return base::concat(directory, "/", kCheckpointPrefix, step);
}

/// The step of a directory name; nothing for a name no writer makes ("checkpoint-007", "checkpoint-5.old").
inline std::optional<int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix)) return std::nullopt;
  const std::optional<int64_t> step = base::parse_integer(name.substr(kCheckpointPrefix.size()));
  if (!step || *step < 0 || base::concat(kCheckpointPrefix, *step) != name) return std::nullopt;
  return step;
}

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_LAYOUT_H_
