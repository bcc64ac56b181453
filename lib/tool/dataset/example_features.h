// SPDX-License-Identifier: Apache-2.0
//
// Which features the examples of a TFRecord file have. Source: tensorflow/core/example/{example,feature}.proto.
#ifndef TUTTI_TOOL_DATASET_EXAMPLE_FEATURES_H_
#define TUTTI_TOOL_DATASET_EXAMPLE_FEATURES_H_

#include <string>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti::tool {

/// The features that the first hundred records have, by name, as parse_example takes them: "label: i64",
/// "box: f32[4]", "words: bytes[?]" where lengths differ. Empty when a record is no tf.train.Example.
std::vector<std::string> find_features(const Dataset &records);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_EXAMPLE_FEATURES_H_
