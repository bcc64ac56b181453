// SPDX-License-Identifier: Apache-2.0
//
// Profiles of contexts.
#include "base/file.h"
#include "base/trace.h"
#include "capi/context_c.h"
#include "capi/guard.h"
#include "estimator/profile/profile_report.h"
#include "monitor/event_file.h"
#include "monitor/profile_planes.h"

using namespace tutti::impl;
using namespace tutti::impl::capi;

namespace {

bool holds_planes(std::string_view path) { return path.ends_with(".xplane.pb"); }

/// Where a trace is written that is to be at a path: a folder has a place for profiles.
Result<std::string> trace_file(const std::string &path) {
  if (path.empty() || !(path.ends_with('/') || base::is_directory(path))) return path;
  const std::string file = monitor::profile_planes_path(path);
  TUTTI_TRY(base::make_directories(file.substr(0, file.rfind('/'))));
  return file;
}

Status write_trace(const base::Tracer &tracer, const std::string &path) {
  if (!holds_planes(path)) return base::write_file_atomically(path, tracer.to_chrome_json());
  const int64_t epoch_ns = base::now_ns() - monitor::wall_time_ns();
  return base::write_file_atomically(path, monitor::profile_planes(tracer.rows(), epoch_ns));
}

}  // namespace

int32_t tutti_context_start_profile(tutti_context *context, const char *trace_path, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<ContextObject> object, find_context(context));
    Profile &profile = *object->core()->profile;
    const std::lock_guard lock(profile.mutex);
    if (profile.is_running) return base::failed_precondition("a profile of this context is running already");
    TUTTI_ASSIGN(const std::string path, trace_file(trace_path != nullptr ? trace_path : ""));
    // Where nothing can be written shall be known before and not after hours of training.
    const char *const nothing = holds_planes(path) ? "" : "{\"traceEvents\":[]}\n";
    if (!path.empty()) TUTTI_TRY(base::write_file_atomically(path, nothing));
    profile.trace_path = path;
    profile.is_running = true;
    profile.tracer->start();
    return Status();
  });
}

int32_t tutti_context_stop_profile(tutti_context *context, const char **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> object, find_context(context));
    Profile &profile = *object->core()->profile;
    const std::lock_guard lock(profile.mutex);
    if (!profile.is_running) return base::failed_precondition("no profile of this context is running");
    profile.tracer->stop();
    profile.is_running = false;
    profile.report = estimator::profile::profile_report(profile.tracer->rows()).dump();
    if (!profile.trace_path.empty()) TUTTI_TRY(write_trace(*profile.tracer, profile.trace_path));
    *out = profile.report.c_str();
    return Status();
  });
}
