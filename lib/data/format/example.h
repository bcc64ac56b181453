// SPDX-License-Identifier: Apache-2.0
//
// tf.train.Example: named lists of numbers or texts, as a protocol buffer (TensorFlow, core/example/example.proto and
// feature.proto):
//
//   Example      features = 1
//   Features     map<string, Feature> feature = 1
//   Feature      oneof bytes_list = 1 | float_list = 2 | int64_list = 3, each with `repeated value = 1`
//
// Reading takes packed and unpacked lists, any order of the map, the last of equal names, and skips what it does not
// know. What is written: encode_example.h.
//
// Threads: pure functions; an ExampleParser is immutable.
#ifndef TUTTI_DATA_FORMAT_EXAMPLE_H_
#define TUTTI_DATA_FORMAT_EXAMPLE_H_

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data/dataset/stage.h"
#include "data/element/element.h"
#include "data/format/feature_values.h"
#include "data/format/field.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

class ExampleParser {
 public:
  /// The features to read (field.h); their types are bytes, floats, which come from float lists, and integers and
  /// booleans, which come from int64 lists. Numbers of a shape also come from a bytes list with one text, the values as
  /// they lie in memory, little-endian.
  static base::Result<ExampleParser> create(const std::vector<std::string> &features);

  const std::vector<Field> &fields() const { return fields_; }

  /// The features as tensors, in the order of fields(), into `components`. DATA_LOSS when the bytes are no Example;
  /// INVALID_ARGUMENT naming the feature, what was expected and what came.
  base::Status parse(std::string_view example, std::span<tensor::Tensor> components) const;
  /// The same as row `row` of buffers; all fields must have a fixed size.
  base::Status parse_row(std::string_view example, std::span<const RowTarget> targets, int64_t row) const;

 private:
  explicit ExampleParser(std::vector<Field> fields) : fields_(std::move(fields)), by_name_(fields_) {}
  /// Where in the example each field's Feature is; empty where it is missing.
  void find(std::string_view example, std::span<std::string_view> found) const;

  std::vector<Field> fields_;
  FieldsByName by_name_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_EXAMPLE_H_
