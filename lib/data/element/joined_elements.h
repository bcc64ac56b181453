// SPDX-License-Identifier: Apache-2.0
//
// Elements put together along a new first axis: what batches and windows are made of where rows have no fixed size.
//
//   join_elements("batch", elements, spec, {}, joined)       equal shapes; the error names component and rows
//   padded:  [3] and [5] → [2, 5], the end of the first row filled with the component's padding
//
// Threads: pure functions; a Padding is immutable.
#ifndef TUTTI_DATA_ELEMENT_JOINED_ELEMENTS_H_
#define TUTTI_DATA_ELEMENT_JOINED_ELEMENTS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/element/element.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// Joins at least one element into `joined.components`. All must have the spec's components, with equal shapes;
/// INVALID_ARGUMENT otherwise, which `what` begins ("batch") and `advice` ends.
base::Status join_elements(std::string_view what, std::span<const Element> elements, const ElementSpec &spec,
                           std::string_view advice, Element &joined);

/// The values of a component of all elements, one behind the other, under a shape of as many. At least one element.
base::Result<tensor::Tensor> join_values(std::span<const Element> elements, size_t component,
                                         const tensor::Shape &shape);

/// How elements of different shapes become rows of equal shape: each unknown dimension grows to the longest of the
/// rows, or to a fixed length, and what is missing is filled with the component's padding (bytes: empty strings).
class Padding {
 public:
  /// `values`: one per component, or none for zeros. `lengths`: one per unknown dimension, in the order of components
  /// and their axes, or none; 0 = the longest of the rows. INVALID_ARGUMENT names the component.
  static base::Result<Padding> make(const ElementSpec &spec, std::span<const double> values,
                                    std::span<const int64_t> lengths);

  /// The spec of a row: unknown dimensions with a fixed length are constants.
  ElementSpec row_spec() const;
  /// Joins at least one element into `joined.components`. `fixed` (may be null) replaces extents(). INVALID_ARGUMENT
  /// when a row is longer than a fixed length; `what` begins it.
  base::Status join(std::string_view what, std::span<const Element> elements, Element &joined,
                    const std::vector<std::vector<int64_t>> *fixed = nullptr) const;
  /// For each component the extents of all axes that are fixed, 0 where the longest row decides.
  const std::vector<std::vector<int64_t>> &extents() const { return extents_; }

 private:
  base::Result<tensor::Shape> row_shape(std::string_view what, std::span<const Element> elements, size_t component,
                                        const std::vector<int64_t> &fixed) const;

  ElementSpec spec_;
  std::vector<std::vector<std::byte>> values_;  // for each component one element of padding; empty for bytes
  std::vector<std::vector<int64_t>> extents_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ELEMENT_JOINED_ELEMENTS_H_
