// SPDX-License-Identifier: Apache-2.0
#include "capi/step_function_c.h"

#include <optional>

#include "base/function_token.h"
#include "base/name_suggestions.h"
#include "base/text.h"
#include "capi/dataset_c.h"
#include "capi/guard.h"
#include "capi/result_c.h"
#include "capi/tensor_c.h"
#include "tensor/pieces.h"

namespace tutti::impl::capi {

constinit HandleType<ReplicaValuesObject> replica_values_handles{"replica_values"};

Status ReplicaValuesObject::add(std::string name, std::vector<tensor::Tensor> pieces) {
  Output output{std::move(name), std::move(pieces)};
  for (const tensor::Tensor &piece : output.pieces) {
    output.handles.push_back(nullptr);
    if (piece.empty()) continue;
    output.handles.back() = std::make_unique<LentHandle>();
    TUTTI_TRY(output.handles.back()->set(base::make_ref<TensorObject>(piece, false), tensor_handles));
  }
  outputs_.push_back(std::move(output));
  return Status();
}

const ReplicaValuesObject::Output *ReplicaValuesObject::find(std::string_view name) const {
  for (const Output &output : outputs_) {
    if (output.name == name) return &output;
  }
  return nullptr;
}

Result<std::vector<tensor::Tensor>> ReplicaValuesObject::pieces_of_all(std::string_view name) const {
  const Output *const output = find(name);
  if (output == nullptr) {
    std::vector<std::string> names;
    for (const Output &known : outputs_)
      names.push_back(known.name);
    return base::not_found("there is no output '", name, "'", base::but_there_are(name, names));
  }
  return session_->pieces_of_all(output->pieces);
}

namespace {

Result<estimator::Mode> to_mode(int32_t mode) {
  if (mode < TUTTI_MODE_TRAIN || mode > TUTTI_MODE_PREDICT)
    return base::invalid_argument("argument 'mode' is ", mode, ", expected TUTTI_MODE_TRAIN, _EVAL or _PREDICT");
  return static_cast<estimator::Mode>(mode);
}

Result<std::vector<tensor::Tensor>> find_batch(tutti_tensor *const *handles, int64_t count) {
  if (count < 1) return base::invalid_argument("argument 'count' must be 1 or more, got ", count);
  TUTTI_TRY(require(handles, "tensors"));
  std::vector<tensor::Tensor> tensors;
  for (int64_t i = 0; i < count; ++i) {
    TUTTI_ASSIGN(tensor::Tensor tensor, find_tensor(handles[i], base::concat("tensors[", i, "]")));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Status emit_values(const Ref<SessionObject> &session, std::string_view function, tutti_replica_values **out) {
  TUTTI_ASSIGN(const std::vector<std::string> names, session->session()->step_outputs(function));
  auto values = base::make_ref<ReplicaValuesObject>(session, session->replica_count());
  for (const std::string &name : names) {
    TUTTI_ASSIGN(std::vector<tensor::Tensor> pieces, session->session()->step_output(function, name));
    TUTTI_TRY(values->add(name, std::move(pieces)));
  }
  return emit(std::move(values), replica_values_handles, out);
}

template <typename T>
T from_values(const tutti_replica_values *handle, T otherwise, T (*body)(const ReplicaValuesObject &)) {
  const Ref<ReplicaValuesObject> object = peek(handle, replica_values_handles);
  return object ? body(*object) : otherwise;
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_estimator_add_step_function(tutti_estimator *estimator, const char *name, int32_t mode,
                                          tutti_model_fn step_fn, void *user, tutti_destroy_fn destroy,
                                          const tutti_dataset *input, tutti_error **err) {
  return guard(err, [&]() -> Status {
    auto owner = std::make_shared<UserPointer>(user, destroy);
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_TRY(require(name, "name"));
    TUTTI_TRY(require(reinterpret_cast<const void *>(step_fn), "step_fn"));
    estimator::StepFunctionSource source;
    source.name = name;
    if (source.name.empty() || source.name.find('/') != std::string::npos)
      return base::invalid_argument("argument 'name' is '", source.name, "', expected a name without '/'");
    TUTTI_ASSIGN(source.mode, to_mode(mode));
    if (input != nullptr) {
      TUTTI_ASSIGN(const Ref<DatasetObject> dataset, find(input, dataset_handles, "input"));
      TUTTI_TRY(check_same_context(*object->core(), *dataset->core(), "input"));
      source.input = dataset->dataset()->spec();
      if (!source.input->is_batched())
        return base::invalid_argument("argument 'input' has single examples, expected batches: call batch first");
    }
    source.function = model_function(step_fn, std::move(owner), object->shared_rules(), object->params());
    return object->estimator().state().add_step_function(std::move(source));
  });
}

int32_t tutti_session_run_step_function(tutti_session *session, const char *name, tutti_tensor *const *tensors,
                                        int64_t count, tutti_result **result, tutti_replica_values **values,
                                        tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (result != nullptr) *result = nullptr;
    if (values != nullptr) *values = nullptr;
    TUTTI_TRY(require(name, "name"));
    TUTTI_ASSIGN(std::vector<tensor::Tensor> batch, find_batch(tensors, count));
    TUTTI_ASSIGN(const Ref<SessionObject> object, find(session, session_handles, "session"));
    TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "session"));
    if (object->session() == nullptr) return base::failed_precondition("the session is closed");
    estimator::TrainSession &training = *object->session();
    TUTTI_ASSIGN(const distribute::StepFunctionReport report, training.run_step_function(name, std::move(batch)));
    if (values != nullptr) TUTTI_TRY(emit_values(object, name, values));
    const Status emitted =
        emit_result(base::make_ref<ResultObject>(report, training.step(), object->seconds()), result);
    if (!emitted.ok() && values != nullptr) tutti_replica_values_unref(std::exchange(*values, nullptr));
    return emitted;
  });
}

TUTTI_DEFINE_COUNTING(replica_values, replica_values_handles)

int64_t tutti_replica_values_get_replica_count(const tutti_replica_values *values) {
  return guard_value<int64_t>(-1, [&] {
    return from_values<int64_t>(values, -1,
                                [](const ReplicaValuesObject &object) -> int64_t { return object.replicas(); });
  });
}

int64_t tutti_replica_values_get_output_count(const tutti_replica_values *values) {
  return guard_value<int64_t>(-1, [&] {
    return from_values<int64_t>(
        values, -1, [](const ReplicaValuesObject &object) { return static_cast<int64_t>(object.outputs().size()); });
  });
}

const char *tutti_replica_values_get_output_name(const tutti_replica_values *values, int64_t index) {
  return guard_value<const char *>(nullptr, [&]() -> const char * {
    const Ref<ReplicaValuesObject> object = peek(values, replica_values_handles);
    if (!object || index < 0 || index >= static_cast<int64_t>(object->outputs().size())) return nullptr;
    return object->outputs()[static_cast<size_t>(index)].name.c_str();
  });
}

tutti_tensor *tutti_replica_values_get_local(const tutti_replica_values *values, const char *output, int64_t replica) {
  return guard_value<tutti_tensor *>(nullptr, [&]() -> tutti_tensor * {
    const Ref<ReplicaValuesObject> object = peek(values, replica_values_handles);
    if (!object || output == nullptr || replica < 0 || replica >= object->replicas()) return nullptr;
    const ReplicaValuesObject::Output *const found = object->find(output);
    if (found == nullptr || found->handles[static_cast<size_t>(replica)] == nullptr) return nullptr;
    return static_cast<tutti_tensor *>(found->handles[static_cast<size_t>(replica)]->get());
  });
}

int32_t tutti_replica_values_gather(tutti_replica_values *values, const char *output, int64_t axis, tutti_tensor **out,
                                    tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ReplicaValuesObject> object, find(values, replica_values_handles, "values"));
    TUTTI_TRY(require(output, "output"));
    TUTTI_ASSIGN(const std::vector<tensor::Tensor> pieces, object->pieces_of_all(output));
    Result<tensor::Tensor> whole = tensor::concatenate(pieces, axis);
    if (!whole.ok()) return whole.status().wrap(base::concat("output '", output, "'"));
    return emit_tensor(whole.take(), true, out);
  });
}

int32_t tutti_replica_values_reduce(tutti_replica_values *values, const char *output, int32_t reduction, int64_t axis,
                                    tutti_tensor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ReplicaValuesObject> object, find(values, replica_values_handles, "values"));
    TUTTI_TRY(require(output, "output"));
    if (reduction != TUTTI_REDUCE_SUM && reduction != TUTTI_REDUCE_MEAN)
      return base::invalid_argument("argument 'reduction' is ", reduction,
                                    ", expected TUTTI_REDUCE_SUM or TUTTI_REDUCE_MEAN");
    TUTTI_ASSIGN(const std::vector<tensor::Tensor> pieces, object->pieces_of_all(output));
    const auto how = reduction == TUTTI_REDUCE_SUM ? tensor::Reduction::sum : tensor::Reduction::mean;
    const auto along = axis == TUTTI_ACROSS_REPLICAS ? std::nullopt : std::optional(axis);
    Result<tensor::Tensor> reduced = tensor::reduce(pieces, how, along);
    if (!reduced.ok()) return reduced.status().wrap(base::concat("output '", output, "'"));
    return emit_tensor(reduced.take(), true, out);
  });
}
