// SPDX-License-Identifier: Apache-2.0
//
// The values of a training by name: variables, slots of optimizers, moving averages and host scalars, as tensors in
// canonical layout, in the memory of its devices. Internal to this folder.
//
//   VariableStore variables(model, plan, weights);
//   TUTTI_TRY(variables.write_version(version));
//   TUTTI_ASSIGN(const Tensor kernel, variables.read(StoredKind::variable, "dense/kernel"));
//
// Threads: one at a time, between steps.
#ifndef TUTTI_DISTRIBUTE_WEIGHTS_VARIABLE_STORE_H_
#define TUTTI_DISTRIBUTE_WEIGHTS_VARIABLE_STORE_H_

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "distribute/plan/state_plan.h"
#include "distribute/weights/weight_store.h"
#include "graph/model.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

enum class StoredKind {
  variable,
  slot,  ///< "<variable>/<slot>"
  host_scalar,
};

class VariableStore {
 public:
  /// All of them outlive it. `slot_scope`: slots have these names in versions, scoped_slot().
  VariableStore(const graph::Model &model, const StatePlan &plan, WeightStore &weights,
                std::string_view slot_scope = {})
      : model_(model), plan_(plan), weights_(weights), slot_scope_(slot_scope) {}

  /// NOT_FOUND with the names there are.
  base::Result<const backend::StateEntry *> find(StoredKind kind, std::string_view name) const;
  base::Result<tensor::Tensor> read(StoredKind kind, std::string_view name) const;
  /// `slot` for a name that is no variable's but a slot's, else `variable`.
  StoredKind kind_of(std::string_view name) const;

  /// Of the entry's dtype and dims. A variable's moving average becomes the same where `begins_average`.
  base::Status write(StoredKind kind, std::string_view name, const tensor::Tensor &value, bool begins_average);
  base::Status write_host_scalar(std::string_view name, double value);
  /// Values in the order of the model's variables; slots as their optimizer begins, averages as the weights.
  base::Status write_initial(std::span<const tensor::Tensor> values);
  /// Slots that the version lacks as their optimizer begins, such averages as the weights. Where the version lacks a
  /// variable, or has it or a slot with other dims or dtype, an error naming it, and nothing changes.
  base::Status write_version(const checkpoint::WeightVersion &version);
  /// The slots of a version alone. Null: as at the beginning.
  base::Status write_slots(const checkpoint::WeightVersion *version);

 private:
  base::Status check(const checkpoint::WeightVersion &version) const;
  base::Status check_slots(const checkpoint::WeightVersion &version) const;
  base::Status write_average(const std::string &variable, const checkpoint::WeightVersion *version);

  const graph::Model &model_;
  const StatePlan &plan_;
  WeightStore &weights_;
  const std::string_view slot_scope_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WEIGHTS_VARIABLE_STORE_H_
