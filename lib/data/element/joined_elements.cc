// SPDX-License-Identifier: Apache-2.0
#include "data/element/joined_elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tensor/bytes_tensor.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

Result<Tensor> join_bytes(std::span<const Element> elements, size_t component, const Shape &shape) {
  std::vector<std::string_view> texts;
  texts.reserve(static_cast<size_t>(shape.elements()));
  for (const Element &element : elements) {
    const Tensor &row = element.components[component];
    for (int64_t i = 0; i < row.elements(); ++i)
      texts.push_back(tensor::bytes_at(row, i));
  }
  return tensor::make_bytes_tensor(shape, std::span<const std::string_view>(texts));
}

Result<Tensor> join_rows(std::span<const Element> elements, size_t component, const Shape &shape) {
  const DType dtype = elements[0].components[component].dtype();
  TUTTI_ASSIGN(Tensor joined, Tensor::allocate(dtype, shape));
  auto *target = joined.mutable_data_as<std::byte>();
  for (const Element &element : elements) {
    const Tensor &row = element.components[component];
    if (row.size_bytes() > 0) std::memcpy(target, row.data(), static_cast<size_t>(row.size_bytes()));
    target += row.size_bytes();
  }
  return joined;
}

// Calls copy(from, to, count) for each run of `count` elements of a tensor and its place in a larger one.
template <typename Copy>
void for_each_run(const Shape &from, const Shape &into, Copy copy) {
  const int32_t rank = from.rank();
  if (from.elements() == 0) return;
  const int64_t run = rank == 0 ? 1 : from[rank - 1];
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  for (int64_t source = 0; source < from.elements(); source += run) {
    int64_t target = 0;
    for (int32_t axis = 0; axis < rank; ++axis)
      target = target * into[axis] + index[static_cast<size_t>(axis)];
    copy(source, target, run);
    for (int32_t axis = rank - 2; axis >= 0 && ++index[static_cast<size_t>(axis)] == from[axis]; --axis)
      index[static_cast<size_t>(axis)] = 0;
  }
}

Result<Tensor> pad_bytes(std::span<const Element> elements, size_t component, const Shape &row, const Shape &shape) {
  std::vector<std::string_view> texts(static_cast<size_t>(shape.elements()));
  for (size_t r = 0; r < elements.size(); ++r) {
    const Tensor &source = elements[r].components[component];
    const int64_t first = static_cast<int64_t>(r) * row.elements();
    for_each_run(source.shape(), row, [&](int64_t from, int64_t to, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        texts[static_cast<size_t>(first + to + i)] = tensor::bytes_at(source, from + i);
    });
  }
  return tensor::make_bytes_tensor(shape, std::span<const std::string_view>(texts));
}

void fill(std::byte *target, int64_t count, const std::vector<std::byte> &value) {
  if (std::all_of(value.begin(), value.end(), [](std::byte byte) { return byte == std::byte{0}; })) {
    std::memset(target, 0, static_cast<size_t>(count) * value.size());
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(target + i * static_cast<int64_t>(value.size()), value.data(), value.size());
}

Result<Tensor> pad_rows(std::span<const Element> elements, size_t component, const Shape &row, const Shape &shape,
                        const std::vector<std::byte> &value) {
  TUTTI_ASSIGN(Tensor joined, Tensor::allocate(elements[0].components[component].dtype(), shape));
  const auto bytes = static_cast<int64_t>(value.size());
  auto *target = joined.mutable_data_as<std::byte>();
  for (const Element &element : elements) {
    const Tensor &source = element.components[component];
    if (source.elements() < row.elements()) fill(target, row.elements(), value);
    for_each_run(source.shape(), row, [&](int64_t from, int64_t to, int64_t count) {
      std::memcpy(target + to * bytes, source.data_as<std::byte>() + from * bytes, static_cast<size_t>(count * bytes));
    });
    target += row.elements() * bytes;
  }
  return joined;
}

// One element of a dtype with a value; INVALID_ARGUMENT when the dtype has no such value.
Result<std::vector<std::byte>> repeated_value(const ComponentSpec &component, double value) {
  std::vector<std::byte> bytes(tensor::size_bytes(component.dtype));
  bool fits = true;
  const bool is_fixed_size = tensor::visit_dtype(component.dtype, [&]<typename T>(T) {
    T number{};
    if constexpr (std::is_same_v<T, bool>) {
      fits = value == 0 || value == 1;
      number = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      constexpr double kEnd = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
      fits = value == std::trunc(value) && value >= static_cast<double>(std::numeric_limits<T>::min()) && value < kEnd;
      if (fits) number = static_cast<T>(value);
    } else {
      number = T(static_cast<float>(value));
      if constexpr (std::is_same_v<T, double>) number = value;
    }
    std::memcpy(bytes.data(), &number, sizeof(T));
  });
  if (!is_fixed_size) {
    bytes.clear();
    fits = value == 0;
  }
  if (fits) return bytes;
  return base::invalid_argument(
      "padding: component '", component.name, "' is ", component.dtype,
      is_fixed_size ? ", which cannot be " : ", padded with empty strings only; expected 0, got ", value);
}

std::string unknown_dims_of(const ElementSpec &spec) {
  std::vector<std::string> names;
  for (const ComponentSpec &component : spec.components) {
    for (size_t axis = 0; axis < component.dims.size(); ++axis) {
      if (!component.dims[axis].is_constant())
        names.push_back(base::concat("axis ", axis, " of '", component.name, "'"));
    }
  }
  return names.empty() ? "none" : base::join(names, ", ");
}

}  // namespace

Status join_elements(std::string_view what, std::span<const Element> elements, const ElementSpec &spec,
                     std::string_view advice, Element &joined) {
  joined.components.resize(spec.components.size());
  for (size_t i = 0; i < joined.components.size(); ++i) {
    const Tensor &first = elements[0].components[i];
    for (size_t row = 1; row < elements.size(); ++row) {
      if (elements[row].components[i].shape() == first.shape()) continue;
      return in_element(base::invalid_argument(what, ": component '", spec.components[i].name, "' has shape ",
                                               first.shape(), " in row 0 and ", elements[row].components[i].shape(),
                                               " in row ", row, "; expected equal shapes", advice),
                        elements[row].lineage);
    }
    TUTTI_ASSIGN(const Shape shape, first.shape().prepend(static_cast<int64_t>(elements.size())));
    TUTTI_ASSIGN(joined.components[i], join_values(elements, i, shape));
  }
  return Status();
}

Result<Tensor> join_values(std::span<const Element> elements, size_t component, const Shape &shape) {
  const bool is_text = elements[0].components[component].dtype() == DType::bytes;
  return is_text ? join_bytes(elements, component, shape) : join_rows(elements, component, shape);
}

Result<Padding> Padding::make(const ElementSpec &spec, std::span<const double> values,
                              std::span<const int64_t> lengths) {
  Padding padding;
  padding.spec_ = spec;
  if (!values.empty() && values.size() != spec.components.size()) {
    return base::invalid_argument("padding: expected one value for each of the ", spec.components.size(),
                                  " components ", spec.to_string(), ", got ", values.size());
  }
  size_t unknown = 0;
  for (size_t i = 0; i < spec.components.size(); ++i) {
    TUTTI_ASSIGN(std::vector<std::byte> value, repeated_value(spec.components[i], values.empty() ? 0 : values[i]));
    padding.values_.push_back(std::move(value));
    std::vector<int64_t> extents;
    for (const graph::Dim &dim : spec.components[i].dims) {
      const bool is_fixed = dim.is_constant();
      extents.push_back(is_fixed ? dim.constant() : unknown < lengths.size() ? lengths[unknown] : 0);
      unknown += is_fixed ? 0 : 1;
    }
    padding.extents_.push_back(std::move(extents));
  }
  if (lengths.empty() || lengths.size() == unknown) return padding;
  return base::invalid_argument("lengths: expected one for each unknown dimension (", unknown_dims_of(spec), "), got ",
                                lengths.size());
}

ElementSpec Padding::row_spec() const {
  ElementSpec spec = spec_;
  for (size_t i = 0; i < extents_.size(); ++i) {
    for (size_t axis = 0; axis < extents_[i].size(); ++axis) {
      graph::Dim &dim = spec.components[i].dims[axis];
      if (!dim.is_constant() && extents_[i][axis] > 0) dim = graph::Dim(extents_[i][axis]);
    }
  }
  return spec;
}

Result<Shape> Padding::row_shape(std::string_view what, std::span<const Element> elements, size_t component,
                                 const std::vector<int64_t> &fixed) const {
  const graph::Dims &dims = spec_.components[component].dims;
  std::vector<int64_t> extents(fixed);
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (dims[axis].is_constant()) continue;
    for (size_t row = 0; row < elements.size(); ++row) {
      const int64_t extent = elements[row].components[component].shape()[static_cast<int32_t>(axis)];
      if (fixed[axis] == 0) extents[axis] = std::max(extents[axis], extent);
      if (extent <= extents[axis]) continue;
      return in_element(base::invalid_argument(what, ": component '", spec_.components[component].name, "' has ",
                                               extent, " along axis ", axis, " in row ", row, " (element ",
                                               elements[row].lineage.index, "); expected at most ", fixed[axis]),
                        elements[row].lineage);
    }
  }
  return Shape::make(extents);
}

Status Padding::join(std::string_view what, std::span<const Element> elements, Element &joined,
                     const std::vector<std::vector<int64_t>> *fixed) const {
  joined.components.resize(spec_.components.size());
  for (size_t i = 0; i < joined.components.size(); ++i) {
    TUTTI_ASSIGN(const Shape row, row_shape(what, elements, i, fixed != nullptr ? (*fixed)[i] : extents_[i]));
    TUTTI_ASSIGN(const Shape shape, row.prepend(static_cast<int64_t>(elements.size())));
    Result<Tensor> tensor =
        values_[i].empty() ? pad_bytes(elements, i, row, shape) : pad_rows(elements, i, row, shape, values_[i]);
    TUTTI_TRY(tensor);
    joined.components[i] = tensor.take();
  }
  return Status();
}

}  // namespace tutti::impl::data
