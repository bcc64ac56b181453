// SPDX-License-Identifier: Apache-2.0
#include "monitor/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "monitor/event_messages.h"

namespace tutti::impl::monitor {

using base::Status;
using protozero::pbf_builder;

namespace {

enum class Message : protozero::pbf_tag_type {
  minimum = 1,
  maximum = 2,
  count = 3,
  sum = 4,
  squares = 5,
  limits = 6,
  buckets = 7
};

// Upper limits, which belong to the next bucket: ascending, the last one above all numbers.
const std::vector<double> &limits() {
  static const std::vector<double> all = [] {
    std::vector<double> positive;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1)
      positive.push_back(limit);
    positive.push_back(std::numeric_limits<double>::max());
    std::vector<double> made;
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit)
      made.push_back(-*limit);
    made.push_back(0);
    made.insert(made.end(), positive.begin(), positive.end());
    return made;
  }();
  return all;
}

}  // namespace

Histogram::Histogram()
    : buckets_(limits().size()),
      minimum_(std::numeric_limits<double>::max()),
      maximum_(std::numeric_limits<double>::lowest()) {}

void Histogram::add(double element) {
  if (!std::isfinite(element)) {
    ++not_finite_;
    return;
  }
  const auto bucket = std::upper_bound(limits().begin(), limits().end() - 1, element) - limits().begin();
  ++buckets_[static_cast<size_t>(bucket)];
  ++count_;
  minimum_ = std::min(minimum_, element);
  maximum_ = std::max(maximum_, element);
  sum_ += element;
  squares_ += element * element;
}

Status Histogram::add(const tensor::Tensor &tensor) {
  bool has_numbers = false;
  tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T> || std::is_constructible_v<float, T>) {
      using Number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
      has_numbers = true;
      const T *const elements = static_cast<const T *>(tensor.data());
      for (int64_t i = 0; i < tensor.elements(); ++i)
        add(static_cast<double>(static_cast<Number>(elements[i])));
    }
  });
  return has_numbers ? Status() : base::invalid_argument("expected numbers for a histogram, got ", tensor.describe());
}

double Histogram::sum_of_squares() const {
  return not_finite_ > 0 ? std::numeric_limits<double>::quiet_NaN() : squares_;
}

std::string Histogram::message() const {
  std::vector<double> kept_limits, kept_buckets;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const bool is_between = !kept_limits.empty() && i + 1 < buckets_.size() && buckets_[i + 1] > 0;
    if (buckets_[i] == 0 && !is_between) continue;
    kept_limits.push_back(limits()[i]);
    kept_buckets.push_back(static_cast<double>(buckets_[i]));
  }
  std::string message;
  pbf_builder<Message> builder(message);
  builder.add_double(Message::minimum, count_ > 0 ? minimum_ : 0);
  builder.add_double(Message::maximum, count_ > 0 ? maximum_ : 0);
  builder.add_double(Message::count, static_cast<double>(count_));
  builder.add_double(Message::sum, sum_);
  builder.add_double(Message::squares, squares_);
  builder.add_packed_double(Message::limits, kept_limits.begin(), kept_limits.end());
  builder.add_packed_double(Message::buckets, kept_buckets.begin(), kept_buckets.end());
  return message;
}

}  // namespace tutti::impl::monitor
