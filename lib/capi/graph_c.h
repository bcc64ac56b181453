// SPDX-License-Identifier: Apache-2.0
//
// Graphs behind handles: a builder that a callback writes into. The builder belongs to the caller of the callback, who
// closes the object afterwards; a handle kept beyond that answers as invalid.
//
// Threads: the builder belongs to the thread that the callback runs on, which is known for certain: with_graph() calls
// it. On another one there is no builder, and the callback's caller hears of it.
#ifndef TUTTI_CAPI_GRAPH_C_H_
#define TUTTI_CAPI_GRAPH_C_H_

#include <tutti/graph.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "capi/handles.h"
#include "data/element/element.h"
#include "graph/builder.h"

namespace tutti::impl::capi {

class GraphObject : public base::Object {
 public:
  /// `mode` TUTTI_MODE_*, or 0 for a dataset's map. The components are the builder's features and labels. `params`: of
  /// the estimator.
  GraphObject(graph::GraphBuilder &builder, int32_t mode, const std::string &params);

  /// Is this the thread that the builder belongs to? If not, that is noted.
  bool is_here() const;
  /// Null after close(), and on other threads.
  graph::GraphBuilder *builder() const { return is_here() ? builder_ : nullptr; }
  /// Ok until it was used on another thread.
  Status check_threads() const;
  int32_t mode() const { return mode_; }
  const std::string &params() const { return params_; }
  void close() { builder_ = nullptr; }

  /// The value of a component of a role, or kNoValue.
  graph::ValueId find_component(std::string_view name, data::Role role) const;
  /// The same, with an error in the builder when there is none.
  graph::ValueId component(const char *name, data::Role role);

  /// Numbers of values carry the graph's serial, so that another graph's value is recognised.
  tutti_value to_value(graph::ValueId id) const;
  /// kNoValue for "no value"; an error in the builder for a value that is not this graph's.
  graph::ValueId from_value(tutti_value value);

  /// The op being written, between begin and end.
  struct Pending {
    std::string op;
    int32_t revision = 0;
    std::vector<graph::ValueId> inputs;
    graph::Attributes attributes;
    bool invalid = false;    ///< an input was invalid: the op is not added
    int32_t regions = 0;     ///< begun so far
    bool in_region = false;  ///< what is written belongs to the last one
  };
  /// Those that have been begun, each within a region of the one before.
  std::vector<Pending> pending;
  /// The op that inputs and attributes are for; null where none was begun, or one is in a region.
  Pending *open_op() { return pending.empty() || pending.back().in_region ? nullptr : &pending.back(); }

 private:
  graph::GraphBuilder *builder_;
  const int32_t mode_;
  const std::string params_;
  const int64_t serial_;
  const std::thread::id thread_ = std::this_thread::get_id();
  mutable std::atomic<bool> was_elsewhere_{false};
};

extern constinit HandleType<GraphObject> graph_handles;

/// Calls `function(graph handle)` with a handle on `builder` that is closed afterwards. The function returns the
/// callback's status; the builder's own first error is its cause or comes instead.
template <typename Function>
Status with_graph(graph::GraphBuilder &builder, int32_t mode, const std::string &params, Function &&function) {
  const Ref<GraphObject> object = base::make_ref<GraphObject>(builder, mode, params);
  LentHandle handle;
  TUTTI_TRY(handle.set(object, graph_handles));
  const Status status = function(static_cast<tutti_graph *>(handle.get()));
  if (!object->pending.empty() && builder.ok() && status.ok())
    builder.fail(base::failed_precondition("op '", object->pending.back().op, "' was begun but not ended"));
  if (const Status threads = object->check_threads(); !threads.ok() && builder.ok()) builder.fail(threads);
  object->close();
  return builder.ok() ? status : builder.status();
}

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_GRAPH_C_H_
