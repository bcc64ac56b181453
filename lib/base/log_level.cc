// SPDX-License-Identifier: Apache-2.0
#include "base/log_level.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <string>

#include "base/text.h"

namespace tutti::impl::base {

namespace {

constexpr const char *kVariable = "TUTTI_LOG";
constexpr std::string_view kLevels[] = {"debug", "info", "warning", "error", "none"};

std::string_view level_from_environment() {
  const char *const text = secure_getenv(kVariable);
  return text == nullptr || *text == '\0' ? "none" : text;
}

/// "2026-11-29 20:14:05 WARNING text", in one write.
void write_line(Severity severity, std::string_view message) {
  const time_t now = time(nullptr);
  struct tm local {};
  char when[32] = "";
  if (localtime_r(&now, &local) != nullptr) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S ", &local);
  const std::string line = concat(when, name(severity), " ", message, "\n");
  fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

Status log_to_standard_error(Logger &logger, std::string_view level) {
  const bool is_asked = level == "environment";
  if (is_asked) level = level_from_environment();
  for (size_t i = 0; i < std::size(kLevels); ++i) {
    if (level != kLevels[i]) continue;
    const auto severity = static_cast<Severity>(i + static_cast<size_t>(Severity::debug));
    if (severity == Severity::none) return Status();
    logger.set_threshold(severity);
    logger.set_sink(write_line);
    return Status();
  }
  return invalid_argument("the environment variable ", kVariable, " is ", quoted(level),
                          ", expected debug, info, warning, error or none");
}

}  // namespace tutti::impl::base
