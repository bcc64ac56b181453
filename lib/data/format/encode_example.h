// SPDX-License-Identifier: Apache-2.0
//
// Writing tf.train.Example (example.h) and SequenceExample (sequence_example.h), byte by byte as TensorFlow serializes
// them deterministically: names in the order of their bytes, numbers packed.
//
//   example = encode_example({{"label", label}, {"image", bytes}});
//   example = encode_sequence_example({{"id", id}}, {{"frames", {frames}}, {"words", {words, lengths}}});
//
// Texts become a bytes list, floats a float list, integers and booleans an int64 list.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_FORMAT_ENCODE_EXAMPLE_H_
#define TUTTI_DATA_FORMAT_ENCODE_EXAMPLE_H_

#include <map>
#include <string>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// An Example of tensors, each flattened. OUT_OF_RANGE for a u64 beyond i64.
base::Result<std::string> encode_example(const std::map<std::string, tensor::Tensor> &features);

/// A feature list: one step for each row of `values`, each flattened. With `lengths`, an integer for each step, only so
/// many of a step's own rows are written: what parsing gives for lists whose steps differ. It may be empty.
struct FeatureList {
  tensor::Tensor values;
  tensor::Tensor lengths = {};
};

/// A SequenceExample. INVALID_ARGUMENT naming the list whose tensors do not fit together.
base::Result<std::string> encode_sequence_example(const std::map<std::string, tensor::Tensor> &context,
                                                  const std::map<std::string, FeatureList> &lists);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_ENCODE_EXAMPLE_H_
