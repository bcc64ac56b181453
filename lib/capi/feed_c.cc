// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "capi/cancel_c.h"
#include "capi/dataset_c.h"
#include "capi/guard.h"
#include "capi/tensor_c.h"
#include "data/dataset/batch_stage.h"

namespace tutti::impl::capi {

constinit HandleType<FeedObject> feed_handles{"feed"};

Status FeedObject::declare(data::ComponentSpec component) {
  const std::lock_guard lock(mutex_);
  if (feed_) return base::failed_precondition("component '", component.name, "' was declared after the feed was used");
  spec_.components.push_back(std::move(component));
  return data::check(spec_);
}

Status FeedObject::set_batch_size(int64_t most_rows) {
  if (most_rows < 1) return base::invalid_argument("argument 'most_rows' must be 1 or more, got ", most_rows);
  const std::lock_guard lock(mutex_);
  if (feed_) return base::failed_precondition("the batch size was set after the feed was used");
  most_rows_ = most_rows;
  return Status();
}

std::string FeedObject::component_name(int64_t index) const {
  const std::lock_guard lock(mutex_);
  return index < static_cast<int64_t>(spec_.components.size()) ? spec_.components[static_cast<size_t>(index)].name : "";
}

Result<Ref<data::Feed>> FeedObject::feed() {
  const std::lock_guard lock(mutex_);
  if (feed_) return feed_;
  if (spec_.components.empty()) return base::failed_precondition("the feed has no components; declare them first");
  data::ElementSpec elements = spec_;
  if (most_rows_ > 0) {
    TUTTI_ASSIGN(elements, data::batch_spec(spec_, most_rows_));
  }
  TUTTI_ASSIGN(feed_, data::Feed::create(std::move(elements), capacity_));
  return feed_;
}

Ref<data::Feed> FeedObject::started() const {
  const std::lock_guard lock(mutex_);
  return feed_;
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

namespace {

/// Of one element; a negative extent is one that differs between elements.
Result<graph::Dims> to_extents(const int64_t *dims, int64_t rank) {
  std::vector<int64_t> known;
  if (dims != nullptr && rank > 0 && rank <= tensor::Shape::kMaxRank) known.assign(dims, dims + rank);
  for (int64_t &extent : known)
    extent = std::max<int64_t>(extent, 0);
  TUTTI_TRY(to_shape(known.empty() ? dims : known.data(), rank));
  graph::Dims extents;
  for (int64_t i = 0; i < rank; ++i)
    extents.push_back(dims[i] < 0 ? data::unknown_dim() : graph::Dim(dims[i]));
  return extents;
}

}  // namespace

int32_t tutti_feed_create(tutti_context *context, int64_t capacity, tutti_feed **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    if (capacity < 1) return base::invalid_argument("argument 'capacity' must be 1 or more, got ", capacity);
    return emit(base::make_ref<FeedObject>(owner->core(), capacity), feed_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(feed, feed_handles)

int32_t tutti_feed_declare(tutti_feed *feed, const char *name, int32_t role, int32_t dtype, const int64_t *dims,
                           int64_t rank, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<FeedObject> object, find(feed, feed_handles, "feed"));
    TUTTI_TRY(require(name, "name"));
    TUTTI_ASSIGN(const data::Role kind, to_role(role, name));
    TUTTI_ASSIGN(const tensor::DType type, to_dtype(dtype));
    TUTTI_ASSIGN(graph::Dims extents, to_extents(dims, rank));
    return object->declare({name, kind, type, std::move(extents)});
  });
}

int32_t tutti_feed_set_batch_size(tutti_feed *feed, int64_t most_rows, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<FeedObject> object, find(feed, feed_handles, "feed"));
    return object->set_batch_size(most_rows);
  });
}

int32_t tutti_feed_push(tutti_feed *feed, tutti_tensor *const *components, int64_t count, tutti_cancel *cancel,
                        tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<FeedObject> object, find(feed, feed_handles, "feed"));
    if (count < 0) return base::invalid_argument("argument 'count' must be 0 or more, got ", count);
    if (count > 0) TUTTI_TRY(require(components, "components"));
    TUTTI_ASSIGN(const Ref<base::CancelToken> token, wait_token(cancel));
    data::Element element;
    for (int64_t i = 0; i < count; ++i) {
      Result<tensor::Tensor> tensor = find_tensor(components[i], "components");
      if (!tensor.ok()) return tensor.status().wrap(base::concat("component '", object->component_name(i), "'"));
      element.components.push_back(tensor.take());
    }
    TUTTI_ASSIGN(const Ref<data::Feed> target, object->feed());
    return target->push(std::move(element), token.get(), base::Deadline::never());
  });
}

int32_t tutti_feed_finish(tutti_feed *feed, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<FeedObject> object, find(feed, feed_handles, "feed"));
    TUTTI_ASSIGN(const Ref<data::Feed> target, object->feed());
    return target->end();
  });
}

int32_t tutti_feed_fail(tutti_feed *feed, int32_t code, const char *message, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<FeedObject> object, find(feed, feed_handles, "feed"));
    if (code == TUTTI_OK) return base::invalid_argument("argument 'code' is TUTTI_OK");
    TUTTI_ASSIGN(const Ref<data::Feed> target, object->feed());
    return target->fail(
        Status(base::code_from_number(code), message != nullptr ? message : "").with_domain("user", code));
  });
}

int64_t tutti_feed_get_position(const tutti_feed *feed) {
  const Ref<FeedObject> object = peek_shared(feed, feed_handles);
  const Ref<data::Feed> started = object ? object->started() : Ref<data::Feed>();
  return started ? started->resume_position() : 0;
}
