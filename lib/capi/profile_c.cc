// SPDX-License-Identifier: Apache-2.0
//
// Profiles of contexts.
#include "base/file.h"
#include "capi/context_c.h"
#include "capi/guard.h"
#include "estimator/profile/profile_report.h"

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_context_start_profile(tutti_context *context, const char *trace_path, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<ContextObject> object, find_context(context));
    Profile &profile = *object->core()->profile;
    const std::lock_guard lock(profile.mutex);
    if (profile.is_running) return base::failed_precondition("a profile of this context is running already");
    const std::string path = trace_path != nullptr ? trace_path : "";
    // Where nothing can be written shall be known before and not after hours of training.
    if (!path.empty()) TUTTI_TRY(base::write_file_atomically(path, "{\"traceEvents\":[]}\n"));
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
    if (!profile.trace_path.empty())
      TUTTI_TRY(base::write_file_atomically(profile.trace_path, profile.tracer->to_chrome_json()));
    *out = profile.report.c_str();
    return Status();
  });
}
