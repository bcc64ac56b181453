// SPDX-License-Identifier: Apache-2.0
//
// What flows through a pipeline. An Element is an ordered list of named tensors; its ElementSpec says beforehand what
// they are: name, role in training, dtype and dimensions.
//
//   single example   image u8[28, 28], label i32[]                       batch_size = 0
//   after batch(64)  image u8[batch, 28, 28], label i32[batch]           batch_size = 64
//
// In batched elements axis 0 of every component counts the rows and is the symbol "batch", so the spec is what a
// model's inputs are declared with. A dimension that differs between elements is the symbol "unknown".
//
// Threads: values without hidden state. Tensors are shared by reference; who receives an Element may read it only.
#ifndef TUTTI_DATA_ELEMENT_ELEMENT_H_
#define TUTTI_DATA_ELEMENT_ELEMENT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/dim.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// What a component is to a model.
enum class Role : int32_t { feature = 0, label = 1, weight = 2 };

/// "feature", "label", "weight".
std::string_view name(Role role);

/// Symbol of a dimension that is not known before the element is there.
inline constexpr std::string_view kUnknownSymbol = "unknown";
graph::Dim unknown_dim();

/// One component of an element.
struct ComponentSpec {
  std::string name;
  Role role = Role::feature;
  tensor::DType dtype = tensor::DType::f32;
  graph::Dims dims;

  /// "image: u8[28, 28]".
  std::string to_string() const;
  friend bool operator==(const ComponentSpec &, const ComponentSpec &) = default;
};

/// All components of the elements of a dataset.
struct ElementSpec {
  std::vector<ComponentSpec> components;
  /// Rows per element, the last one may have fewer; 0 = elements are single examples, axis 0 means nothing special.
  int64_t batch_size = 0;
  /// Every batch has exactly batch_size rows.
  bool exact_batches = false;

  bool is_batched() const { return batch_size > 0; }
  /// Position of a component, -1 when there is none of that name.
  int32_t find(std::string_view name) const;
  /// Are all dimensions constants and all dtypes of fixed size, so that an element is a fixed number of bytes?
  bool is_static() const;
  /// "(image: u8[28, 28], label: i32[] label)".
  std::string to_string() const;
  friend bool operator==(const ElementSpec &, const ElementSpec &) = default;
};

/// Names are there, distinct, and dimensions representable.
base::Status check(const ElementSpec &spec);
/// Position of a component; INVALID_ARGUMENT names those that there are.
base::Result<size_t> find_component(const ElementSpec &spec, std::string_view name);

/// The name of a file, shared by the elements that came from it; null where none is known.
using FileName = std::shared_ptr<const std::string>;

/// Where an element came from: the pass over the data and its place in that pass, before any shuffling. Random
/// augmentation is keyed by it, so it does not depend on order or threads. For a batch: the position of its first row
/// among the rows batched in this epoch.
struct Lineage {
  int64_t epoch = 0;
  int64_t index = 0;
  /// The file it was read from, for errors alone.
  FileName file = nullptr;

  /// The same origin under another number.
  void renumber(int64_t new_epoch, int64_t new_index) {
    epoch = new_epoch;
    index = new_index;
  }
};

/// The error of an element with the details element, epoch and, where it is known, file; as it is if it has them.
base::Status in_element(const base::Status &status, const Lineage &lineage);

/// One element. Reusing one object for every Iterator::next() call saves its allocations.
struct Element {
  std::vector<tensor::Tensor> components;
  Lineage lineage;

  /// Rows of a batched element: the first dimension of its first component; 0 without components.
  int64_t rows() const;
  /// Of all components.
  int64_t size_bytes() const;
};

/// The file that all of these elements came from, if there is one.
FileName file_of(std::span<const Element> elements);

/// Does the element have the spec's components? `what` names the origin in the error, which names the component, what
/// was expected and what came.
base::Status check_element(const Element &element, const ElementSpec &spec, std::string_view what);

/// How many elements one pass yields.
class Cardinality {
 public:
  static constexpr Cardinality exactly(int64_t count) { return Cardinality(count); }
  static constexpr Cardinality infinite() { return Cardinality(kInfinite); }
  static constexpr Cardinality unknown() { return Cardinality(kUnknown); }
  /// Infinite, unless something that is repeated without end turns out to be empty. So a part of it has no known size.
  static constexpr Cardinality presumed_infinite() { return Cardinality(kPresumedInfinite); }

  constexpr bool is_exact() const { return value_ >= 0; }
  constexpr bool is_infinite() const { return value_ == kInfinite || value_ == kPresumedInfinite; }
  constexpr bool is_unknown() const { return value_ == kUnknown; }
  /// The count, -1 for infinite, -2 for unknown.
  constexpr int64_t value() const { return is_infinite() ? kInfinite : value_; }
  /// For what drops elements by their contents: whatever is kept, an infinite input is never at its end.
  constexpr Cardinality of_kept() const {
    if (value_ == 0) return *this;
    return is_infinite() ? presumed_infinite() : unknown();
  }
  /// "1000", "infinite", "unknown".
  std::string to_string() const;
  friend constexpr bool operator==(Cardinality, Cardinality) = default;

  static constexpr int64_t kInfinite = -1;
  static constexpr int64_t kUnknown = -2;

 private:
  static constexpr int64_t kPresumedInfinite = -3;

  explicit constexpr Cardinality(int64_t value) : value_(value) {}
  int64_t value_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ELEMENT_ELEMENT_H_
