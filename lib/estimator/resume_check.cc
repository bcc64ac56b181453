// SPDX-License-Identifier: Apache-2.0
#include "estimator/resume_check.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "graph/variable_use.h"

namespace tutti::impl::estimator {

using base::Json;
using base::Status;
using checkpoint::StateEntry;
using checkpoint::StateRole;
using checkpoint::WeightVersion;

namespace {

std::string describe(const StateEntry &entry) { return base::concat(tensor::name(entry.dtype), " ", entry.shape); }

std::string describe(const graph::VariableSpec &variable) {
  return base::concat(tensor::name(variable.dtype), " ", variable.dims);
}

/// A member of a manifest's plan as text; "?" when it is not there.
std::string text_of(const Json &plan, const char *key) {
  const Json *value = plan.is_object() ? plan.find(key) : nullptr;
  if (value == nullptr) return "?";
  return value->is_string() ? value->string() : value->dump();
}

std::string plan_text(const Json &plan) {
  const Json *workers = plan.is_object() ? plan.find("workers") : nullptr;
  return base::concat(workers != nullptr ? workers->dump() + " workers, " : "", text_of(plan, "replicas"), " x ",
                      text_of(plan, "backend"), ", plan ", text_of(plan, "hash"));
}

/// The step function whose slot it would be: "<variable>/<function>/<slot>".
std::string_view function_of(std::string_view slot) {
  const std::string_view scoped = slot.substr(0, slot.rfind('/'));
  return scoped.substr(scoped.rfind('/') + 1);
}

}  // namespace

Status check_same_model(const graph::Model &model, const WeightVersion &version) {
  std::vector<std::string> differences;
  for (const graph::VariableSpec &variable : model.variables) {
    const int64_t found = version.find(StateRole::weight, variable.name);
    if (found < 0) {
      differences.push_back(base::concat("variable '", variable.name, "' is ", describe(variable),
                                         " in the model and missing in the checkpoint"));
      continue;
    }
    const StateEntry &entry = version.entries()[static_cast<size_t>(found)];
    if (entry.dtype == variable.dtype && std::ranges::equal(entry.shape.extents(), variable.dims)) continue;
    differences.push_back(base::concat("variable '", variable.name, "' is ", describe(variable), " in the model and ",
                                       describe(entry), " in the checkpoint", graph::describe_use(model, variable)));
  }
  for (const StateEntry &entry : version.entries()) {
    if (entry.role != StateRole::weight || model.find_variable(entry.name) != nullptr) continue;
    differences.push_back(base::concat("variable '", entry.name, "' is ", describe(entry),
                                       " in the checkpoint and missing in the model"));
  }
  if (differences.empty()) return Status();
  const size_t more = differences.size() - 1;
  return base::failed_precondition("the model is not the one of the checkpoint: ", differences.front(),
                                   more == 0 ? std::string() : base::concat(" (and ", more, " more)"),
                                   "; use another model_dir to start from scratch");
}

std::string slot_difference(const distribute::Trainer &trainer, const WeightVersion &version) {
  std::vector<std::string> wanted;
  for (const backend::StateEntry &entry : trainer.plan().entries()) {
    if (entry.name.rfind("slot/", 0) == 0) wanted.push_back(entry.name.substr(5));
  }
  for (const std::string &name : wanted) {
    if (version.find(StateRole::slot, name) < 0)
      return base::concat("slot '", name,
                          "' of the optimizer is not in the checkpoint and starts with its initial value");
  }
  const distribute::StepFunctionStates functions = trainer.step_function_states();
  for (const StateEntry &entry : version.entries()) {
    if (entry.role != StateRole::slot || std::ranges::find(wanted, entry.name) != wanted.end()) continue;
    if (!functions.contains(function_of(entry.name)))
      return base::concat("slot '", entry.name, "' of the checkpoint does not belong to the optimizer and is dropped");
  }
  return "";
}

Json plan_json(const distribute::Trainer &trainer, const distribute::Strategy &strategy) {
  base::JsonObject plan{{"hash", base::concat(trainer.plan().hash())},
                        {"replicas", static_cast<int64_t>(strategy.replicas_in_all())},
                        {"backend", strategy.backend() == nullptr ? std::string() : strategy.backend()->name()}};
  if (strategy.workers().count > 1) plan.emplace_back("workers", static_cast<int64_t>(strategy.workers().count));
  return plan;
}

std::string plan_difference(const Json &saved, const Json &present) {
  const std::string was = plan_text(saved), is = plan_text(present);
  if (was == is || text_of(saved, "hash") == "?") return "";
  return base::concat("the checkpoint was trained on ", was, "; training continues from the same state on ", is);
}

}  // namespace tutti::impl::estimator
