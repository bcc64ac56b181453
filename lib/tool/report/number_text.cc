// SPDX-License-Identifier: Apache-2.0
#include "tool/report/number_text.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "tool/console/table.h"

namespace tutti::tool {

namespace {

template <typename... Values>
std::string formatted(const char *format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// A damaged record may have any number; longer times are no times.
constexpr double kMostSeconds = 1e12;

bool is_whole(double number) { return std::floor(number) == number && std::fabs(number) < 1e15; }

}  // namespace

std::string percent_text(double share) { return formatted(share < 0.0995 ? "%.1f %%" : "%.0f %%", 100 * share); }

std::string seconds_text(double seconds) {
  if (!(std::fabs(seconds) < kMostSeconds)) return value_text(seconds) + " s";
  if (seconds < 1) return milliseconds_text(1e3 * seconds);
  if (seconds < 59.95) return formatted("%.1f s", seconds);
  const int64_t whole = std::llround(seconds);
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return with_commas(hours) + " h " + std::to_string(minutes) + " min";
  return std::to_string(minutes) + " min " + std::to_string(whole % 60) + " s";
}

std::string milliseconds_text(double milliseconds) {
  if (milliseconds == 0) return "0 ms";
  if (milliseconds > 0 && milliseconds < 0.0995) return formatted("%.1f µs", 1000 * milliseconds);
  if (milliseconds >= 1000) return formatted("%.2f s", milliseconds / 1000);
  return formatted(milliseconds >= 99.95 ? "%.0f ms" : milliseconds >= 9.995 ? "%.1f ms" : "%.2f ms", milliseconds);
}

std::string whole_text(double number) {
  if (!is_whole(number)) return value_text(number);
  return with_commas(static_cast<int64_t>(number));
}

std::string counted_text(double number, const std::string &thing) {
  return whole_text(number) + " " + thing + (number == 1 ? "" : "s");
}

std::string value_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "∞" : "−∞";
  if (is_whole(number)) return with_commas(static_cast<int64_t>(number));
  if (std::fabs(number) >= 1000 && std::fabs(number) < 1e15) return with_commas(std::llround(number));
  return formatted("%.4g", number);
}

std::string date_text(double seconds) {
  if (!(std::fabs(seconds) < kMostSeconds)) return "";
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (gmtime_r(&time, &parts) == nullptr) return "";
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts));
}

}  // namespace tutti::tool
