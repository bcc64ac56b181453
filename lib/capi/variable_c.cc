// SPDX-License-Identifier: Apache-2.0
//
// Variables of an estimator: listed, read and written through its newest weights.
#include <algorithm>

#include "base/text.h"
#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/tensor_c.h"

namespace tutti::impl::capi {

const std::vector<std::string> &EstimatorObject::variable_names() {
  std::vector<std::string> names;
  if (const auto version = estimator_->weights(""); version.ok()) {
    for (const checkpoint::StateEntry &entry : (*version)->entries())
      names.push_back(entry.name);
  }
  // Texts that were lent stay where they are as long as the list is the same.
  const std::lock_guard lock(mutex_);
  if (names != variable_names_) variable_names_ = std::move(names);
  return variable_names_;
}

namespace {

using checkpoint::StateEntry;
using checkpoint::TensorVersion;
using checkpoint::WeightVersion;

Result<size_t> find_entry(const WeightVersion &version, const char *name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < version.entries().size(); ++i) {
    if (version.entries()[i].name == name) return i;
    names.push_back(version.entries()[i].name);
  }
  return base::not_found("no variable ", base::quoted(name), base::did_you_mean(name, names));
}

/// The version with one tensor replaced.
Result<Ref<WeightVersion>> with_tensor(const WeightVersion &version, size_t index, const tensor::Tensor &value) {
  std::vector<tensor::Tensor> tensors;
  for (size_t i = 0; i < version.entries().size(); ++i) {
    TUTTI_ASSIGN(tensor::Tensor tensor, i == index ? value.clone() : version.read(i));
    tensors.push_back(std::move(tensor));
  }
  return Ref<WeightVersion>(base::make_ref<TensorVersion>(version.step(), version.entries(), std::move(tensors)));
}

/// Holds the estimator's permit to train, so that nothing trains meanwhile.
class TrainingPermit {
 public:
  explicit TrainingPermit(estimator::EstimatorState &state) : state_(state), status_(state.begin_training()) {}
  ~TrainingPermit() {
    if (status_.ok()) state_.end_training();
  }
  TrainingPermit(const TrainingPermit &) = delete;
  TrainingPermit &operator=(const TrainingPermit &) = delete;
  const Status &status() const { return status_; }

 private:
  estimator::EstimatorState &state_;
  const Status status_;
};

Status write_variable(estimator::Estimator &estimator, const char *name, const tensor::Tensor &value) {
  estimator::EstimatorState &state = estimator.state();
  const TrainingPermit permit(state);
  TUTTI_TRY(permit.status());
  TUTTI_ASSIGN(const Ref<WeightVersion> version, estimator.weights(""));
  TUTTI_ASSIGN(const size_t index, find_entry(*version, name));
  const StateEntry &entry = version->entries()[index];
  if (value.dtype() != entry.dtype || !(value.shape() == entry.shape)) {
    return base::invalid_argument("variable '", name, "' is ", entry.dtype, " ", entry.shape, ", the value ",
                                  value.describe());
  }
  if (state.trainer) TUTTI_TRY(state.trainer->set_variable(name, value));
  TUTTI_ASSIGN(Ref<WeightVersion> changed, with_tensor(*version, index, value));
  if (!state.trainer) state.resume_version = changed;
  state.publish(std::move(changed));
  return Status();
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int64_t tutti_estimator_get_variable_count(const tutti_estimator *estimator) {
  return guard_value<int64_t>(-1, [&]() -> int64_t {
    const Ref<EstimatorObject> object = peek(estimator, estimator_handles);
    return object ? static_cast<int64_t>(object->variable_names().size()) : -1;
  });
}

const char *tutti_estimator_get_variable_name(const tutti_estimator *estimator, int64_t index) {
  return guard_value<const char *>(nullptr, [&]() -> const char * {
    const Ref<EstimatorObject> object = peek(estimator, estimator_handles);
    if (!object) return nullptr;
    const std::vector<std::string> &names = object->variable_names();
    return index >= 0 && index < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(index)].c_str()
                                                                    : nullptr;
  });
}

int32_t tutti_estimator_read_variable(tutti_estimator *estimator, const char *name, tutti_tensor **out,
                                      tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_TRY(require(name, "name"));
    TUTTI_ASSIGN(const Ref<WeightVersion> version, object->estimator().weights(""));
    TUTTI_ASSIGN(const size_t index, find_entry(*version, name));
    TUTTI_ASSIGN(const tensor::Tensor value, version->read(index));
    TUTTI_ASSIGN(tensor::Tensor copy, value.clone());
    return emit_tensor(std::move(copy), true, out);
  });
}

int32_t tutti_estimator_write_variable(tutti_estimator *estimator, const char *name, const tutti_tensor *value,
                                       tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_TRY(require(name, "name"));
    TUTTI_ASSIGN(const tensor::Tensor tensor, find_tensor(value, "value"));
    return write_variable(object->estimator(), name, tensor);
  });
}
