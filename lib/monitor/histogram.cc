// SPDX-License-Identifier: Apache-2.0
#include "monitor/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "monitor/event_messages.h"
#include "monitor/tensor_numbers.h"

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
  return for_numbers(tensor, [&](double element) { add(element); });
}

void Histogram::add(const Histogram &other) {
  for (size_t i = 0; i < buckets_.size(); ++i)
    buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  not_finite_ += other.not_finite_;
  minimum_ = std::min(minimum_, other.minimum_);
  maximum_ = std::max(maximum_, other.maximum_);
  sum_ += other.sum_;
  squares_ += other.squares_;
}

std::vector<double> Histogram::state() const {
  std::vector<double> state(buckets_.begin(), buckets_.end());
  state.insert(state.end(),
               {static_cast<double>(count_), static_cast<double>(not_finite_), minimum_, maximum_, sum_, squares_});
  return state;
}

base::Result<Histogram> Histogram::from_state(std::span<const double> state) {
  Histogram made;
  const size_t buckets = made.buckets_.size();
  if (state.size() != buckets + 6)
    return base::invalid_argument("a histogram has ", buckets + 6, " numbers, got ", state.size());
  for (size_t i = 0; i < buckets; ++i)
    made.buckets_[i] = static_cast<int64_t>(state[i]);
  const auto rest = state.subspan(buckets);
  made.count_ = static_cast<int64_t>(rest[0]);
  made.not_finite_ = static_cast<int64_t>(rest[1]);
  made.minimum_ = rest[2];
  made.maximum_ = rest[3];
  made.sum_ = rest[4];
  made.squares_ = rest[5];
  return made;
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
