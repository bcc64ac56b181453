// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/component_statistics.h"

#include <algorithm>
#include <cmath>

#include "tool/console/table.h"
#include "tool/console/tensor_values.h"

namespace tutti::tool {

namespace {

constexpr size_t kMostCounted = 100;
constexpr size_t kMostTexts = 100000;
constexpr size_t kMostTextBytes = size_t{16} << 20;

}  // namespace

void ComponentStatistics::add(const Tensor &tensor) {
  add_shape(tensor);
  ++elements_;
  if (is_bytes(tensor)) {
    for (int64_t i = 0; i < tensor.element_count(); ++i)
      add_number(static_cast<double>(bytes_at(tensor, i).size()));
  } else {
    read_numbers(tensor, numbers_);
    for (const double number : numbers_)
      add_number(number);
  }
  if (is_counted_) count(tensor);
}

void ComponentStatistics::add_shape(const Tensor &tensor) {
  if (elements_ == 0) {
    dtype_ = tensor.dtype();
    for (int64_t axis = 0; axis < tensor.rank(); ++axis)
      dims_.push_back(tensor.dim(axis));
  }
  ranks_differ_ = ranks_differ_ || static_cast<size_t>(tensor.rank()) != dims_.size();
  for (size_t axis = 0; axis < dims_.size() && !ranks_differ_; ++axis) {
    if (dims_[axis] != tensor.dim(static_cast<int64_t>(axis))) dims_[axis] = -1;
  }
}

/// Mean and squared differences of one number more: Welford, Technometrics 4 (1962).
void ComponentStatistics::add_number(double number) {
  ++values_;
  if (!std::isfinite(number)) {
    ++not_finite_;
    return;
  }
  least_ = finite_ == 0 ? number : std::min(least_, number);
  most_ = finite_ == 0 ? number : std::max(most_, number);
  ++finite_;
  const double distance = number - mean_;
  mean_ += distance / static_cast<double>(finite_);
  squares_ += distance * (number - mean_);
}

void ComponentStatistics::count(const Tensor &tensor) {
  if (is_bytes(tensor)) {
    count_texts(tensor);
  } else if (tensor.rank() == 0 && !is_floating(dtype_)) {
    ++counts_[preview(tensor)];
    is_counted_ = counts_.size() <= kMostCounted;
  } else {
    is_counted_ = false;
  }
  if (!is_counted_) counts_.clear();
}

void ComponentStatistics::count_texts(const Tensor &tensor) {
  for (int64_t i = 0; i < tensor.element_count() && is_counted_; ++i) {
    const std::string_view text = bytes_at(tensor, i);
    const auto known = counts_.find(text);
    if (known != counts_.end()) {
      ++known->second;
      continue;
    }
    text_bytes_ += text.size();
    is_counted_ = counts_.size() < kMostTexts && text_bytes_ <= kMostTextBytes && *image_kind(text) == '\0';
    if (is_counted_) counts_.emplace(text, 1);
  }
}

double ComponentStatistics::deviation() const {
  return finite_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(finite_));
}

std::string ComponentStatistics::shape() const {
  if (ranks_differ_) return "of several ranks";
  std::string text;
  for (size_t axis = 0; axis < dims_.size(); ++axis)
    text += (axis > 0 ? ", " : "") + (dims_[axis] < 0 ? "?" : std::to_string(dims_[axis]));
  return "[" + text + "]";
}

std::vector<std::pair<std::string, int64_t>> ComponentStatistics::counts() const {
  std::vector<std::pair<std::string, int64_t>> sorted;
  const bool has_texts = dtype_ == TUTTI_DTYPE_BYTES;
  for (const auto &[value, times] : counts_)
    sorted.emplace_back(has_texts ? tool::quoted(value) : value, times);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
  return sorted;
}

nlohmann::ordered_json ComponentStatistics::to_json() const {
  nlohmann::ordered_json json = {{"name", name_},         {"dtype", dtype_name(dtype_)}, {"shape", shape()},
                                 {"elements", elements_}, {"values", values_},           {"not_finite", not_finite_}};
  if (finite_ > 0) {
    json["min"] = least_;
    json["max"] = most_;
    json["mean"] = mean_;
    json["standard_deviation"] = deviation();
  }
  const auto all = counts();
  if (!all.empty()) json["different_values"] = all.size();
  for (size_t i = 0; i < all.size() && i < kMostCounted; ++i)
    json["counts"][all[i].first] = all[i].second;
  return json;
}

}  // namespace tutti::tool
