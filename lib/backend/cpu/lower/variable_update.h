// SPDX-License-Identifier: Apache-2.0
//
// An optimizer's update of a variable (sgd_update, momentum_update, adam_update) as kernels see it: where its arrays
// lie, and the rule of the step. The arrays lie as the variable does in state; all elements of the storage are updated.
// Where a layout pads, gradients are zero and so nothing changes.
//
// Threads: made while lowering; afterwards constant, one range of elements by one thread at a time.
#ifndef TUTTI_BACKEND_CPU_LOWER_VARIABLE_UPDATE_H_
#define TUTTI_BACKEND_CPU_LOWER_VARIABLE_UPDATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/lower/lowering.h"
#include "backend/cpu/simd/simd_update.h"
#include "graph/graph.h"

namespace tutti::impl::backend::cpu {

bool is_update(std::string_view op);
/// So many gradients at most are added up by an update itself.
constexpr size_t kMaximumGradients = 16;
/// The value that an update takes as its gradient.
graph::ValueId gradient_of(const graph::Node &update);

class VariableUpdate {
 public:
  /// Are there kernels for the dtypes of this node?
  static bool suits(const LoweredGraph &graph, const graph::Node &node);
  /// Counts all that the node reads, but for the gradient, and writes as read and written by the next emit.
  VariableUpdate(Lowering &l, const graph::Node &node);
  /// Layout of the variable in state, also wanted of the gradient.
  static std::string layout(const Lowering &l, const graph::Node &node);

  /// Elements of the storage.
  int64_t elements() const { return elements_; }
  /// "sgd", "momentum", "adam".
  std::string_view name() const { return name_; }
  /// Arrays that pass through memory, the gradient included.
  int32_t array_count() const { return slot_count_ + 2; }

  /// false: nothing may change in this step.
  bool is_allowed(const RunContext &context) const { return *static_cast<const uint8_t *>(context.buffers[ok_]) != 0; }
  /// What a step that is not allowed leaves: the old values.
  void keep(const RunContext &context, Range range) const;
  UpdateRule rule(const RunContext &context) const;
  /// From element `first` on.
  UpdateArrays arrays(const RunContext &context, int64_t first) const;

 private:
  double learning_rate(const RunContext &context) const;

  std::string_view name_;
  UpdateRule rule_;  // but for what the step says
  double beta1_ = 0, beta2_ = 0, epsilon_ = 0, decay_ = 0;
  int32_t slot_count_ = 0;
  int64_t elements_ = 0;
  BufferId weight_ = -1, weight_out_ = -1, slots_[kUpdateSlots] = {-1, -1}, slots_out_[kUpdateSlots] = {-1, -1};
  BufferId rate_ = -1, iteration_ = -1, ok_ = -1;
  bool rate_is_double_ = false;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_VARIABLE_UPDATE_H_
