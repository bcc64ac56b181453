// SPDX-License-Identifier: Apache-2.0
//
// Lists of hooks behind handles, and the event that a hook is shown.
#ifndef TUTTI_CAPI_HOOK_C_H_
#define TUTTI_CAPI_HOOK_C_H_

#include <tutti/hook.h>
#include <tutti/summary.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/handles.h"
#include "capi/host_call.h"
#include "estimator/hook.h"
#include "monitor/prometheus.h"
#include "monitor/summary_writer.h"

namespace tutti::impl::capi {

/// A callback with its user pointer; destroys the user pointer when the last copy is gone.
class UserPointer {
 public:
  UserPointer(void *user, void (*destroy)(void *user)) : user_(user), destroy_(destroy) {}
  UserPointer(const UserPointer &) = delete;
  UserPointer &operator=(const UserPointer &) = delete;
  ~UserPointer() {
    if (destroy_ != nullptr) (void)catch_thrown("the destroy function", [&] { destroy_(user_); });
  }
  void *get() const { return user_; }

 private:
  void *const user_;
  void (*const destroy_)(void *user);
};

/// Makes a hook of the library, one for each run.
using ReadyHook = std::function<estimator::Hook(const Ref<base::Logger> &logger)>;

/// A function of the host with its cadence, or a hook of the library.
struct HookEntry {
  tutti_hook_fn function = nullptr;
  std::shared_ptr<UserPointer> user;
  int64_t every_steps = 0;
  ReadyHook make_ready;
};

class HooksObject : public base::Object {
 public:
  void add(HookEntry entry);
  void add_ready(ReadyHook make);
  std::vector<HookEntry> entries() const;

 private:
  mutable std::mutex mutex_;
  std::vector<HookEntry> entries_;  // guarded by mutex_
};

/// Who writes summaries (summary/summary_writer_c.cc).
class SummaryWriterObject : public base::Object {
 public:
  explicit SummaryWriterObject(Ref<monitor::SummaryWriter> made) : writer(std::move(made)) {}
  const Ref<monitor::SummaryWriter> writer;
};

/// The newest numbers of a training.
class PrometheusObject : public base::Object {
 public:
  const Ref<monitor::PrometheusPage> page = base::make_ref<monitor::PrometheusPage>();
};

/// What one event tells. Lives during the hook's call.
class HookEventObject : public base::Object {
 public:
  int32_t kind = 0;
  int64_t step = 0;
  int64_t epoch = 0;
  double loss = 0;
  double examples_per_second = 0;
  double remaining_seconds = 0;
  std::map<std::string, double, std::less<>> metrics;
  std::string checkpoint;
  Ref<monitor::SummaryWriter> summaries;  // null where the run writes none

  /// Its handle, made when it is first asked for; null where there is none.
  void *writer();

 private:
  std::once_flag writer_once_;
  LentHandle writer_;
};

extern constinit HandleType<HooksObject> hooks_handles;
extern constinit HandleType<HookEventObject> hook_event_handles;
extern constinit HandleType<SummaryWriterObject> summary_writer_handles;
extern constinit HandleType<PrometheusObject> prometheus_handles;

/// The entries of an optional argument.
Result<std::vector<HookEntry>> find_hooks(const tutti_hooks *hooks);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_HOOK_C_H_
