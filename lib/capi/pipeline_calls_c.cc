// SPDX-License-Identifier: Apache-2.0
//
// Transforms of a pipeline that the host writes as a graph or as a function, here or in a worker process.
#include <tutti/map_process.h>

#include <memory>
#include <vector>

#include "base/function_token.h"
#include "capi/cancel_c.h"
#include "capi/graph_c.h"
#include "capi/guard.h"
#include "capi/hook_c.h"
#include "capi/host_call.h"
#include "capi/pipeline_c.h"
#include "capi/tensor_c.h"
#include "data/pipeline/serve_map.h"

namespace tutti::impl::capi {
namespace {

/// The graph that a callback builds over the pipeline's present components.
Result<graph::SealedGraph> build_graph(const data::ElementSpec &spec, bool keep_others, tutti_map_graph_fn build,
                                       void *user) {
  graph::GraphBuilder builder;
  for (const data::ComponentSpec &component : spec.components)
    builder.feature(component.name, component.dtype, component.dims);
  TUTTI_TRY(with_graph(builder, 0, {}, [&](tutti_graph *graph) {
    return call_host("the graph function of the map", [&](tutti_error **error) { return build(graph, user, error); });
  }));
  if (keep_others) {
    for (const graph::InputSpec &input : builder.model().features) {
      if (!builder.model().outputs.contains(input.name)) builder.set_result(input.name, input.value);
    }
  }
  for (const auto &[name, value] : builder.model().outputs)
    builder.set_result(name, value);
  TUTTI_ASSIGN(graph::Graph graph, builder.finish_graph());
  return graph::SealedGraph(std::make_shared<const graph::Graph>(std::move(graph)));
}

/// Do the components that the graph of this transform does not give anew stay?
bool keeps_others(std::string_view transform) { return transform == "map" || transform == "scan"; }

/// The names of a role's components: they keep it through a map.
std::vector<std::string> names_of(const data::ElementSpec &spec, data::Role role) {
  std::vector<std::string> names;
  for (const data::ComponentSpec &component : spec.components) {
    if (component.role == role) names.push_back(component.name);
  }
  return names;
}

/// Builds the graph of a transform. A map keeps the components that its graph does not give anew; a filter has one
/// output and changes none.
bool set_graph(PipelineObject &object, bool is_map, tutti_map_graph_fn build, void *user,
               data::TransformArguments &arguments) {
  if (build == nullptr) {
    object.fail(base::invalid_argument("argument 'build' is NULL"));
    return false;
  }
  data::Pipeline *const target = object.pipeline();
  if (target == nullptr) return false;
  auto spec = take(object, target->map_inputs());
  if (!spec) return false;
  // The graph of a scan reads the state beside the components.
  for (const data::ScanState &state : arguments.state) {
    const tensor::Shape &shape = state.initial.shape();
    graph::Dims dims{graph::Dim::symbol(graph::kBatchSymbol)};
    dims.insert(dims.end(), shape.begin(), shape.end());
    spec->components.push_back({state.name, data::Role::feature, state.initial.dtype(), std::move(dims)});
  }
  std::optional<graph::SealedGraph> graph = take(object, build_graph(*spec, is_map, build, user));
  if (!graph) return false;
  arguments.graph = std::move(*graph);
  if (is_map) {
    arguments.labels = names_of(*spec, data::Role::label);
    arguments.weights = names_of(*spec, data::Role::weight);
  }
  return true;
}

void apply_graph(tutti_pipeline *pipeline, const char *transform, bool is_map, tutti_map_graph_fn build, void *user,
                 std::optional<int64_t> parallelism) {
  change(pipeline, [&](PipelineObject &object) {
    data::TransformArguments arguments;
    if (!set_graph(object, is_map, build, user, arguments)) return;
    graph::Attributes attributes;
    if (parallelism) attributes.emplace("parallelism", *parallelism);
    object.pipeline()->apply(transform, std::move(attributes), std::move(arguments));
  });
}

/// Handles on the tensors of an element, lent to a function of the host.
class LentElement {
 public:
  Status lend(const data::Element &element) {
    const size_t count = element.components.size();
    handles_ = std::vector<LentHandle>(count);
    tensors_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      TUTTI_TRY(handles_[i].set(base::make_ref<TensorObject>(element.components[i], false), tensor_handles));
      tensors_[i] = static_cast<tutti_tensor *>(handles_[i].get());
    }
    return Status();
  }
  tutti_tensor *const *tensors() const { return tensors_.data(); }
  int64_t count() const { return static_cast<int64_t>(tensors_.size()); }

 private:
  std::vector<LentHandle> handles_;
  std::vector<tutti_tensor *> tensors_;
};

/// What owns the user pointer of a function from now on, also when registering it fails; null without memory, and then
/// it is destroyed already.
std::shared_ptr<UserPointer> own(void *user, tutti_destroy_fn destroy) noexcept {
  try {
    return std::make_shared<UserPointer>(user, destroy);
  } catch (...) {
    if (destroy != nullptr) (void)catch_thrown("the destroy function", [&] { destroy(user); });
    return nullptr;
  }
}

/// The transform being written; null after an error.
PipelineObject::Pending *pending_of(PipelineObject &object, std::string_view what) {
  if (object.pending) return &*object.pending;
  object.fail(base::failed_precondition(what, " was set, but no transform was begun"));
  return nullptr;
}

/// Takes the tensors that a host stored, as far as it did; the first that is missing is an error.
Status take_tensors(std::vector<tutti_tensor *> &outputs, std::string_view what, data::Element &element) {
  Status status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Result<tensor::Tensor> tensor = find_tensor(outputs[i], base::concat("outputs[", i, "]"));
    if (tensor.ok()) {
      element.components.push_back(tensor.take());
      unref_handle(outputs[i], tensor_handles);
    } else if (status.ok()) {
      status = tensor.status().wrap(base::concat(what, " left an output without a tensor"));
    }
  }
  return status;
}

/// Calls a host's map function with handles on the inputs, and takes the tensors it gives.
Status call_map(tutti_map_fn map, void *user, const data::Element &input, data::Element &output) {
  LentElement lent;
  TUTTI_TRY(lent.lend(input));
  const size_t count = input.components.size();
  std::vector<tutti_tensor *> outputs(count, nullptr);
  const Status status = call_host("the map function", [&](tutti_error **error) {
    return map(user, lent.tensors(), outputs.data(), lent.count(), error);
  });
  output.lineage = input.lineage;
  output.components.clear();
  Status taken = take_tensors(outputs, "the map function", output);
  return status.ok() ? taken : status;
}

/// Calls a host's map function that gives the components of a spec.
Status call_map_to(tutti_map_to_fn map, void *user, const data::ElementSpec &spec, const data::Element &input,
                   data::Element &output) {
  LentElement lent;
  TUTTI_TRY(lent.lend(input));
  std::vector<tutti_tensor *> outputs(spec.components.size(), nullptr);
  const Status status = call_host("the map function", [&](tutti_error **error) {
    return map(user, lent.tensors(), lent.count(), outputs.data(), static_cast<int64_t>(outputs.size()), error);
  });
  output.lineage = input.lineage;
  output.components.clear();
  const Status taken = take_tensors(outputs, "the map function", output);
  TUTTI_TRY(status);
  return taken.ok() ? taken : taken.wrap(base::concat("expected ", spec.to_string()));
}

/// Calls a host's step of a scan, for as many tensors as the new state and the output have places.
Status call_scan(tutti_scan_fn scan, void *user, const data::Element &state, const data::Element &input,
                 data::Element &new_state, data::Element &output) {
  LentElement lent_state, lent;
  TUTTI_TRY(lent_state.lend(state));
  TUTTI_TRY(lent.lend(input));
  std::vector<tutti_tensor *> next(new_state.components.size(), nullptr), outputs(output.components.size(), nullptr);
  new_state.components.clear();
  output.components.clear();
  const Status status = call_host("the scan function", [&](tutti_error **error) {
    return scan(user, lent_state.tensors(), next.data(), lent_state.count(), lent.tensors(), lent.count(),
                outputs.data(), static_cast<int64_t>(outputs.size()), error);
  });
  const Status state_taken = take_tensors(next, "the scan function", new_state);
  const Status taken = take_tensors(outputs, "the scan function", output);
  TUTTI_TRY(status);
  TUTTI_TRY(state_taken);
  return taken;
}

/// Asks a host's predicate.
Status call_predicate(tutti_predicate_fn predicate, void *user, const data::Element &input, bool &answer) {
  LentElement lent;
  TUTTI_TRY(lent.lend(input));
  uint8_t value = 0;
  const Status status = call_host("the predicate function", [&](tutti_error **error) {
    return predicate(user, lent.tensors(), lent.count(), &value, error);
  });
  answer = value != 0;
  return status;
}

/// Asks a host for an element.
Result<bool> call_generator(tutti_generator_fn next, void *user, int64_t pass, int64_t index, size_t count,
                            data::Element &element) {
  std::vector<tutti_tensor *> outputs(count, nullptr);
  uint8_t has_element = 0;
  const Status status = call_host("the generator function", [&](tutti_error **error) {
    return next(user, pass, index, outputs.data(), static_cast<int64_t>(count), &has_element, error);
  });
  const Status taken = take_tensors(outputs, "the generator function", element);
  TUTTI_TRY(status);
  if (has_element == 0) return false;
  TUTTI_TRY(taken);
  return true;
}

/// Asks a host for the dataset of an element.
Result<data::DatasetRef> call_expand(const ContextCore &core, tutti_expand_fn expand, void *user,
                                     const data::Element &input) {
  LentElement lent;
  TUTTI_TRY(lent.lend(input));
  tutti_dataset *dataset = nullptr;
  TUTTI_TRY(call_host("the function that gives a dataset", [&](tutti_error **error) {
    return expand(user, lent.tensors(), lent.count(), &dataset, error);
  }));
  TUTTI_ASSIGN(const Ref<DatasetObject> object, find(dataset, dataset_handles, "dataset"));
  unref_handle(dataset, dataset_handles);
  TUTTI_TRY(check_same_context(core, *object->core(), "dataset"));
  return object->dataset();
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

void tutti_pipeline_map_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user, int64_t parallelism) {
  apply_graph(pipeline, "map", true, build, user, parallelism);
}

void tutti_pipeline_filter_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user) {
  apply_graph(pipeline, "filter", false, build, user, std::nullopt);
}

void tutti_pipeline_map(tutti_pipeline *pipeline, tutti_map_fn map, void *user, tutti_destroy_fn destroy,
                        int64_t parallelism) {
  const auto owner = own(user, destroy);
  change(pipeline, [&](PipelineObject &object) {
    if (owner == nullptr) return object.fail(base::out_of_memory());
    if (map == nullptr) return object.fail(base::invalid_argument("argument 'map' is NULL"));
    data::Pipeline *const target = object.pipeline();
    if (target == nullptr) return;
    data::TransformArguments arguments;
    arguments.map = [map, owner](const data::Element &input, data::Element &output) {
      return call_map(map, owner->get(), input, output);
    };
    target->apply("map_callback", {{"parallelism", parallelism}}, std::move(arguments));
  });
}

void tutti_pipeline_set_map(tutti_pipeline *pipeline, tutti_map_to_fn map, void *user, tutti_destroy_fn destroy) {
  const auto owner = own(user, destroy);
  change(pipeline, [&](PipelineObject &object) {
    if (owner == nullptr) return object.fail(base::out_of_memory());
    if (map == nullptr) return object.fail(base::invalid_argument("argument 'map' is NULL"));
    if (PipelineObject::Pending *const pending = pending_of(object, "a function")) {
      pending->map = [map, owner](data::ElementSpec spec) {
        return [map, owner, spec = std::move(spec)](const data::Element &input, data::Element &output) {
          return call_map_to(map, owner->get(), spec, input, output);
        };
      };
    }
  });
}

void tutti_pipeline_set_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user) {
  change(pipeline, [&](PipelineObject &object) {
    if (pending_of(object, "a graph") == nullptr) return;
    data::TransformArguments arguments = std::move(object.pending->arguments);
    const bool is_built = set_graph(object, keeps_others(object.pending->name), build, user, arguments);
    // The graph function may have used the pipeline.
    if (is_built && pending_of(object, "a graph") != nullptr) object.pending->arguments = std::move(arguments);
  });
}

void tutti_pipeline_set_predicate(tutti_pipeline *pipeline, tutti_predicate_fn predicate, void *user,
                                  tutti_destroy_fn destroy) {
  const auto owner = own(user, destroy);
  change(pipeline, [&](PipelineObject &object) {
    if (owner == nullptr) return object.fail(base::out_of_memory());
    if (predicate == nullptr) return object.fail(base::invalid_argument("argument 'predicate' is NULL"));
    if (PipelineObject::Pending *const pending = pending_of(object, "a predicate")) {
      pending->arguments.filter = [predicate, owner](const data::Element &input, bool &answer) {
        return call_predicate(predicate, owner->get(), input, answer);
      };
    }
  });
}

void tutti_pipeline_set_state(tutti_pipeline *pipeline, const char *name, const tutti_tensor *initial) {
  change(pipeline, [&](PipelineObject &object) {
    if (!check_text(object, name, "name")) return;
    auto value = take(object, find_tensor_of("state", name, initial, "initial"));
    PipelineObject::Pending *const pending = value ? pending_of(object, "a state") : nullptr;
    if (pending != nullptr) pending->arguments.state.push_back({name, std::move(*value)});
  });
}

void tutti_pipeline_set_scan(tutti_pipeline *pipeline, tutti_scan_fn scan, void *user, tutti_destroy_fn destroy) {
  const auto owner = own(user, destroy);
  change(pipeline, [&](PipelineObject &object) {
    if (owner == nullptr) return object.fail(base::out_of_memory());
    if (scan == nullptr) return object.fail(base::invalid_argument("argument 'scan' is NULL"));
    if (PipelineObject::Pending *const pending = pending_of(object, "a function")) {
      pending->arguments.scan = [scan, owner](const data::Element &state, const data::Element &input,
                                              data::Element &new_state, data::Element &output) {
        return call_scan(scan, owner->get(), state, input, new_state, output);
      };
    }
  });
}

void tutti_pipeline_set_expand(tutti_pipeline *pipeline, tutti_expand_fn expand, void *user, tutti_destroy_fn destroy) {
  const auto owner = own(user, destroy);
  change(pipeline, [&](PipelineObject &object) {
    if (owner == nullptr) return object.fail(base::out_of_memory());
    if (expand == nullptr) return object.fail(base::invalid_argument("argument 'expand' is NULL"));
    if (PipelineObject::Pending *const pending = pending_of(object, "a function")) {
      pending->arguments.expand = [expand, owner, core = object.core()](const data::Element &input) {
        return call_expand(*core, expand, owner->get(), input);
      };
    }
  });
}

void tutti_pipeline_add_generator(tutti_pipeline *pipeline, tutti_generator_fn next, void *user,
                                  tutti_destroy_fn destroy) {
  const auto owner = own(user, destroy);
  change(pipeline, [&](PipelineObject &object) {
    if (owner == nullptr) return object.fail(base::out_of_memory());
    if (next == nullptr) return object.fail(base::invalid_argument("argument 'next' is NULL"));
    const size_t count = object.declared().components.size();
    object.start_from([next, owner, count](int64_t epoch, int64_t index, data::Element &element) {
      return call_generator(next, owner->get(), epoch, index, count, element);
    });
  });
}

int32_t tutti_serve_map(tutti_map_to_fn map, void *user, tutti_cancel *cancel, tutti_error **err) {
  return guard(err, [&]() -> Status {
    if (map == nullptr) return base::invalid_argument("argument 'map' is NULL");
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    const auto make = [map, user](const data::ElementSpec &spec) -> data::MapFunction {
      return [map, user, spec](const data::Element &input, data::Element &output) {
        return call_map_to(map, user, spec, input, output);
      };
    };
    const base::FunctionToken scope(token);
    return data::serve_map(make, token.get());
  });
}
