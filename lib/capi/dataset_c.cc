// SPDX-License-Identifier: Apache-2.0
//
// Datasets and iterators. Pipelines are in pipeline_c.cc, feeds in feed_c.cc.
#include "capi/dataset_c.h"

#include "base/text.h"
#include "capi/cancel_c.h"
#include "capi/guard.h"
#include "capi/tensor_c.h"
#include "data/format/arrow.h"
#include "data/pipeline/class_column.h"
#include "data/pipeline/text_counts.h"

namespace tutti::impl::capi {

constinit HandleType<DatasetObject> dataset_handles{"dataset"};
constinit HandleType<IteratorObject> iterator_handles{"iterator"};

namespace {

base::Json describe_elements(const data::ElementSpec &spec) {
  base::JsonArray components;
  for (const data::ComponentSpec &component : spec.components) {
    base::JsonArray dims;
    for (const graph::Dim &dim : component.dims)
      dims.push_back(dim.is_constant() ? base::Json(dim.constant()) : base::Json(dim.to_code()));
    components.push_back(base::JsonObject{{"name", component.name},
                                          {"role", std::string(name(component.role))},
                                          {"dtype", std::string(name(component.dtype))},
                                          {"dims", std::move(dims)}});
  }
  return base::JsonObject{{"components", std::move(components)}, {"batch_size", spec.batch_size}};
}

// What saved positions are written as, beside the members of the pipeline's last stage.
constexpr std::string_view kStateVersionKey = "version";
constexpr int64_t kStateVersion = 1;

Status check_state_version(const base::Json &state) {
  if (!state.is_object()) return Status();  // no state at all, as the iterator tells
  const base::JsonReader reader(state, "iterator");
  TUTTI_ASSIGN(const int64_t version, reader.get_integer(kStateVersionKey, kStateVersion));
  if (version == kStateVersion) return Status();
  return base::unimplemented("the iterator state is of version ", version, "; this library reads version ",
                             kStateVersion);
}

}  // namespace

DatasetObject::DatasetObject(std::shared_ptr<ContextCore> core, data::DatasetRef dataset,
                             distribute::StrategyRef strategy)
    : core_(std::move(core)),
      dataset_(std::move(dataset)),
      strategy_(std::move(strategy)),
      spec_(describe_elements(dataset_->spec()).dump()) {
  if (const auto warnings = data::lint(*dataset_); warnings.ok()) lint_ = base::join(*warnings, "\n");
}

Status emit_dataset(std::shared_ptr<ContextCore> core, data::DatasetRef dataset, tutti_dataset **out) {
  return emit(base::make_ref<DatasetObject>(std::move(core), std::move(dataset)), dataset_handles, out);
}

Result<data::Role> to_role(int32_t role, std::string_view component) {
  switch (role) {
    case TUTTI_ROLE_FEATURE:
      return data::Role::feature;
    case TUTTI_ROLE_LABEL:
      return data::Role::label;
    case TUTTI_ROLE_WEIGHT:
      return data::Role::weight;
    default:
      return base::invalid_argument("component '", component, "': argument 'role' must be one of TUTTI_ROLE_..., got ",
                                    role);
  }
}

data::IteratorContext iterator_context(const ContextCore &core, int64_t seed, Ref<base::CancelToken> cancel) {
  data::IteratorContext context;
  context.cancel = std::move(cancel);
  context.seed = seed;
  context.threads = core.threads;
  context.graphs = core.graph_runner;
  context.logger = core.logger;
  return context;
}

namespace {

const data::ComponentSpec *component_at(const Ref<DatasetObject> &object, int64_t index) {
  if (!object) return nullptr;
  const auto &components = object->dataset()->spec().components;
  return index >= 0 && index < static_cast<int64_t>(components.size()) ? &components[static_cast<size_t>(index)]
                                                                       : nullptr;
}

Status check_not_negative(int64_t value, const char *argument) {
  if (value >= 0) return Status();
  return base::invalid_argument("argument '", argument, "' must be 0 or more, got ", value);
}

/// Lends handles on the tensors of the element the iterator stands on.
Status lend_components(IteratorObject &object) {
  const auto &tensors = object.element.components;
  while (object.components.size() < tensors.size())
    object.components.push_back(std::make_unique<LentHandle>());
  for (size_t i = 0; i < tensors.size(); ++i)
    TUTTI_TRY(object.components[i]->set(base::make_ref<TensorObject>(tensors[i], false), tensor_handles));
  return Status();
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

TUTTI_DEFINE_COUNTING(dataset, dataset_handles)

int64_t tutti_dataset_get_cardinality(const tutti_dataset *dataset) {
  const Ref<DatasetObject> object = peek(dataset, dataset_handles);
  return object ? object->dataset()->cardinality().value() : TUTTI_CARDINALITY_UNKNOWN;
}

int64_t tutti_dataset_get_component_count(const tutti_dataset *dataset) {
  const Ref<DatasetObject> object = peek(dataset, dataset_handles);
  return object ? static_cast<int64_t>(object->dataset()->spec().components.size()) : -1;
}

const char *tutti_dataset_get_component_name(const tutti_dataset *dataset, int64_t index) {
  const data::ComponentSpec *component = component_at(peek(dataset, dataset_handles), index);
  return component != nullptr ? component->name.c_str() : nullptr;
}

int32_t tutti_dataset_get_component_role(const tutti_dataset *dataset, int64_t index) {
  const data::ComponentSpec *component = component_at(peek(dataset, dataset_handles), index);
  return component != nullptr ? static_cast<int32_t>(component->role) + 1 : 0;
}

const char *tutti_dataset_get_spec(const tutti_dataset *dataset) {
  const Ref<DatasetObject> object = peek(dataset, dataset_handles);
  return object ? object->spec().c_str() : nullptr;
}

const char *tutti_dataset_get_lint(const tutti_dataset *dataset) {
  const Ref<DatasetObject> object = peek(dataset, dataset_handles);
  return object ? object->lint().c_str() : nullptr;
}

int32_t tutti_dataset_split(const tutti_dataset *dataset, int64_t count, tutti_dataset **first, tutti_dataset **rest,
                            tutti_error **err) {
  return guard(err, [&]() -> Status {
    const Status first_is_clear = clear(first, "first");
    TUTTI_TRY(clear(rest, "rest"));
    TUTTI_TRY(first_is_clear);
    TUTTI_ASSIGN(const Ref<DatasetObject> object, find(dataset, dataset_handles, "dataset"));
    if (count < 0) return base::invalid_argument("argument 'count' must be 0 or more, got ", count);
    const data::Cardinality all = object->dataset()->cardinality();
    if (all.is_exact() && count > all.value()) {
      return base::invalid_argument("argument 'count' is ", count, ", but the dataset has ", all.value(), " elements");
    }
    const auto part = [&](const char *transform) {
      return data::Pipeline(object->dataset()).apply(transform, {{"count", count}}).build();
    };
    TUTTI_ASSIGN(data::DatasetRef head, part("take"));
    TUTTI_ASSIGN(data::DatasetRef tail, part("skip"));
    TUTTI_TRY(emit_dataset(object->core(), std::move(head), first));
    const Status status = emit_dataset(object->core(), std::move(tail), rest);
    if (!status.ok()) {
      tutti_dataset_unref(*first);
      *first = nullptr;
    }
    return status;
  });
}

int32_t tutti_dataset_count_classes(const tutti_dataset *dataset, const char *component, int64_t class_count,
                                    tutti_cancel *cancel, int64_t *counts, int64_t *needed, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<DatasetObject> object, find(dataset, dataset_handles, "dataset"));
    TUTTI_TRY(require(component, "component"));
    if (counts == nullptr) {
      if (class_count != 0) {
        return base::invalid_argument("argument 'counts' is NULL, so 'class_count' must be 0, got ", class_count);
      }
      TUTTI_TRY(require(needed, "needed"));
    } else if (class_count < 1) {
      return base::invalid_argument("argument 'class_count' must be 1 or more, got ", class_count);
    }
    TUTTI_ASSIGN(Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_TRY(base::check(token.get()));
    TUTTI_ASSIGN(const int64_t classes,
                 data::count_classes(*object->dataset(), component, {counts, static_cast<size_t>(class_count)},
                                     iterator_context(*object->core(), 0, std::move(token))));
    if (needed != nullptr) *needed = classes;
    return Status();
  });
}

int32_t tutti_dataset_count_texts(const tutti_dataset *dataset, const char *component, int64_t most_texts,
                                  int64_t least_count, int64_t memory_bytes, tutti_cancel *cancel, tutti_tensor **texts,
                                  tutti_tensor **counts, tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (counts != nullptr) *counts = nullptr;
    TUTTI_TRY(clear(texts, "texts"));
    TUTTI_ASSIGN(const Ref<DatasetObject> object, find(dataset, dataset_handles, "dataset"));
    TUTTI_TRY(require(component, "component"));
    TUTTI_TRY(check_not_negative(most_texts, "most_texts"));
    TUTTI_TRY(check_not_negative(least_count, "least_count"));
    TUTTI_TRY(check_not_negative(memory_bytes, "memory_bytes"));
    TUTTI_ASSIGN(Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_TRY(base::check(token.get()));
    data::TextCountLimits limits{most_texts, least_count};
    if (memory_bytes > 0) limits.memory_bytes = memory_bytes;
    TUTTI_ASSIGN(data::TextCounts found, data::count_texts(*object->dataset(), component, limits,
                                                           iterator_context(*object->core(), 0, std::move(token))));
    TUTTI_TRY(emit_tensor(std::move(found.texts), false, texts));
    if (counts == nullptr) return Status();
    const Status status = emit_tensor(std::move(found.counts), false, counts);
    if (!status.ok()) {
      tutti_tensor_unref(*texts);
      *texts = nullptr;
    }
    return status;
  });
}

int32_t tutti_dataset_to_arrow(const tutti_dataset *dataset, int64_t seed, int64_t batch_rows, tutti_cancel *cancel,
                               struct ArrowArrayStream *out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(require(out, "out"));
    out->release = nullptr;
    TUTTI_ASSIGN(const Ref<DatasetObject> object, find(dataset, dataset_handles, "dataset"));
    TUTTI_ASSIGN(Ref<base::CancelToken> token, wait_token(cancel));
    return data::write_arrow(object->dataset(), iterator_context(*object->core(), seed, std::move(token)), batch_rows,
                             out);
  });
}

int32_t tutti_iterator_create(const tutti_dataset *dataset, int64_t seed, tutti_iterator **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<DatasetObject> object, find(dataset, dataset_handles, "dataset"));
    Ref<base::CancelToken> token = base::CancelToken::create();
    TUTTI_ASSIGN(std::unique_ptr<data::Iterator> iterator,
                 object->dataset()->make_iterator(iterator_context(*object->core(), seed, token)));
    return emit(base::make_ref<IteratorObject>(std::move(iterator), std::move(token), object->strategy()),
                iterator_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(iterator, iterator_handles)

int32_t tutti_iterator_next(tutti_iterator *iterator, tutti_cancel *cancel, uint8_t *has_element, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(require(has_element, "has_element"));
    TUTTI_ASSIGN(const Ref<IteratorObject> object, find(iterator, iterator_handles, "iterator"));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    TUTTI_TRY(base::check(token.get()));
    TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "iterator"));
    CallScope scope(object->token(), token.get());
    TUTTI_ASSIGN(const bool more, scope.run([&] { return object->iterator().next(object->element); }));
    object->has_element = more;
    object->pieces.clear();
    if (more) TUTTI_TRY(lend_components(*object));
    *has_element = more ? 1 : 0;
    return Status();
  });
}

tutti_tensor *tutti_iterator_get_component(tutti_iterator *iterator, int64_t index) {
  const Ref<IteratorObject> object = peek(iterator, iterator_handles);
  if (!object || !object->has_element || index < 0 || index >= static_cast<int64_t>(object->components.size()))
    return nullptr;
  return static_cast<tutti_tensor *>(object->components[static_cast<size_t>(index)]->get());
}

int32_t tutti_iterator_save(tutti_iterator *iterator, const char **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<IteratorObject> object, find(iterator, iterator_handles, "iterator"));
    TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "iterator"));
    base::Json state = object->iterator().save();
    if (state.is_object()) state.set(kStateVersionKey, kStateVersion);
    object->state = state.dump();
    *out = object->state.c_str();
    return Status();
  });
}

int32_t tutti_iterator_get_report(tutti_iterator *iterator, const char **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<IteratorObject> object, find(iterator, iterator_handles, "iterator"));
    TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "iterator"));
    object->report = object->iterator().report().dump();
    *out = object->report.c_str();
    return Status();
  });
}

int32_t tutti_iterator_restore(tutti_iterator *iterator, const char *state, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<IteratorObject> object, find(iterator, iterator_handles, "iterator"));
    TUTTI_TRY(require(state, "state"));
    TUTTI_ASSIGN(const base::Json json, base::Json::parse(state));
    TUTTI_TRY(check_state_version(json));
    TUTTI_ASSIGN(const SoleUse use, sole_use(object->busy(), "iterator"));
    return object->iterator().restore(json);
  });
}
