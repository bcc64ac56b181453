// SPDX-License-Identifier: Apache-2.0
//
// The engines that carry messages between processes, by name: plug-ins, loaded when a training run needs one.
//
//   TUTTI_ASSIGN(EngineRef engine, open_engine("gloo"));
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_RUNTIME_ENGINE_LIST_H_
#define TUTTI_RUNTIME_ENGINE_LIST_H_

#include <string_view>

#include "base/status.h"
#include "collective/engine.h"

namespace tutti::impl::runtime {

/// Loads the plug-in tutti-<name>.so of this build (find_plugin), or one of this build at an absolute path. The
/// error is one sentence that says why it cannot be used, with the detail "plugin"; an unknown name is NOT_FOUND with
/// the nearest match.
base::Result<collective::EngineRef> open_engine(std::string_view name);

}  // namespace tutti::impl::runtime

#endif  // TUTTI_RUNTIME_ENGINE_LIST_H_
