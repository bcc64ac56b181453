// SPDX-License-Identifier: Apache-2.0
#include "data/format/encode_example.h"

#include <protozero/pbf_writer.hpp>
#include <span>
#include <utility>
#include <vector>

#include "data/format/feature_values.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using protozero::pbf_writer;
using tensor::Tensor;

namespace {

// Some elements of a tensor, in row-major order.
struct Values {
  const Tensor &tensor;
  int64_t first, count;

  template <typename T>
  std::span<const T> numbers() const {
    return std::span(tensor.data_as<T>(), static_cast<size_t>(tensor.elements()))
        .subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  }
};

Values all_of(const Tensor &tensor) { return {tensor, 0, tensor.elements()}; }

Status write_integers(const Values &from, pbf_writer &list) {
  std::vector<int64_t> values;
  Status status;
  tensor::visit_dtype(from.tensor.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      for (const T value : from.numbers<T>()) {
        if (static_cast<uint64_t>(value) > static_cast<uint64_t>(INT64_MAX) && std::is_same_v<T, uint64_t>)
          status = base::out_of_range("the value ", value, " does not fit an int64 list");
        values.push_back(static_cast<int64_t>(value));
      }
    }
  });
  if (!values.empty()) list.add_packed_int64(1, values.begin(), values.end());
  return status;
}

void write_floats(const Values &from, pbf_writer &list) {
  std::vector<float> values;
  tensor::visit_dtype(from.tensor.dtype(), [&]<typename T>(T) {
    for (const T value : from.numbers<T>())
      values.push_back(static_cast<float>(value));
  });
  if (!values.empty()) list.add_packed_float(1, values.begin(), values.end());
}

// A Feature.
Result<std::string> encode(const Values &from) {
  std::string list, feature;
  pbf_writer writer(list);
  const ListKind kind = wanted_kind(from.tensor.dtype());
  if (kind == ListKind::integers) TUTTI_TRY(write_integers(from, writer));
  if (kind == ListKind::floats) write_floats(from, writer);
  for (int64_t i = from.first; kind == ListKind::bytes && i < from.first + from.count; ++i) {
    const std::string_view text = tensor::bytes_at(from.tensor, i);
    writer.add_bytes(1, text.data(), text.size());
  }
  pbf_writer(feature).add_message(static_cast<protozero::pbf_tag_type>(kind), list);
  return feature;
}

// One entry of a map<string, message>.
void add_entry(const std::string &name, const std::string &message, std::string &map) {
  std::string entry;
  pbf_writer writer(entry);
  writer.add_string(1, name);
  writer.add_message(2, message);
  pbf_writer(map).add_message(1, entry);
}

Result<std::string> encode_features(const std::map<std::string, Tensor> &features) {
  std::string map;
  for (const auto &[name, tensor] : features) {
    if (tensor.empty()) return base::invalid_argument("feature '", name, "' has no tensor");
    const Result<std::string> feature = encode(all_of(tensor));
    if (!feature.ok()) return feature.status().wrap(base::concat("feature '", name, "' cannot be written"));
    add_entry(name, *feature, map);
  }
  return map;
}

// How many rows of each step are written; nothing when all of them are.
Result<std::vector<int64_t>> lengths_of(const FeatureList &list) {
  std::vector<int64_t> lengths;
  if (list.lengths.empty()) return lengths;
  const int64_t steps = list.values.rows();
  if (list.values.rank() < 2) {
    return base::invalid_argument("expected steps with rows of their own where lengths are given, got ",
                                  list.values.describe());
  }
  if (list.lengths.rank() != 1 || list.lengths.elements() != steps || list.lengths.dtype() == tensor::DType::boolean) {
    return base::invalid_argument("expected a length for each of ", steps, " steps, got ", list.lengths.describe());
  }
  tensor::visit_dtype(list.lengths.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      for (const T length : all_of(list.lengths).numbers<T>())
        lengths.push_back(static_cast<int64_t>(length));
    }
  });
  if (static_cast<int64_t>(lengths.size()) != steps) {
    return base::invalid_argument("expected lengths that are integers, got ", list.lengths.describe());
  }
  for (size_t step = 0; step < lengths.size(); ++step) {
    if (lengths[step] >= 0 && lengths[step] <= list.values.shape()[1]) continue;
    return base::invalid_argument("expected lengths from 0 to ", list.values.shape()[1], ", got ", lengths[step],
                                  " for step ", step);
  }
  return lengths;
}

// A FeatureList.
Result<std::string> encode(const FeatureList &list) {
  if (list.values.empty()) return base::invalid_argument("it has no tensor");
  if (list.values.rank() < 1) {
    return base::invalid_argument("expected a tensor with steps in front, got ", list.values.describe());
  }
  TUTTI_ASSIGN(const std::vector<int64_t> lengths, lengths_of(list));
  const int64_t stride = list.values.shape().elements_from(1);
  std::string features;
  for (int64_t step = 0; step < list.values.rows(); ++step) {
    const int64_t count =
        lengths.empty() ? stride : lengths[static_cast<size_t>(step)] * list.values.shape().elements_from(2);
    TUTTI_ASSIGN(const std::string feature, encode({list.values, step * stride, count}));
    pbf_writer(features).add_message(1, feature);
  }
  return features;
}

}  // namespace

Result<std::string> encode_example(const std::map<std::string, Tensor> &features) {
  TUTTI_ASSIGN(const std::string map, encode_features(features));
  std::string example;
  pbf_writer(example).add_message(1, map);
  return example;
}

Result<std::string> encode_sequence_example(const std::map<std::string, Tensor> &context,
                                            const std::map<std::string, FeatureList> &lists) {
  TUTTI_ASSIGN(const std::string features, encode_features(context));
  std::string map, example;
  for (const auto &[name, list] : lists) {
    const Result<std::string> encoded = encode(list);
    if (!encoded.ok()) return encoded.status().wrap(base::concat("feature list '", name, "' cannot be written"));
    add_entry(name, *encoded, map);
  }
  pbf_writer writer(example);
  writer.add_message(1, features);
  writer.add_message(2, map);
  return example;
}

}  // namespace tutti::impl::data
