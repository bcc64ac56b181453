// SPDX-License-Identifier: Apache-2.0
//
// What the values of one component of a dataset are like, gathered element by element in memory that does not grow with
// the dataset.
#ifndef TUTTI_TOOL_DATASET_COMPONENT_STATISTICS_H_
#define TUTTI_TOOL_DATASET_COMPONENT_STATISTICS_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti::tool {

class ComponentStatistics {
 public:
  explicit ComponentStatistics(std::string name) : name_(std::move(name)) {}

  void add(const Tensor &tensor);

  const std::string &name() const { return name_; }
  int32_t dtype() const { return dtype_; }
  int64_t elements() const { return elements_; }
  int64_t values() const { return values_; }
  int64_t not_finite() const { return not_finite_; }
  /// Of finite numbers; for bytes, of their sizes. Undefined before there is one.
  double least() const { return least_; }
  double most() const { return most_; }
  double mean() const { return mean_; }
  double deviation() const;
  /// "[28, 28]", or "[?, ?, 3]" where elements differ.
  std::string shape() const;
  /// Values by how often they came, most often first, of scalars that are whole numbers or truth values, and of texts
  /// in any shape that are no images; empty when there are more than can be counted: a hundred numbers, 100,000 texts.
  std::vector<std::pair<std::string, int64_t>> counts() const;
  nlohmann::ordered_json to_json() const;

 private:
  void add_shape(const Tensor &tensor);
  void add_number(double number);
  void count(const Tensor &tensor);
  void count_texts(const Tensor &tensor);

  std::string name_;
  int32_t dtype_ = 0;
  int64_t elements_ = 0, values_ = 0, not_finite_ = 0, finite_ = 0;
  double least_ = 0, most_ = 0, mean_ = 0, squares_ = 0;  // squares_: sum of squared differences from the mean
  std::vector<int64_t> dims_;                             // -1 = differs
  bool ranks_differ_ = false;
  std::map<std::string, int64_t, std::less<>> counts_;  // texts as they are
  size_t text_bytes_ = 0;                               // of the texts in counts_
  bool is_counted_ = true;
  std::vector<double> numbers_;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_COMPONENT_STATISTICS_H_
