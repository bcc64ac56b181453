// SPDX-License-Identifier: Apache-2.0
//
// Settings of a run as TensorBoard's page of hyper-parameters reads them, a row for each run: messages of its plug-in
// hparams (plugin_data.proto, api.proto).
//
// Pure functions.
#ifndef TUTTI_MONITOR_HYPERPARAMETERS_H_
#define TUTTI_MONITOR_HYPERPARAMETERS_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/json.h"
#include "monitor/summary.h"

namespace tutti::impl::monitor {

/// Numbers, booleans and texts by their names; others, as lists, are shown as text. `metrics`: tags of the curves whose
/// newest value stands beside them; `start_ns`: when the run began, since 1970.
void add_hyperparameters(Summary &summary, const base::JsonObject &settings, std::span<const std::string> metrics,
                         int64_t start_ns);
/// The same settings as a table in Markdown, for a text.
std::string settings_table(const base::JsonObject &settings);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_HYPERPARAMETERS_H_
