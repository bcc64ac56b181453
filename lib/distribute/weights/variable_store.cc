// SPDX-License-Identifier: Apache-2.0
#include "distribute/weights/variable_store.h"

#include <algorithm>
#include <vector>

#include "base/name_suggestions.h"
#include "base/text.h"
#include "distribute/plan/weight_averages.h"
#include "distribute/weights/initial_values.h"

namespace tutti::impl::distribute {

using backend::StateEntry;
using base::Result;
using base::Status;
using checkpoint::StateRole;
using tensor::Tensor;

namespace {

/// How entries of a kind are called in plans, and by people.
struct KindNames {
  std::string_view prefix, what;
};

constexpr KindNames names_of(StoredKind kind) {
  switch (kind) {
    case StoredKind::slot:
      return {"slot/", "slot"};
    case StoredKind::host_scalar:
      return {"host/", "host scalar"};
    default:
      return {"weight/", "variable"};
  }
}

}  // namespace

Result<const StateEntry *> VariableStore::find(StoredKind kind, std::string_view name) const {
  const auto [prefix, what] = names_of(kind);
  const StateEntry *entry = plan_.find(base::concat(prefix, name));
  if (entry != nullptr) return entry;
  std::vector<std::string> names;
  for (const StateEntry &known : plan_.entries()) {
    if (known.name.starts_with(prefix)) names.push_back(known.name.substr(prefix.size()));
  }
  return base::not_found("the model has no ", what, " '", name, "'", base::but_there_are(name, names));
}

Result<Tensor> VariableStore::read(StoredKind kind, std::string_view name) const {
  TUTTI_ASSIGN(const StateEntry *const entry, find(kind, name));
  return weights_.read(*entry);
}

StoredKind VariableStore::kind_of(std::string_view name) const {
  const bool is_slot = model_.find_variable(name) == nullptr && plan_.find(base::concat("slot/", name)) != nullptr;
  return is_slot ? StoredKind::slot : StoredKind::variable;
}

Status VariableStore::write(StoredKind kind, std::string_view name, const Tensor &value, bool begins_average) {
  TUTTI_ASSIGN(const StateEntry *const entry, find(kind, name));
  TUTTI_TRY(weights_.write(*entry, value));
  if (kind != StoredKind::variable || !begins_average) return Status();
  const StateEntry *const average = plan_.find(average_entry(name));
  return average == nullptr ? Status() : weights_.write(*average, value);
}

Status VariableStore::write_host_scalar(std::string_view name, double value) {
  TUTTI_ASSIGN(const StateEntry *const entry, find(StoredKind::host_scalar, name));
  TUTTI_ASSIGN(const Tensor scalar, filled(entry->dtype, {}, value));
  return weights_.write(*entry, scalar);
}

Status VariableStore::write_initial(std::span<const Tensor> values) {
  for (size_t i = 0; i < values.size(); ++i)
    TUTTI_TRY(write(StoredKind::variable, model_.variables[i].name, values[i], false));
  return write_slots(nullptr);
}

Status VariableStore::check(const checkpoint::WeightVersion &version) const {
  for (const graph::VariableSpec &variable : model_.variables) {
    const int64_t found = version.find(StateRole::weight, variable.name);
    if (found < 0) return base::not_found("the weights to restore lack variable '", variable.name, "'");
    const checkpoint::StateEntry &entry = version.entries()[static_cast<size_t>(found)];
    if (entry.dtype == variable.dtype && std::ranges::equal(entry.shape.extents(), variable.dims)) continue;
    return base::invalid_argument("variable '", variable.name, "' is ", tensor::name(variable.dtype), " ",
                                  variable.dims, " in the model and ", tensor::name(entry.dtype), " ", entry.shape,
                                  " in the weights to restore");
  }
  return check_slots(version);
}

Status VariableStore::check_slots(const checkpoint::WeightVersion &version) const {
  const std::string_view prefix = names_of(StoredKind::slot).prefix;
  for (const StateEntry &slot : plan_.entries()) {
    if (!slot.name.starts_with(prefix) || is_average(slot)) continue;
    const std::string name = slot.name.substr(prefix.size());
    const int64_t found = version.find(StateRole::slot, scoped_slot(name, slot_scope_));
    if (found < 0) continue;
    const checkpoint::StateEntry &entry = version.entries()[static_cast<size_t>(found)];
    if (entry.dtype == slot.dtype && std::ranges::equal(entry.shape.extents(), slot.dims)) continue;
    return base::invalid_argument("slot '", name, "' is ", tensor::name(slot.dtype), " ", slot.dims,
                                  " in the optimizer and ", tensor::name(entry.dtype), " ", entry.shape,
                                  " in the weights to restore");
  }
  return Status();
}

Status VariableStore::write_version(const checkpoint::WeightVersion &version) {
  TUTTI_TRY(check(version));
  for (const graph::VariableSpec &variable : model_.variables) {
    const int64_t found = version.find(StateRole::weight, variable.name);
    TUTTI_ASSIGN(const Tensor value, version.read(static_cast<size_t>(found)));
    TUTTI_TRY(write(StoredKind::variable, variable.name, value, false));
  }
  return write_slots(&version);
}

Status VariableStore::write_slots(const checkpoint::WeightVersion *version) {
  for (const graph::VariableSpec &variable : model_.variables) {
    for (const graph::SlotSpec &slot : model_.train->optimizer.slots) {
      const std::string name = variable.name + "/" + slot.name;
      const StateEntry *entry = plan_.find("slot/" + name);
      if (entry == nullptr) continue;
      const int64_t found = version == nullptr ? -1 : version->find(StateRole::slot, scoped_slot(name, slot_scope_));
      TUTTI_ASSIGN(const Tensor value, found >= 0 ? version->read(static_cast<size_t>(found))
                                                  : filled(entry->dtype, entry->dims, slot.initial));
      TUTTI_TRY(weights_.write(*entry, value));
    }
    TUTTI_TRY(write_average(variable.name, version));
  }
  return Status();
}

Status VariableStore::write_average(const std::string &variable, const checkpoint::WeightVersion *version) {
  const StateEntry *average = plan_.find(average_entry(variable));
  if (average == nullptr) return Status();
  const std::string name = base::concat(variable, "/", checkpoint::kAverageSlot);
  const int64_t found = version == nullptr ? -1 : version->find(StateRole::slot, name);
  TUTTI_ASSIGN(const Tensor value,
               found >= 0 ? version->read(static_cast<size_t>(found)) : read(StoredKind::variable, variable));
  return weights_.write(*average, value);
}

}  // namespace tutti::impl::distribute
