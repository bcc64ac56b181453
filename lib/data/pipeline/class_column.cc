// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/class_column.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Tensor;

Result<ClassColumn> ClassColumn::find(const ElementSpec &spec, std::string_view component, int64_t classes) {
  TUTTI_ASSIGN(const size_t index, find_component(spec, component));
  const ComponentSpec &label = spec.components[index];
  graph::Dims dims = label.dims;
  if (spec.is_batched()) dims.erase(dims.begin());
  const graph::Dim count = graph::element_count(dims);
  if (tensor::is_integer(label.dtype) && count == graph::Dim(1)) {
    return ClassColumn(label.name, index, label.dtype, classes);
  }
  const bool may_be_one_hot = !(count == graph::Dim(1)) && label.dtype != tensor::DType::bytes;
  return base::invalid_argument("component '", label.name, "': expected a single integer for each ",
                                spec.is_batched() ? "row" : "element", ", the number of its class, got ",
                                label.to_string(),
                                may_be_one_hot ? "; convert one-hot labels by a map with argmax" : "");
}

std::string ClassColumn::describe(std::string_view whose, const void *label) const {
  std::string number;
  tensor::visit_dtype(dtype_, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) number = std::to_string(*static_cast<const T *>(label));
  });
  return base::concat("component '", name_, "': ", whose, " is of class ", number);
}

std::string ClassColumn::expected() const { return base::concat("expected a class from 0 to ", classes_ - 1); }

std::string name_of_row(const Lineage &lineage, int64_t row, bool is_batched) {
  const std::string element = base::concat("element ", lineage.index + row);
  return is_batched ? base::concat(element, " (row ", row, " of its batch)") : element;
}

namespace {

// Walks to the end with a function that takes each label.
template <typename Take>
Status take_all(Iterator &iterator, const ClassColumn &column, Take take) {
  for (Element element;;) {
    TUTTI_ASSIGN(const bool more, iterator.next(element));
    if (!more) return Status();
    const Tensor &labels = element.components[column.component()];
    const int64_t row = column.read(labels.data(), labels.elements(), take);
    if (row == labels.elements()) continue;
    const std::string whose = name_of_row(element.lineage, row, iterator.spec().is_batched());
    return in_element(base::out_of_range("count_classes: ", column.describe(whose, column.row(labels.data(), row)),
                                         "; ", column.expected()),
                      element.lineage);
  }
}

}  // namespace

Result<int64_t> count_classes(const Dataset &dataset, std::string_view component, std::span<int64_t> counts,
                              const IteratorContext &context) {
  const int64_t classes = counts.empty() ? ClassColumn::kMostClasses : static_cast<int64_t>(counts.size());
  TUTTI_ASSIGN(const ClassColumn column, ClassColumn::find(dataset.spec(), component, classes));
  if (dataset.cardinality().is_infinite()) {
    return base::invalid_argument("the dataset has no end; count its classes before repeat");
  }
  TUTTI_ASSIGN(const std::unique_ptr<Iterator> iterator, dataset.make_iterator(context));
  int64_t most = 0;
  const auto note = [&most](int64_t label) {
    most = std::max(most, label + 1);
    return true;
  };
  if (counts.empty()) {
    TUTTI_TRY(take_all(*iterator, column, note));
    return most;
  }
  std::ranges::fill(counts, 0);
  TUTTI_TRY(take_all(*iterator, column, [&](int64_t label) {
    ++counts[static_cast<size_t>(label)];
    return note(label);
  }));
  return most;
}

}  // namespace tutti::impl::data
