// SPDX-License-Identifier: Apache-2.0
//
// Variables and gradients of an estimator.
#include "estimator/variables.h"

#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/tensor_c.h"

namespace tutti::impl::capi {

const std::vector<std::string> &EstimatorObject::variable_names() {
  std::vector<std::string> names = estimator::variable_names(estimator_->state());
  // Texts that were lent stay where they are as long as the list is the same.
  const std::lock_guard lock(mutex_);
  if (names != variable_names_) variable_names_ = std::move(names);
  return variable_names_;
}

const std::vector<std::string> &EstimatorObject::trainable_names() {
  std::vector<std::string> names = estimator::trainable_names(estimator_->state());
  const std::lock_guard lock(mutex_);
  if (trainable_names_.empty()) trainable_names_ = std::move(names);
  return trainable_names_;
}

namespace {

using Names = const std::vector<std::string> &(EstimatorObject::*)();

int64_t count(const tutti_estimator *estimator, Names names) {
  return guard_value<int64_t>(-1, [&]() -> int64_t {
    const Ref<EstimatorObject> object = peek_shared(estimator, estimator_handles);
    return object ? static_cast<int64_t>(((*object).*names)().size()) : -1;
  });
}

const char *name_at(const tutti_estimator *estimator, Names names, int64_t index) {
  return guard_value<const char *>(nullptr, [&]() -> const char * {
    const Ref<EstimatorObject> object = peek_shared(estimator, estimator_handles);
    if (!object) return nullptr;
    const std::vector<std::string> &all = ((*object).*names)();
    return index >= 0 && index < static_cast<int64_t>(all.size()) ? all[static_cast<size_t>(index)].c_str() : nullptr;
  });
}

/// read_variable, read_gradient and read_output.
using Reader = Result<tensor::Tensor> (*)(estimator::EstimatorState &state, std::string_view name);

Status read(Reader reader, tutti_estimator *estimator, const char *name, tutti_tensor **out) {
  TUTTI_TRY(clear(out, "out"));
  TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
  TUTTI_TRY(require(name, "name"));
  TUTTI_ASSIGN(tensor::Tensor value, reader(object->estimator().state(), name));
  return emit_tensor(std::move(value), true, out);
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int64_t tutti_estimator_get_variable_count(const tutti_estimator *estimator) {
  return count(estimator, &EstimatorObject::variable_names);
}

const char *tutti_estimator_get_variable_name(const tutti_estimator *estimator, int64_t index) {
  return name_at(estimator, &EstimatorObject::variable_names, index);
}

int64_t tutti_estimator_get_trainable_count(const tutti_estimator *estimator) {
  return count(estimator, &EstimatorObject::trainable_names);
}

const char *tutti_estimator_get_trainable_name(const tutti_estimator *estimator, int64_t index) {
  return name_at(estimator, &EstimatorObject::trainable_names, index);
}

int32_t tutti_estimator_read_variable(tutti_estimator *estimator, const char *name, tutti_tensor **out,
                                      tutti_error **err) {
  return guard(err, [&]() -> Status { return read(estimator::read_variable, estimator, name, out); });
}

int32_t tutti_estimator_read_gradient(tutti_estimator *estimator, const char *variable, tutti_tensor **out,
                                      tutti_error **err) {
  return guard(err, [&]() -> Status { return read(estimator::read_gradient, estimator, variable, out); });
}

int32_t tutti_estimator_read_output(tutti_estimator *estimator, const char *name, tutti_tensor **out,
                                    tutti_error **err) {
  return guard(err, [&]() -> Status { return read(estimator::read_output, estimator, name, out); });
}

int32_t tutti_estimator_write_variable(tutti_estimator *estimator, const char *name, const tutti_tensor *value,
                                       tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_TRY(require(name, "name"));
    TUTTI_ASSIGN(const tensor::Tensor tensor, find_tensor_of("variable", name, value, "value"));
    return estimator::write_variable(object->estimator().state(), name, tensor);
  });
}
