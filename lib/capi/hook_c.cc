// SPDX-License-Identifier: Apache-2.0
#include "capi/hook_c.h"

#include <limits>
#include <utility>

#include "capi/guard.h"
#include "capi/tensor_c.h"
#include "estimator/hooks/metrics_file_hook.h"
#include "estimator/hooks/progress_hook.h"
#include "estimator/hooks/prometheus_hook.h"

namespace tutti::impl::capi {

constinit HandleType<HooksObject> hooks_handles{"hooks"};
constinit HandleType<HookEventObject> hook_event_handles{"hook_event"};
constinit HandleType<SummaryWriterObject> summary_writer_handles{"summary_writer"};
constinit HandleType<PrometheusObject> prometheus_handles{"prometheus"};

void *HookEventObject::writer() {
  if (!summaries) return nullptr;
  std::call_once(writer_once_,
                 [&] { (void)writer_.set(base::make_ref<SummaryWriterObject>(summaries), summary_writer_handles); });
  return writer_.get();
}

void HooksObject::add(HookEntry entry) {
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
}

void HooksObject::add_ready(ReadyHook make) {
  HookEntry entry;
  entry.make_ready = std::move(make);
  add(std::move(entry));
}

std::vector<HookEntry> HooksObject::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

Result<std::vector<HookEntry>> find_hooks(const tutti_hooks *hooks) {
  if (hooks == nullptr) return std::vector<HookEntry>();
  TUTTI_ASSIGN(const Ref<HooksObject> object, find(hooks, hooks_handles, "hooks"));
  return object->entries();
}

namespace {

template <typename T>
T from_event(const tutti_hook_event *event, T HookEventObject::*member, T otherwise) {
  const Ref<HookEventObject> object = peek(event, hook_event_handles);
  return object ? (*object).*member : otherwise;
}

}  // namespace
}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_hooks_create(tutti_hooks **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    return emit(base::make_ref<HooksObject>(), hooks_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(hooks, hooks_handles)

int32_t tutti_hooks_add(tutti_hooks *hooks, tutti_hook_fn hook, void *user, tutti_destroy_fn destroy,
                        int64_t every_steps, tutti_error **err) {
  return guard(err, [&]() -> Status {
    auto owner = std::make_shared<UserPointer>(user, destroy);
    TUTTI_ASSIGN(const Ref<HooksObject> object, find(hooks, hooks_handles, "hooks"));
    TUTTI_TRY(require(reinterpret_cast<const void *>(hook), "hook"));
    if (every_steps < 0) return base::invalid_argument("argument 'every_steps' must be 0 or more, got ", every_steps);
    object->add({hook, std::move(owner), every_steps, nullptr});
    return Status();
  });
}

int32_t tutti_hooks_add_progress(tutti_hooks *hooks, int32_t style, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<HooksObject> object, find(hooks, hooks_handles, "hooks"));
    if (style < TUTTI_PROGRESS_AUTO || style > TUTTI_PROGRESS_LINES) {
      return base::invalid_argument("argument 'style' must be TUTTI_PROGRESS_AUTO (0), _BAR (1) or _LINES (2), got ",
                                    style);
    }
    object->add_ready([style](const Ref<base::Logger> &) {
      estimator::hooks::TextOutput output = estimator::hooks::standard_error();
      if (style != TUTTI_PROGRESS_AUTO) output.is_terminal = style == TUTTI_PROGRESS_BAR;
      return estimator::hooks::progress_hook(std::move(output));
    });
    return Status();
  });
}

int32_t tutti_hooks_add_metrics_file(tutti_hooks *hooks, const char *path, int32_t format, int64_t every_steps,
                                     tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<HooksObject> object, find(hooks, hooks_handles, "hooks"));
    TUTTI_TRY(require(path, "path"));
    if (format != TUTTI_METRICS_CSV && format != TUTTI_METRICS_JSON_LINES) {
      return base::invalid_argument("argument 'format' must be TUTTI_METRICS_CSV (1) or _JSON_LINES (2), got ", format);
    }
    if (every_steps < 0) return base::invalid_argument("argument 'every_steps' must be 0 or more, got ", every_steps);
    object->add_ready([path = std::string(path), format, every_steps](const Ref<base::Logger> &logger) {
      return estimator::hooks::metrics_file_hook(path, static_cast<estimator::hooks::MetricsFormat>(format),
                                                 every_steps, logger);
    });
    return Status();
  });
}

int32_t tutti_prometheus_create(tutti_prometheus **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    return emit(base::make_ref<PrometheusObject>(), prometheus_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(prometheus, prometheus_handles)

int32_t tutti_hooks_add_prometheus(tutti_hooks *hooks, tutti_prometheus *prometheus, int64_t every_steps,
                                   tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<HooksObject> object, find(hooks, hooks_handles, "hooks"));
    TUTTI_ASSIGN(const Ref<PrometheusObject> kept, find(prometheus, prometheus_handles, "prometheus"));
    if (every_steps < 0) return base::invalid_argument("argument 'every_steps' must be 0 or more, got ", every_steps);
    object->add_ready([page = kept->page, every_steps](const Ref<base::Logger> &) {
      return estimator::hooks::prometheus_hook(page, every_steps);
    });
    return Status();
  });
}

int32_t tutti_prometheus_read(tutti_prometheus *prometheus, tutti_tensor **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<PrometheusObject> object, find(prometheus, prometheus_handles, "prometheus"));
    const std::string text = object->page->text();
    const auto bytes = static_cast<int64_t>(text.size());
    TUTTI_ASSIGN(tensor::Tensor tensor,
                 tensor::Tensor::copy_of(tensor::DType::u8, tensor::Shape({bytes}), text.data(), bytes));
    return emit_tensor(std::move(tensor), true, out);
  });
}

int32_t tutti_hook_event_get_kind(const tutti_hook_event *event) {
  return from_event(event, &HookEventObject::kind, 0);
}

int64_t tutti_hook_event_get_step(const tutti_hook_event *event) {
  return from_event(event, &HookEventObject::step, int64_t{0});
}

int64_t tutti_hook_event_get_epoch(const tutti_hook_event *event) {
  return from_event(event, &HookEventObject::epoch, int64_t{0});
}

double tutti_hook_event_get_loss(const tutti_hook_event *event) {
  return from_event(event, &HookEventObject::loss, kNotANumber);
}

double tutti_hook_event_get_examples_per_second(const tutti_hook_event *event) {
  return from_event(event, &HookEventObject::examples_per_second, kNotANumber);
}

double tutti_hook_event_get_remaining_seconds(const tutti_hook_event *event) {
  return from_event(event, &HookEventObject::remaining_seconds, kNotANumber);
}

double tutti_hook_event_get_metric(const tutti_hook_event *event, const char *name) {
  const Ref<HookEventObject> object = peek(event, hook_event_handles);
  if (!object || name == nullptr) return kNotANumber;
  const auto found = object->metrics.find(std::string_view(name));
  return found != object->metrics.end() ? found->second : kNotANumber;
}

const char *tutti_hook_event_get_checkpoint(const tutti_hook_event *event) {
  const Ref<HookEventObject> object = peek(event, hook_event_handles);
  return object && !object->checkpoint.empty() ? object->checkpoint.c_str() : nullptr;
}

tutti_summary_writer *tutti_hook_event_get_summary_writer(const tutti_hook_event *event) {
  const Ref<HookEventObject> object = peek(event, hook_event_handles);
  if (!object) return nullptr;
  return guard_value<tutti_summary_writer *>(nullptr,
                                             [&] { return static_cast<tutti_summary_writer *>(object->writer()); });
}
