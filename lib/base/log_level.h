// SPDX-License-Identifier: Apache-2.0
//
// The option log_level of contexts: lines of the log on standard error.
#ifndef TUTTI_BASE_LOG_LEVEL_H_
#define TUTTI_BASE_LOG_LEVEL_H_

#include <string_view>

#include "base/log.h"
#include "base/status.h"

namespace tutti::impl::base {

/// Gives a new logger a sink of standard error, with what `level` ("environment", "none", "error", ...) lets through.
/// INVALID_ARGUMENT when TUTTI_LOG is asked and names no severity.
Status log_to_standard_error(Logger &logger, std::string_view level);

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_LOG_LEVEL_H_
