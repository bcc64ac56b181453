// SPDX-License-Identifier: Apache-2.0
#include "estimator/variables.h"

#include <algorithm>
#include <optional>

#include "base/name_suggestions.h"
#include "base/text.h"

namespace tutti::impl::estimator {

using base::Ref;
using base::Result;
using base::Status;
using checkpoint::StateEntry;
using checkpoint::TensorVersion;
using checkpoint::WeightVersion;
using distribute::Trainer;
using tensor::Tensor;

namespace {

constexpr std::string_view kSlot = "slot/";

std::vector<std::string> names_of(const Trainer &trainer) {
  std::vector<std::string> names;
  for (const graph::VariableSpec &variable : trainer.model().variables)
    names.push_back(variable.name);
  for (const backend::StateEntry &entry : trainer.plan().entries()) {
    if (entry.name.rfind(kSlot, 0) == 0) names.push_back(entry.name.substr(kSlot.size()));
  }
  return names;
}

std::vector<std::string> names_of(const WeightVersion &version) {
  std::vector<std::string> names;
  for (const StateEntry &entry : version.entries())
    names.push_back(entry.name);
  return names;
}

Status no_variable(std::string_view name, const std::vector<std::string> &names) {
  return base::not_found("there is no variable '", name, "'", base::but_there_are(name, names));
}

Result<size_t> find_entry(const WeightVersion &version, std::string_view name) {
  for (const checkpoint::StateRole role : {checkpoint::StateRole::weight, checkpoint::StateRole::slot}) {
    const int64_t found = version.find(role, name);
    if (found >= 0) return static_cast<size_t>(found);
  }
  return no_variable(name, names_of(version));
}

Status check_name(const Trainer &trainer, std::string_view name) {
  const std::vector<std::string> names = names_of(trainer);
  return std::find(names.begin(), names.end(), name) != names.end() ? Status() : no_variable(name, names);
}

/// That the values are those of all variables of the model, by name and shape.
Status check_all(const Trainer &trainer, const std::map<std::string, Tensor, std::less<>> &values) {
  std::vector<std::string> names, given;
  for (const auto &[name, value] : values)
    given.push_back(name);
  for (const graph::VariableSpec &variable : trainer.model().variables) {
    names.push_back(variable.name);
    const auto found = values.find(variable.name);
    if (found == values.end())
      return base::not_found("variable '", variable.name, "' is missing", base::but_there_are(variable.name, given));
    const Tensor &value = found->second;
    if (value.dtype() != variable.dtype || !std::ranges::equal(value.shape().extents(), variable.dims))
      return base::invalid_argument("variable '", variable.name, "' is ", variable.dtype, " ", variable.dims, ", got ",
                                    value.describe());
  }
  for (const std::string &name : given) {
    if (std::ranges::find(names, name) == names.end()) return no_variable(name, names);
  }
  return Status();
}

/// What is averaged begins anew with the value.
Status restart_average(Trainer &trainer, const std::string &name, const Tensor &value) {
  const std::string average = base::concat(name, "/", checkpoint::kAverageSlot);
  return trainer.plan().find(base::concat(kSlot, average)) == nullptr ? Status() : trainer.set_variable(average, value);
}

/// What is in the trainer counts, unless another process has gone on from there since.
Result<bool> look(EstimatorState &state, const std::function<Status(Trainer &)> &function) {
  int64_t newest = -1;
  bool in_session = false;
  TUTTI_ASSIGN(bool found, state.live.look([&](Trainer &, bool held) {
    in_session = held;
    return Status();
  }));
  if (!found) return false;
  if (!in_session) newest = state.step_on_disk().value_or(-1);
  bool looked = false;
  TUTTI_ASSIGN(found, state.live.look([&](Trainer &trainer, bool held) {
    if (!held && newest > trainer.step()) return Status();
    looked = true;
    return function(trainer);
  }));
  return found && looked;
}

/// A version that differs from `version` in one tensor.
Result<Ref<WeightVersion>> with_tensor(const WeightVersion &version, size_t index, const Tensor &value) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < version.entries().size(); ++i) {
    TUTTI_ASSIGN(Tensor tensor, i == index ? value.clone() : version.read(i));
    tensors.push_back(std::move(tensor));
  }
  return Ref<WeightVersion>(base::make_ref<TensorVersion>(version.step(), version.entries(), std::move(tensors)));
}

/// Without a trainer: the newest weights with one tensor changed are the newest from now on.
Status write_version(EstimatorState &state, std::string_view name, const Tensor &value) {
  const TrainingPermit permit(state);
  TUTTI_TRY(permit.status());
  TUTTI_ASSIGN(const Ref<WeightVersion> version, state.weights(""));
  TUTTI_ASSIGN(const size_t index, find_entry(*version, name));
  const StateEntry &entry = version->entries()[index];
  if (value.dtype() != entry.dtype || !(value.shape() == entry.shape)) {
    return base::invalid_argument("variable '", name, "' is ", entry.dtype, " ", entry.shape, ", the value ",
                                  value.describe());
  }
  TUTTI_ASSIGN(Ref<WeightVersion> changed, with_tensor(*version, index, value));
  state.resume_version = changed;
  state.publish(std::move(changed));
  return Status();
}

/// What a trainer keeps of its last step.
template <typename Reader>
Result<Tensor> read_of_last_step(EstimatorState &state, const Reader &reader) {
  std::optional<Tensor> value;
  TUTTI_ASSIGN(const bool looked, state.live.look([&](Trainer &trainer, bool) -> Status {
    TUTTI_ASSIGN(value, reader(trainer));
    return Status();
  }));
  if (looked) return std::move(*value);
  return base::failed_precondition("there is nothing to read: no step was run, or the last one failed");
}

}  // namespace

std::vector<std::string> variable_names(EstimatorState &state) {
  std::vector<std::string> names;
  const auto looked = look(state, [&](Trainer &trainer) {
    names = names_of(trainer);
    return Status();
  });
  if (looked.ok() && *looked) return names;
  const auto version = state.weights("");
  return version.ok() ? names_of(**version) : std::vector<std::string>();
}

std::vector<std::string> trainable_names(EstimatorState &state) {
  std::vector<std::string> names;
  const ModelRef model = state.models.built(Mode::train);
  if (model == nullptr || !model->train) return names;
  const auto &gradients = model->train->gradients;
  for (const graph::VariableSpec &variable : model->variables) {
    if (variable.trainable && (gradients.empty() || gradients.contains(variable.name))) names.push_back(variable.name);
  }
  return names;
}

Result<Tensor> read_variable(EstimatorState &state, std::string_view name) {
  std::optional<Tensor> value;
  TUTTI_ASSIGN(const bool looked, look(state, [&](Trainer &trainer) -> Status {
                 TUTTI_TRY(check_name(trainer, name));
                 TUTTI_ASSIGN(value, trainer.get_variable(name));
                 return Status();
               }));
  if (looked) return std::move(*value);
  TUTTI_ASSIGN(const Ref<WeightVersion> version, state.weights(""));
  TUTTI_ASSIGN(const size_t index, find_entry(*version, name));
  TUTTI_ASSIGN(const Tensor read, version->read(index));
  return read.clone();
}

Status write_variable(EstimatorState &state, std::string_view name, const Tensor &value) {
  TUTTI_ASSIGN(const bool looked, look(state, [&](Trainer &trainer) -> Status {
                 TUTTI_TRY(check_name(trainer, name));
                 state.live.note_change();
                 return trainer.set_variable(name, value);
               }));
  return looked ? Status() : write_version(state, name, value);
}

Status write_variables(EstimatorState &state, const std::map<std::string, Tensor, std::less<>> &values) {
  TUTTI_ASSIGN(const bool looked, state.live.look([&](Trainer &trainer, bool) -> Status {
    TUTTI_TRY(check_all(trainer, values));
    state.live.note_change();
    for (const auto &[name, value] : values) {
      TUTTI_TRY(trainer.set_variable(name, value));
      TUTTI_TRY(restart_average(trainer, name, value));
    }
    return Status();
  }));
  return looked ? Status() : base::failed_precondition("there are no variables to write: train or initialize first");
}

Result<Tensor> read_gradient(EstimatorState &state, std::string_view variable) {
  return read_of_last_step(state, [&](Trainer &trainer) { return trainer.gradient(variable); });
}

Result<Tensor> read_output(EstimatorState &state, std::string_view name) {
  return read_of_last_step(state, [&](Trainer &trainer) { return trainer.output(name); });
}

}  // namespace tutti::impl::estimator
