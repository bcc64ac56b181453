// SPDX-License-Identifier: Apache-2.0
#include "capi/graph_c.h"

#include <atomic>

#include "base/text.h"
#include "capi/guard.h"

namespace tutti::impl::capi {

constinit HandleType<GraphObject> graph_handles{"graph"};

using graph::GraphBuilder;
using graph::kNoValue;
using graph::ValueId;

namespace {

std::atomic<int64_t> next_serial{1};

constexpr int64_t kIndexBits = 32;

}  // namespace

GraphObject::GraphObject(GraphBuilder &builder, int32_t mode, const std::string &params)
    : builder_(&builder), mode_(mode), params_(params), serial_(next_serial.fetch_add(1, std::memory_order_relaxed)) {}

bool GraphObject::is_here() const {
  if (std::this_thread::get_id() == thread_) return true;
  was_elsewhere_.store(true, std::memory_order_relaxed);
  return false;
}

Status GraphObject::check_threads() const {
  if (!was_elsewhere_.load(std::memory_order_relaxed)) return Status();
  return base::failed_precondition(
      "the graph was used on another thread; use it only on the thread that its function was called on");
}

tutti_value GraphObject::to_value(ValueId id) const {
  // Serial in the upper half, index + 1 in the lower: never 0, never negative.
  return {id == kNoValue ? -1 : ((serial_ & 0x7fffffff) << kIndexBits) | (int64_t{id} + 1)};
}

ValueId GraphObject::from_value(tutti_value value) {
  if (value.id <= 0) return kNoValue;
  const int64_t index = (value.id & 0xffffffff) - 1;
  if ((value.id >> kIndexBits) == (serial_ & 0x7fffffff) && index >= 0 &&
      index < int64_t(builder_->graph().values().size()))
    return static_cast<ValueId>(index);
  return builder_->fail(base::invalid_argument("a value of another graph was used",
                                               open_op() ? base::concat(" as an input of '", open_op()->op, "'") : ""));
}

ValueId GraphObject::find_component(std::string_view name, data::Role role) const {
  const graph::Model &model = builder_->model();
  // Components of a map have their role outside of the graph.
  const auto &list = role == data::Role::feature || mode_ == 0 ? model.features : model.labels;
  for (const graph::InputSpec &input : list) {
    if (input.name == name) return input.value;
  }
  return kNoValue;
}

ValueId GraphObject::component(const char *name, data::Role role) {
  if (name == nullptr) return builder_->fail(base::invalid_argument("argument 'name' is NULL"));
  const ValueId value = find_component(name, role);
  if (value != kNoValue) return value;
  if (role == data::Role::label && mode_ == TUTTI_MODE_PREDICT)
    return builder_->fail(
        base::failed_precondition("label ", base::quoted(name), " was requested in mode PREDICT, which has no labels"));
  std::vector<std::string> names;
  for (const graph::InputSpec &input :
       role == data::Role::label && mode_ != 0 ? builder_->model().labels : builder_->model().features)
    names.push_back(input.name);
  return builder_->fail(base::not_found("the dataset has no ", role, " ", base::quoted(name), "; it has ",
                                        names.empty() ? "none" : base::join(names, ", ")));
}

}  // namespace tutti::impl::capi
