// SPDX-License-Identifier: Apache-2.0
//
// Pipelines: sources and transforms written step by step. Those of functions and graphs are in pipeline_calls_c.cc.
#include "capi/pipeline_c.h"
#include "base/text.h"
#include "capi/cancel_c.h"
#include "capi/guard.h"
#include "capi/tensor_c.h"
#include "data/format/arrow.h"

namespace tutti::impl::capi {

constinit HandleType<PipelineObject> pipeline_handles{"pipeline"};

void PipelineObject::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool PipelineObject::can_add_source(std::string_view what) {
  if (!pipeline_) return true;
  fail(base::failed_precondition(what, " cannot be added after a transform or another source"));
  return false;
}

bool PipelineObject::can_add_component(std::string_view what, bool has_others) {
  if (!can_add_source(what)) return false;
  if (has_others) fail(base::failed_precondition("slices, tensors and IDX files cannot be mixed in one source"));
  return !has_others;
}

void PipelineObject::add_slices(std::string name, data::Role role, tensor::Tensor tensor) {
  const bool has_others = !tensors_.empty() || !files_.empty();
  if (can_add_component("slices", has_others)) slices_.push_back({std::move(name), std::move(tensor), role});
}

void PipelineObject::add_tensor(std::string name, data::Role role, tensor::Tensor tensor) {
  const bool has_others = !slices_.empty() || !files_.empty();
  if (can_add_component("a tensor", has_others)) tensors_.push_back({std::move(name), std::move(tensor), role});
}

void PipelineObject::add_idx(std::string name, data::Role role, std::string path) {
  const bool has_others = !slices_.empty() || !tensors_.empty();
  if (can_add_component("an IDX file", has_others)) files_.push_back({std::move(name), std::move(path), role});
}

void PipelineObject::declare(data::ComponentSpec component) {
  if (!can_add_source("a component")) return;
  declared_.components.push_back(std::move(component));
}

void PipelineObject::set_arrow_stream(std::shared_ptr<data::ArrowStream> stream) {
  if (can_add_source("an Arrow stream")) arrow_stream_ = std::move(stream);
}

void PipelineObject::start_from(data::GeneratorFunction function) {
  Result<data::DatasetRef> dataset = data::from_generator(std::move(declared_), std::move(function));
  declared_ = {};
  if (!dataset.ok()) return fail(dataset.status());
  start_from(dataset.take());
}

void PipelineObject::start_from(data::DatasetRef dataset) {
  if (!can_add_source("a dataset")) return;
  if (has_components())
    return fail(base::failed_precondition("a dataset cannot be added to a source that has components"));
  pipeline_.emplace(std::move(dataset));
}

Result<data::DatasetRef> PipelineObject::source() {
  if (!slices_.empty()) return data::from_slices(std::move(slices_));
  if (!tensors_.empty()) return data::from_tensors(std::move(tensors_));
  if (!files_.empty()) return data::from_idx_files(files_, core_->file_systems.get(), cancel_);
  return base::failed_precondition(
      "the pipeline has no source: begin with slices, tensors, IDX files, a feed, a dataset or an entry of the "
      "registry of sources");
}

data::Pipeline *PipelineObject::pipeline() {
  if (!ok()) return nullptr;
  if (!pipeline_) pipeline_.emplace(source());
  if (!pipeline_->status().ok()) fail(pipeline_->status());
  return ok() ? &*pipeline_ : nullptr;
}

data::Pipeline *PipelineObject::pipeline_to_begin() {
  if (ok() && !pipeline_ && !has_components())
    pipeline_.emplace(
        data::SourceServices{core_->file_systems, std::exchange(arrow_stream_, nullptr), cancel_, core_->logger});
  return pipeline();
}

Result<data::DatasetRef> PipelineObject::build() {
  if (pending) fail(base::failed_precondition("transform '", pending->name, "' was begun but not ended"));
  data::Pipeline *const complete = pipeline();
  Result<data::DatasetRef> result = complete != nullptr ? complete->build() : Result<data::DatasetRef>(status_);
  slices_.clear();
  tensors_.clear();
  files_.clear();
  declared_ = {};
  arrow_stream_.reset();
  cancel_.reset();
  pipeline_.reset();
  pending.reset();
  status_ = Status();
  return result;
}

namespace {

bool check_pipeline_list(PipelineObject &object, const char *key, const void *values, int64_t count) {
  if (!check_text(object, key, "key")) return false;
  if (count >= 0 && (values != nullptr || count == 0)) return true;
  if (count < 0) {
    object.fail(base::invalid_argument("parameter '", key, "': argument 'count' must be 0 or more, got ", count));
  } else {
    object.fail(base::invalid_argument("parameter '", key, "': argument 'values' is NULL with a count of ", count));
  }
  return false;
}

void set_parameter(tutti_pipeline *pipeline, const char *key, graph::Attribute value) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, key, "key")) return;
    if (!object.pending)
      return object.fail(base::failed_precondition("parameter '", key, "' was set, but no transform was begun"));
    object.pending->attributes.insert_or_assign(key, std::move(value));
  });
}

/// The texts set so far, if the parameter takes several; else null.
std::vector<std::string> *list_of(PipelineObject &object, const char *key) {
  if (!object.pending || key == nullptr) return nullptr;
  const data::ParameterDefinition *const parameter =
      data::find_parameter(object.pending->name, object.pending->revision, key);
  if (parameter == nullptr || parameter->type != data::ParameterType::strings) return nullptr;
  graph::Attribute &value = object.pending->attributes[key];
  if (!std::holds_alternative<std::vector<std::string>>(value)) value = std::vector<std::string>();
  return &std::get<std::vector<std::string>>(value);
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_pipeline_create(tutti_context *context, tutti_pipeline **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    return emit(base::make_ref<PipelineObject>(owner->core()), pipeline_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(pipeline, pipeline_handles)

void tutti_pipeline_add_slices(tutti_pipeline *pipeline, const char *name, int32_t role, const tutti_tensor *tensor) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, name, "name")) return;
    const auto kind = take(object, to_role(role, name));
    auto value = take(object, find_tensor_of("component", name, tensor, "tensor"));
    if (kind && value) object.add_slices(name, *kind, std::move(*value));
  });
}

void tutti_pipeline_add_tensor(tutti_pipeline *pipeline, const char *name, int32_t role, const tutti_tensor *tensor) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, name, "name")) return;
    const auto kind = take(object, to_role(role, name));
    auto value = take(object, find_tensor_of("component", name, tensor, "tensor"));
    if (kind && value) object.add_tensor(name, *kind, std::move(*value));
  });
}

void tutti_pipeline_add_idx(tutti_pipeline *pipeline, const char *name, int32_t role, const char *path) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, name, "name") || !check_text(object, path, "path")) return;
    if (const auto kind = take(object, to_role(role, name))) object.add_idx(name, *kind, path);
  });
}

void tutti_pipeline_declare(tutti_pipeline *pipeline, const char *name, int32_t role, int32_t dtype,
                            const int64_t *dims, int64_t rank) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, name, "name")) return;
    const auto kind = take(object, to_role(role, name));
    const auto type = take(object, to_dtype(dtype));
    if (!kind || !type) return;
    if (rank < 0 || rank > tensor::Shape::kMaxRank || (dims == nullptr && rank > 0))
      return object.fail(base::invalid_argument("component '", name, "': argument 'rank' must be from 0 to ",
                                                tensor::Shape::kMaxRank, " and 'dims' not NULL"));
    graph::Dims extents;
    for (int64_t i = 0; i < rank; ++i)
      extents.push_back(dims[i] < 0 ? data::unknown_dim() : graph::Dim(dims[i]));
    object.declare({name, *kind, *type, std::move(extents)});
  });
}

void tutti_pipeline_set_arrow_stream(tutti_pipeline *pipeline, struct ArrowArrayStream *stream) {
  const auto taken =
      guard_value<std::shared_ptr<data::ArrowStream>>(nullptr, [&] { return data::ArrowStream::take(stream); });
  change(pipeline, [&](PipelineObject &object) {
    if (taken == nullptr)
      return object.fail(base::invalid_argument("argument 'stream' is NULL, or the stream was released"));
    object.set_arrow_stream(taken);
  });
}

void tutti_pipeline_add_feed(tutti_pipeline *pipeline, tutti_feed *feed) {
  change(pipeline, [&](PipelineObject &object) {
    const auto source = take(object, find(feed, feed_handles, "feed"));
    if (!source) return;
    if (Status same = check_same_context(*object.core(), *(*source)->core(), "feed"); !same.ok())
      return object.fail(same);
    if (const auto started = take(object, (*source)->feed())) object.start_from((*started)->dataset());
  });
}

void tutti_pipeline_add_dataset(tutti_pipeline *pipeline, const tutti_dataset *dataset) {
  change(pipeline, [&](PipelineObject &object) {
    const auto source = take(object, find(dataset, dataset_handles, "dataset"));
    if (!source) return;
    if (Status same = check_same_context(*object.core(), *(*source)->core(), "dataset"); !same.ok())
      return object.fail(same);
    object.start_from((*source)->dataset());
  });
}

void tutti_pipeline_set_cancel(tutti_pipeline *pipeline, tutti_cancel *cancel) {
  change(pipeline, [&](PipelineObject &object) {
    if (auto token = take(object, wait_token(cancel))) object.set_cancel(std::move(*token));
  });
}

void tutti_pipeline_begin(tutti_pipeline *pipeline, const char *transform, int32_t revision) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, transform, "transform")) return;
    if (object.pending) {
      return object.fail(base::failed_precondition("transform '", transform, "' was begun before '",
                                                   object.pending->name, "' was ended"));
    }
    object.pending.emplace(PipelineObject::Pending{});
    object.pending->name = transform;
    object.pending->revision = revision;
  });
}

void tutti_pipeline_set_bool(tutti_pipeline *pipeline, const char *key, uint8_t value) {
  set_parameter(pipeline, key, value != 0);
}

void tutti_pipeline_set_i64(tutti_pipeline *pipeline, const char *key, int64_t value) {
  set_parameter(pipeline, key, value);
}

void tutti_pipeline_set_f64(tutti_pipeline *pipeline, const char *key, double value) {
  set_parameter(pipeline, key, value);
}

void tutti_pipeline_set_string(tutti_pipeline *pipeline, const char *key, const char *value) {
  change(pipeline, [&](PipelineObject &object) {
    if (value == nullptr)
      return object.fail(
          base::invalid_argument("parameter '", key != nullptr ? key : "", "': argument 'value' is NULL"));
    std::vector<std::string> *const list = list_of(object, key);
    if (list == nullptr) return set_parameter(pipeline, key, std::string(value));
    list->emplace_back(value);
  });
}

void tutti_pipeline_set_i64s(tutti_pipeline *pipeline, const char *key, const int64_t *values, int64_t count) {
  change(pipeline, [&](PipelineObject &object) {
    if (check_pipeline_list(object, key, values, count))
      set_parameter(pipeline, key, std::vector<int64_t>(values, values + count));
  });
}

void tutti_pipeline_set_f64s(tutti_pipeline *pipeline, const char *key, const double *values, int64_t count) {
  change(pipeline, [&](PipelineObject &object) {
    if (check_pipeline_list(object, key, values, count))
      set_parameter(pipeline, key, std::vector<double>(values, values + count));
  });
}

void tutti_pipeline_set_dataset(tutti_pipeline *pipeline, const char *key, const tutti_dataset *dataset) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, key, "key")) return;
    const auto other = take(object, find(dataset, dataset_handles, key));
    if (!other) return;
    if (Status same = check_same_context(*object.core(), *(*other)->core(), key); !same.ok()) return object.fail(same);
    if (!object.pending) return object.fail(base::failed_precondition("a dataset was set, but no transform was begun"));
    if (std::string_view(key) == "like") {
      object.pending->arguments.output_spec = (*other)->dataset()->spec();
    } else {
      object.pending->arguments.others.push_back((*other)->dataset());
    }
  });
}

void tutti_pipeline_end(tutti_pipeline *pipeline) {
  change(pipeline, [&](PipelineObject &object) {
    if (!object.pending) return object.fail(base::failed_precondition("a transform was ended, but none was begun"));
    PipelineObject::Pending done = std::move(*object.pending);
    object.pending.reset();
    done.arguments.cancel = object.cancel();
    data::Pipeline *const target = object.pipeline_to_begin();
    if (target == nullptr) return;
    if (done.map) {
      const data::ElementSpec *const input = target->spec();
      data::ElementSpec as_input = input != nullptr ? *input : data::ElementSpec();
      done.arguments.map = done.map(done.arguments.output_spec.value_or(std::move(as_input)));
    }
    target->apply(done.name, std::move(done.attributes), std::move(done.arguments), done.revision);
  });
}

int32_t tutti_pipeline_build(tutti_pipeline *pipeline, tutti_dataset **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<PipelineObject> object, find(pipeline, pipeline_handles, "pipeline"));
    TUTTI_ASSIGN(data::DatasetRef dataset, object->build());
    return emit_dataset(object->core(), std::move(dataset), out);
  });
}
