// SPDX-License-Identifier: Apache-2.0
//
// Shared factors: how replicas in one memory make the gradients of large kernels. The gradient of a kernel W [in, out]
// of a dense layer is the product xT dy over the rows of the batch. Each of K replicas could make it of its own rows
// and all add up: in * out numbers are written by each, and read by the one that updates them. Instead each leaves its
// rows of both factors, and the finish program of a replica makes those rows of the gradient that it updates, of all
// rows of the batch: the same multiplications, but rows * (in / K + out) numbers pass between replicas, and the update
// takes the gradient as it is made.
//
// Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PLAN_SHARED_FACTORS_H_
#define TUTTI_DISTRIBUTE_PLAN_SHARED_FACTORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "tensor/dtype.h"

namespace tutti::impl::distribute {

/// Which gradients are made of shared factors: those for which that moves less than it saves.
struct FactorRule {
  /// Rows of a batch; 0 = no gradient is.
  int64_t rows = 0;
  /// Elements of the gradient at least.
  int64_t elements = 16384;
};

/// What contributors leave for finish: their rows of an array with the batch as first axis, or of something else that
/// the model looks up (row_gradients.h).
struct SharedFactor {
  /// Of accumulate's result and of finish's input. A feature of the model, by its name, is no result: all can read it.
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  graph::Dims dims{};  ///< of both; the first is the batch
  bool is_feature = false;
  /// Of lookups: what one contributor leaves begins on a cache line of its own. Rows in between are none, by indices of
  /// −1.
  bool is_of_lookups = false, is_index = false;
};

/// The symbol of a finish graph for the rows of a step that look something up, and those that are none.
inline constexpr std::string_view kLookingUpSymbol = "looking_up";

/// Symbols of the finish graph, of a variable that is cut between rows: how many of them a slice has, and its first.
std::string rows_symbol(const std::string &variable);
std::string first_row_symbol(const std::string &variable);

/// The gradients of a model that are made of shared factors, in both graphs of a step.
class FactoredGradients {
 public:
  FactoredGradients(const FactorRule &rule, int32_t slices) : rule_(rule), slices_(slices) {}

  /// Whether this gradient of a variable is made in finish; then its factors become results of the accumulate graph,
  /// which is over the global batch. Where the rule says no, and where it is no product of two matrices of rows: false.
  bool take(graph::GraphBuilder &step, const std::string &variable, graph::ValueId gradient);
  bool has(const std::string &variable) const { return products_.count(variable) != 0; }
  /// The rows of the gradient that a finish graph's slice has.
  graph::ValueId product(graph::GraphBuilder &finish, const std::string &variable);
  /// Dims of the variable's slice.
  graph::Dims slice_dims(const std::string &variable) const;

  const std::vector<SharedFactor> &factors() const { return factors_; }
  std::vector<std::string> variables() const;

 private:
  struct Value {
    graph::ValueId step = graph::kNoValue, finish = graph::kNoValue;
    int64_t width = 0;  ///< elements of a row
  };
  size_t factor_of(graph::GraphBuilder &step, graph::ValueId value);
  graph::ValueId read(graph::GraphBuilder &finish, size_t factor);

  const FactorRule rule_;
  const int32_t slices_;
  std::map<std::string, std::pair<size_t, size_t>, std::less<>> products_;  // variable → its two factors
  std::vector<SharedFactor> factors_;
  std::vector<Value> values_;  // of factors_
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_SHARED_FACTORS_H_
