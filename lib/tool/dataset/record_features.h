// SPDX-License-Identifier: Apache-2.0
//
// Components as features of a tf.train.Example, which has lists of texts, f32 and i64, without shapes.
#ifndef TUTTI_TOOL_DATASET_RECORD_FEATURES_H_
#define TUTTI_TOOL_DATASET_RECORD_FEATURES_H_

#include <string>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti::tool {

/// Each component as parse_example reads it again: "image: u8[224, 224, 3]", "words: bytes[?]". What was f64 is f32.
/// Throws UsageError for a component of a shape that an Example does not tell: more than its first dimension varies.
std::vector<std::string> record_features(const Dataset &dataset);

/// The tensor to write: numbers of a shape and less than 32 bits become one text of the values as they lie in memory;
/// as a list each would take up to ten bytes. All others stay.
Tensor record_value(const Tensor &tensor);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_RECORD_FEATURES_H_
