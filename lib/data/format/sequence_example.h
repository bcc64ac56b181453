// SPDX-License-Identifier: Apache-2.0
//
// tf.train.SequenceExample: features of the whole (the context), and lists with one Feature for each step, as a
// protocol buffer (TensorFlow, core/example/example.proto and feature.proto):
//
//   SequenceExample   context = 1 (Features), feature_lists = 2
//   FeatureLists      map<string, FeatureList> feature_list = 1
//   FeatureList       repeated Feature feature = 1, the steps
//
// A feature list becomes a component with the steps in front. How its field (field.h) says what a step is:
//
//   "frames: f32[128]"   every step has 128 numbers: f32[steps, 128]
//   "label: i64 = -1"    one number, -1 for a step without values; no steps where the list is missing
//   "words: bytes[?]"    any number of texts in each step: bytes[steps, longest], filled up with empty texts (numbers
//                        with 0), and how many each step has in a component of its own, "words_lengths: i64[steps]"
//
// Reading is as tolerant as that of Example (example.h). Lists of one element may have different numbers of steps.
//
// Threads: a SequenceExampleParser is immutable.
#ifndef TUTTI_DATA_FORMAT_SEQUENCE_EXAMPLE_H_
#define TUTTI_DATA_FORMAT_SEQUENCE_EXAMPLE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/element/element.h"
#include "data/format/feature_values.h"
#include "data/format/field.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

class SequenceExampleParser {
 public:
  /// The features of the context to read, and the feature lists.
  static base::Result<SequenceExampleParser> create(const std::vector<std::string> &context,
                                                    const std::vector<std::string> &sequences);

  /// The context, then each feature list, with its lengths behind it if there are any.
  const std::vector<ComponentSpec> &components() const { return components_; }

  /// All of them as tensors. DATA_LOSS when the bytes are no SequenceExample; INVALID_ARGUMENT naming feature, step,
  /// what was expected and what came; RESOURCE_EXHAUSTED when few bytes stand for very many elements of filling.
  base::Status parse(std::string_view example, std::span<tensor::Tensor> components) const;

 private:
  SequenceExampleParser(std::vector<Field> context, std::vector<Field> sequences);

  std::vector<Field> context_, sequences_;
  FieldsByName context_by_name_, sequences_by_name_;
  std::vector<ComponentSpec> components_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_SEQUENCE_EXAMPLE_H_
