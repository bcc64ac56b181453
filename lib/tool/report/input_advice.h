// SPDX-License-Identifier: Apache-2.0
//
// What makes a slow input pipeline faster, from the report of a walk over it (tutti_iterator_get_report).
#ifndef TUTTI_TOOL_REPORT_INPUT_ADVICE_H_
#define TUTTI_TOOL_REPORT_INPUT_ADVICE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::tool {

/// `stage`: the one that limits, as the report names it.
std::vector<std::string> input_advice(const nlohmann::ordered_json &report, const std::string &stage);
/// One sentence: what limits the pipeline, or that nothing in it does.
std::string input_sentence(const nlohmann::ordered_json &report);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_INPUT_ADVICE_H_
