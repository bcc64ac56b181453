// SPDX-License-Identifier: Apache-2.0
//
// What is in a checkpoint, as JSON and as tables.
#ifndef TUTTI_TOOL_MODEL_INSPECT_CHECKPOINT_H_
#define TUTTI_TOOL_MODEL_INSPECT_CHECKPOINT_H_

#include <nlohmann/json.hpp>

#include "tool/model/checkpoint_files.h"

namespace tutti::tool {

/// {"path", "step", "epoch", "examples", "bytes", "totals", "variables", "options", "metrics", "run", "files"}, without
/// what a file of variables alone does not tell.
nlohmann::ordered_json checkpoint_json(const CheckpointContent &checkpoint);

/// A line with path, step, epoch and examples; a row for each variable; sums, options and metrics.
void print_checkpoint(const CheckpointContent &checkpoint);

/// To standard output.
void print_json(const nlohmann::ordered_json &value);
/// "[2, 3]", "[batch, 28, 28]".
std::string shape_text(const nlohmann::ordered_json &shape);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_MODEL_INSPECT_CHECKPOINT_H_
