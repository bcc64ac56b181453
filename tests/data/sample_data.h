// SPDX-License-Identifier: Apache-2.0
//
// Small datasets for tests: numbers whose value tells where they came from.
#ifndef TUTTI_TESTS_DATA_SAMPLE_DATA_H_
#define TUTTI_TESTS_DATA_SAMPLE_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "tensor/tensor.h"

namespace tutti::testing {

/// f32 [rows, columns]: element (r, c) is 100 * r + c.
inline impl::tensor::Tensor numbered(int64_t rows, int64_t columns) {
  std::vector<float> values;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      values.push_back(static_cast<float>(100 * row + column));
  }
  return impl::tensor::Tensor::from_values<float>({rows, columns}, values).value();
}

/// i32 [rows]: 0, 1, 2, ...
inline impl::tensor::Tensor counted(int64_t rows) {
  std::vector<int32_t> values;
  for (int64_t row = 0; row < rows; ++row)
    values.push_back(static_cast<int32_t>(row));
  return impl::tensor::Tensor::from_values<int32_t>({rows}, values).value();
}

/// "x" f32 [columns] and the label "y" i32 [], which is the row.
inline impl::data::Pipeline sample(int64_t rows = 10, int64_t columns = 3) {
  using impl::data::Role;
  return impl::data::Pipeline(
      impl::data::from_slices({{"x", numbered(rows, columns)}, {"y", counted(rows), Role::label}}));
}

inline impl::data::Pipeline range(int64_t count) { return impl::data::Pipeline(impl::data::from_range(0, count)); }

/// The same elements, from a source that cannot be indexed.
inline impl::data::Pipeline forward_only(impl::data::Pipeline pipeline) {
  impl::data::TransformArguments arguments;
  arguments.filter = [](const impl::data::Element &, bool &keep) {
    keep = true;
    return impl::base::Status();
  };
  return std::move(pipeline.apply("filter_callback", {}, std::move(arguments)));
}

/// All elements of one component as numbers, batches flattened; stops after `limit` elements.
template <typename T>
std::vector<T> values_of(impl::data::Iterator &iterator, const std::string &component, int64_t limit = 1 << 20) {
  std::vector<T> values;
  const auto index = static_cast<size_t>(iterator.spec().find(component));
  impl::data::Element element;
  for (int64_t i = 0; i < limit; ++i) {
    const impl::base::Result<bool> more = iterator.next(element);
    if (!more.ok() || !*more) break;
    const auto span = element.components[index].values<T>();
    if (!span.ok()) break;
    values.insert(values.end(), span->begin(), span->end());
  }
  return values;
}

template <typename T>
std::vector<T> values_of(const impl::data::DatasetRef &dataset, const std::string &component,
                         impl::data::IteratorContext context = {}, int64_t limit = 1 << 20) {
  auto iterator = dataset->make_iterator(std::move(context));
  return iterator.ok() ? values_of<T>(**iterator, component, limit) : std::vector<T>();
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_SAMPLE_DATA_H_
