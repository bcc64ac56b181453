// SPDX-License-Identifier: Apache-2.0
//
// The component that says which class an element is of: one integer of any dtype, or one for each row of a batch.
// Classes are numbered from 0.
//
//   TUTTI_ASSIGN(const ClassColumn column, ClassColumn::find(dataset->spec(), "label", 10));
//   const Tensor &labels = element.components[column.component()];
//   const auto count = [&](int64_t label) { return ++counts[label] > 0; };
//   const int64_t row = column.read(labels.data(), labels.elements(), count);
//   if (row < labels.elements())  // that row has no class
//
// Threads: immutable.
#ifndef TUTTI_DATA_PIPELINE_CLASS_COLUMN_H_
#define TUTTI_DATA_PIPELINE_CLASS_COLUMN_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/element/element.h"
#include "tensor/dtype.h"

namespace tutti::impl::data {

class ClassColumn {
 public:
  /// As many classes as there may be where their number is not known: a label of rubbish is not to be taken for one.
  static constexpr int64_t kMostClasses = 1 << 24;

  /// INVALID_ARGUMENT where there is no such component, or one that is not a single integer for each element or row:
  /// labels that are one-hot, for example.
  static base::Result<ClassColumn> find(const ElementSpec &spec, std::string_view component, int64_t classes);

  /// Its place among the components.
  size_t component() const { return component_; }

  /// Gives labels that lie side by side to take(label), which says whether to go on. Ends at the first that is no
  /// class, or that take() refuses, and gives its row; `rows` when there is none.
  template <typename Take>
  int64_t read(const void *labels, int64_t rows, Take &&take) const;
  bool is_class(const void *label) const {
    return read(label, 1, [](int64_t) { return true; }) == 1;
  }

  /// "component 'y': element 7 is of class 12", for people; `whose`: "element 7".
  std::string describe(std::string_view whose, const void *label) const;
  /// "expected a class from 0 to 9".
  std::string expected() const;
  /// The row of a tensor of labels.
  const void *row(const void *labels, int64_t row) const {
    return static_cast<const std::byte *>(labels) + row * static_cast<int64_t>(tensor::size_bytes(dtype_));
  }

 private:
  ClassColumn(std::string name, size_t component, tensor::DType dtype, int64_t classes)
      : name_(std::move(name)), component_(component), dtype_(dtype), classes_(classes) {}

  std::string name_;
  size_t component_;
  tensor::DType dtype_;
  int64_t classes_;
};

template <typename Take>
int64_t ClassColumn::read(const void *labels, int64_t rows, Take &&take) const {
  int64_t row = 0;
  tensor::visit_dtype(dtype_, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      const auto classes = static_cast<uint64_t>(classes_);
      for (const T *const values = static_cast<const T *>(labels); row < rows; ++row) {
        const auto label = static_cast<uint64_t>(values[row]);  // what is below 0 becomes larger than all classes
        if (label >= classes || !take(static_cast<int64_t>(label))) break;
      }
    }
  });
  return row;
}

/// What an error calls a row of an element: "element 7", "element 7 (row 3 of its batch)". `lineage` is that of the
/// element, and `is_batched` says whether it is a batch.
std::string name_of_row(const Lineage &lineage, int64_t row, bool is_batched);

/// How often each class comes in one pass: counts[0], counts[1], ... Gives one more than the largest number that came;
/// 0 where there is nothing. Without counts it finds that number alone, up to kMostClasses. OUT_OF_RANGE names an
/// element whose label is no class. After an error the counts are undefined.
base::Result<int64_t> count_classes(const Dataset &dataset, std::string_view component, std::span<int64_t> counts,
                                    const IteratorContext &context);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_CLASS_COLUMN_H_
