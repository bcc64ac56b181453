// SPDX-License-Identifier: Apache-2.0
//
// What training and evaluating gave, as JSON and as a table.
#ifndef TUTTI_TOOL_TRAINING_RESULT_TABLE_H_
#define TUTTI_TOOL_TRAINING_RESULT_TABLE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"

namespace tutti::tool {

/// "max_steps", "epochs", "end_of_input", "stopped", "max_seconds"; "" for 0.
std::string reason_name(int32_t reason);

/// What the metrics of a completed configuration are reported as.
std::vector<std::string> metric_names(const ConfigNode &config);

/// A number, or null for what is none; of a tensor a list of lists.
nlohmann::ordered_json number_json(double number);
nlohmann::ordered_json tensor_json(const Tensor &tensor);

/// {"step", "examples", "seconds", "examples_per_second", "loss", "metrics": {...}}.
nlohmann::ordered_json result_json(const Result &result);

/// A row for each value, a column for each result that is no null.
void print_results(const nlohmann::ordered_json &training, const nlohmann::ordered_json &evaluation);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_RESULT_TABLE_H_
