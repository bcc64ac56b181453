// SPDX-License-Identifier: Apache-2.0
//
// How the elements of a tensor are distributed, as TensorFlow's message HistogramProto (core/framework/summary.proto)
// has it: buckets with limits 0 and +-1e-12 * 1.1^k up to 1e20, so that any magnitude keeps its first digit or so.
//
// Threads: a value.
#ifndef TUTTI_MONITOR_HISTOGRAM_H_
#define TUTTI_MONITOR_HISTOGRAM_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::monitor {

class Histogram {
 public:
  Histogram();

  /// Elements that are NaN or infinite belong to no bucket; they are counted apart.
  void add(double element);
  /// All elements of a tensor of numbers or booleans; INVALID_ARGUMENT for texts.
  base::Status add(const tensor::Tensor &tensor);

  /// Elements of another one.
  void add(const Histogram &other);
  /// What it has, as numbers that another process makes one of.
  std::vector<double> state() const;
  /// INVALID_ARGUMENT where it is of no histogram.
  static base::Result<Histogram> from_state(std::span<const double> state);

  int64_t count() const { return count_; }
  int64_t not_finite() const { return not_finite_; }
  /// Of those that are counted; NaN where others were added.
  double sum_of_squares() const;
  /// The message. Of buckets without elements there is one between two that have some, whose limit is where the second
  /// begins; the first one begins at the least element.
  std::string message() const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0, not_finite_ = 0;
  double minimum_, maximum_, sum_ = 0, squares_ = 0;
};

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_HISTOGRAM_H_
