// SPDX-License-Identifier: Apache-2.0
#include "capi/predictor_c.h"

#include "base/json.h"
#include "base/text.h"
#include "capi/cancel_c.h"
#include "capi/dataset_c.h"
#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/options_c.h"
#include "capi/strategy_c.h"
#include "capi/tensor_c.h"

namespace tutti::impl::capi {

constinit HandleType<PredictorObject> predictor_handles{"predictor"};
constinit HandleType<PredictionStreamObject> prediction_stream_handles{"prediction_stream"};
constinit HandleType<BatchObject> batch_handles{"batch"};

namespace {

base::JsonArray describe(const std::vector<graph::InputSpec> &specs) {
  base::JsonArray described;
  for (const graph::InputSpec &spec : specs) {
    base::JsonArray dims;
    for (const graph::Dim &dim : spec.dims)
      dims.push_back(dim.is_constant() ? base::Json(dim.constant()) : base::Json(dim.to_code()));
    described.push_back(
        base::JsonObject{{"name", spec.name}, {"dtype", std::string(name(spec.dtype))}, {"dims", std::move(dims)}});
  }
  return described;
}

std::string describe(const prediction::Predictor &predictor) {
  return base::Json(
             base::JsonObject{{"inputs", describe(predictor.features())}, {"outputs", describe(predictor.outputs())}})
      .dump();
}

Result<prediction::PredictorOptions> predictor_options(const tutti_options *options) {
  TUTTI_ASSIGN(const ResolvedOptions resolved, resolve(options, "predictor"));
  prediction::PredictorOptions result;
  result.level = level_of(resolved.text("determinism"));
  result.precision = backend::precision_of(resolved.text("precision"));
  result.threads_per_device = resolved.i64("threads_per_replica");
  result.raw_weights = resolved.flag("raw_weights");
  if (resolved.text("worker_rows") == "own") result.worker_rows = distribute::WorkerRows::own;
  if (resolved.was_set("collective_timeout_ms")) result.collective_timeout_ms = resolved.i64("collective_timeout_ms");
  return result;
}

Status emit_batch(prediction::ResultBatch batch, tutti_batch **out) {
  Ref<BatchObject> object = base::make_ref<BatchObject>(std::move(batch));
  TUTTI_TRY(object->lend());
  return emit(std::move(object), batch_handles, out);
}

Result<std::vector<data::NamedTensor>> named_tensors(const char *const *names, tutti_tensor *const *inputs,
                                                     int64_t count) {
  if (count < 0) return base::invalid_argument("argument 'count' must be 0 or more, got ", count);
  if (count > 0) {
    TUTTI_TRY(require(names, "names"));
    TUTTI_TRY(require(inputs, "inputs"));
  }
  std::vector<data::NamedTensor> result;
  for (int64_t i = 0; i < count; ++i) {
    TUTTI_TRY(require(names[i], base::concat("names[", i, "]")));
    Result<tensor::Tensor> tensor = find_tensor(inputs[i], base::concat("inputs[", i, "]"));
    if (!tensor.ok()) return tensor.status().wrap(base::concat("feature '", names[i], "'"));
    result.push_back({names[i], tensor.take()});
  }
  return result;
}

/// All devices when the host names no strategy.
Result<distribute::StrategyRef> predict_strategy(const ContextObject &context, const tutti_strategy *strategy) {
  if (strategy == nullptr && context.strategy() == nullptr)
    return distribute::Strategy::mirrored(context.core()->devices);
  return choose_strategy(context, strategy);
}

}  // namespace

PredictorObject::PredictorObject(std::shared_ptr<ContextCore> core, Ref<prediction::Predictor> predictor)
    : core_(std::move(core)), predictor_(std::move(predictor)), signature_(describe(*predictor_)) {}

Status BatchObject::lend() {
  for (const tensor::Tensor &tensor : batch_.tensors) {
    outputs_.push_back(std::make_unique<LentHandle>());
    TUTTI_TRY(outputs_.back()->set(base::make_ref<TensorObject>(tensor, false), tensor_handles));
  }
  return Status();
}

void *BatchObject::output(std::string_view name) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if ((*batch_.names)[i] == name) return outputs_[i]->get();
  }
  return nullptr;
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_predictor_open(tutti_context *context, const char *path, const tutti_strategy *strategy,
                             const tutti_options *options, tutti_predictor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> home, find_context(context));
    TUTTI_TRY(require(path, "path"));
    TUTTI_ASSIGN(distribute::StrategyRef chosen, predict_strategy(*home, strategy));
    TUTTI_ASSIGN(const prediction::PredictorOptions settings, predictor_options(options));
    TUTTI_ASSIGN(Ref<prediction::Predictor> predictor,
                 prediction::Predictor::open(path, std::move(chosen), settings, environment_of(*home->core())));
    return emit(base::make_ref<PredictorObject>(home->core(), std::move(predictor)), predictor_handles, out);
  });
}

int32_t tutti_predictor_from_estimator(tutti_estimator *estimator, const tutti_options *options, tutti_predictor **out,
                                       tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<EstimatorObject> object, find(estimator, estimator_handles, "estimator"));
    TUTTI_ASSIGN(const prediction::PredictorOptions settings, predictor_options(options));
    TUTTI_ASSIGN(const data::ElementSpec spec, object->spec());
    TUTTI_ASSIGN(Ref<prediction::Predictor> predictor,
                 prediction::Predictor::from_estimator(object->estimator(), spec, settings));
    return emit(base::make_ref<PredictorObject>(object->core(), std::move(predictor)), predictor_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(predictor, predictor_handles)

int32_t tutti_predictor_reload(tutti_predictor *predictor, const char *path, tutti_cancel *cancel, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<PredictorObject> object, find(predictor, predictor_handles, "predictor"));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_TRY(base::check(token.get()));
    if (path == nullptr || *path == '\0') return object->predictor().reload().status();
    return object->predictor().reload_from(path);
  });
}

int64_t tutti_predictor_get_step(const tutti_predictor *predictor) {
  const Ref<PredictorObject> object = peek_shared(predictor, predictor_handles);
  return object ? object->predictor().step() : -1;
}

const char *tutti_predictor_get_signature(const tutti_predictor *predictor) {
  const Ref<PredictorObject> object = peek(predictor, predictor_handles);
  return object ? object->signature().c_str() : nullptr;
}

int32_t tutti_predictor_describe_plan(tutti_predictor *predictor, int64_t rows, int64_t timed_runs,
                                      tutti_cancel *cancel, const char **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<PredictorObject> object, find(predictor, predictor_handles, "predictor"));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_ASSIGN(const base::Json plan, object->predictor().plan(rows, timed_runs, token.get()));
    *out = object->keep_plan(plan.dump());
    return Status();
  });
}

int32_t tutti_predictor_run(tutti_predictor *predictor, const char *const *names, tutti_tensor *const *inputs,
                            int64_t count, tutti_cancel *cancel, tutti_batch **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<PredictorObject> object, find(predictor, predictor_handles, "predictor"));
    TUTTI_ASSIGN(const std::vector<data::NamedTensor> features, named_tensors(names, inputs, count));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_ASSIGN(prediction::ResultBatch batch, object->predictor().run(features, token.get()));
    return emit_batch(std::move(batch), out);
  });
}

int32_t tutti_predictor_run_all(tutti_predictor *predictor, const tutti_dataset *dataset, tutti_cancel *cancel,
                                tutti_batch **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<PredictorObject> object, find(predictor, predictor_handles, "predictor"));
    TUTTI_ASSIGN(const Ref<DatasetObject> data, find(dataset, dataset_handles, "dataset"));
    TUTTI_TRY(check_same_context(*object->core(), *data->core(), "dataset"));
    TUTTI_ASSIGN(Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_ASSIGN(prediction::ResultBatch batch, object->predictor().run_all(data->dataset(), std::move(token)));
    return emit_batch(std::move(batch), out);
  });
}

int32_t tutti_prediction_stream_open(tutti_predictor *predictor, const tutti_dataset *dataset,
                                     tutti_prediction_stream **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<PredictorObject> object, find(predictor, predictor_handles, "predictor"));
    TUTTI_ASSIGN(const Ref<DatasetObject> data, find(dataset, dataset_handles, "dataset"));
    TUTTI_TRY(check_same_context(*object->core(), *data->core(), "dataset"));
    Ref<base::CancelToken> token = base::CancelToken::create();
    TUTTI_ASSIGN(std::unique_ptr<prediction::ResultStream> stream, object->predictor().stream(data->dataset(), token));
    return emit(base::make_ref<PredictionStreamObject>(object, std::move(stream), std::move(token)),
                prediction_stream_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(prediction_stream, prediction_stream_handles)

int32_t tutti_prediction_stream_next(tutti_prediction_stream *stream, tutti_cancel *cancel, tutti_batch **out,
                                     tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<PredictionStreamObject> object, find(stream, prediction_stream_handles, "stream"));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_TRY(base::check(token.get()));
    TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "stream"));
    const std::lock_guard lock(object->mutex());
    if (object->stream() == nullptr) return base::failed_precondition("the stream is closed");
    CallScope scope(*object->token(), token.get());
    prediction::ResultBatch batch;
    TUTTI_ASSIGN(const bool more, scope.run([&] { return object->stream()->next(batch); }));
    return more ? emit_batch(std::move(batch), out) : Status();
  });
}

int32_t tutti_prediction_stream_close(tutti_prediction_stream *stream, tutti_cancel *cancel, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<PredictionStreamObject> object, find(stream, prediction_stream_handles, "stream"));
    TUTTI_TRY(wait_token(cancel));
    object->token()->cancel();
    const std::lock_guard lock(object->mutex());
    object->stream().reset();
    return Status();
  });
}

TUTTI_DEFINE_COUNTING(batch, batch_handles)

int64_t tutti_batch_get_first_row(const tutti_batch *batch) {
  const Ref<BatchObject> object = peek(batch, batch_handles);
  return object ? object->batch().first_row : -1;
}

int64_t tutti_batch_get_row_count(const tutti_batch *batch) {
  const Ref<BatchObject> object = peek(batch, batch_handles);
  return object ? object->batch().row_count : -1;
}

int64_t tutti_batch_get_output_count(const tutti_batch *batch) {
  const Ref<BatchObject> object = peek(batch, batch_handles);
  return object ? static_cast<int64_t>(object->batch().names->size()) : -1;
}

const char *tutti_batch_get_output_name(const tutti_batch *batch, int64_t index) {
  const Ref<BatchObject> object = peek(batch, batch_handles);
  if (!object || index < 0 || index >= static_cast<int64_t>(object->batch().names->size())) return nullptr;
  return (*object->batch().names)[static_cast<size_t>(index)].c_str();
}

tutti_tensor *tutti_batch_get_output(const tutti_batch *batch, const char *name) {
  const Ref<BatchObject> object = peek(batch, batch_handles);
  return object && name != nullptr ? static_cast<tutti_tensor *>(object->output(name)) : nullptr;
}
