// SPDX-License-Identifier: Apache-2.0
//
// Keeps the newest numbers of a training for Prometheus (monitor/prometheus.h).
#ifndef TUTTI_ESTIMATOR_HOOKS_PROMETHEUS_HOOK_H_
#define TUTTI_ESTIMATOR_HOOKS_PROMETHEUS_HOOK_H_

#include <cstdint>

#include "base/object.h"
#include "estimator/hook.h"
#include "monitor/prometheus.h"

namespace tutti::impl::estimator::hooks {

/// Of every so many steps, each evaluation and pass, and the end.
Hook prometheus_hook(base::Ref<monitor::PrometheusPage> page, int64_t every_steps);

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_PROMETHEUS_HOOK_H_
