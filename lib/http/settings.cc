// SPDX-License-Identifier: Apache-2.0
#include "http/settings.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tutti::impl::http {
namespace {

using nlohmann::json;

struct NumberSetting {
  const char *key;
  int64_t Settings::*field;
  int64_t minimum, maximum;
};
constexpr int64_t kDayMs = 86400000;
constexpr NumberSetting kNumbers[] = {
    {"block_bytes", &Settings::block_bytes, 1, int64_t{64} << 20},
    {"blocks_ahead", &Settings::blocks_ahead, 0, 64},
    {"connections", &Settings::connections, 1, 256},
    {"connect_timeout_ms", &Settings::connect_timeout_ms, 1, kDayMs},
    {"timeout_ms", &Settings::timeout_ms, 1, kDayMs},
    {"retries", &Settings::retries, 0, 100},
    {"retry_delay_ms", &Settings::retry_delay_ms, 0, kDayMs},
    {"redirects", &Settings::redirects, 0, 50},
    {"largest_download_bytes", &Settings::largest_download_bytes, 0, int64_t{1} << 40},
};

[[noreturn]] void refuse(const std::string &key, const std::string &expected) {
  throw std::invalid_argument("setting '" + key + "': expected " + expected);
}

bool set_number(Settings &settings, const std::string &key, const json &value) {
  for (const NumberSetting &known : kNumbers) {
    if (key != known.key) continue;
    const bool fits = value.is_number_integer() && value >= known.minimum && value <= known.maximum;
    if (!fits) {
      refuse(key, "a whole number from " + std::to_string(known.minimum) + " to " + std::to_string(known.maximum));
    }
    settings.*known.field = value.get<int64_t>();
    return true;
  }
  return false;
}

// A line break in a header would begin another one.
std::string line(const std::string &key, const json &value) {
  if (!value.is_string()) refuse(key, "text");
  const auto text = value.get<std::string>();
  if (text.find_first_of(std::string("\r\n\0", 3)) != std::string::npos) refuse(key, "text of one line");
  return text;
}

}  // namespace

Settings Settings::parse(const char *text) {
  Settings settings;
  if (text == nullptr) return settings;
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) throw std::invalid_argument("expected the settings as a JSON object");
  for (const auto &[key, value] : object.items()) {
    if (set_number(settings, key, value)) continue;
    if (key == "ca_file") {
      settings.ca_file = line(key, value);
    } else if (key == "proxy") {
      settings.proxy = line(key, value);
    } else if (key == "headers") {
      if (!value.is_array()) refuse(key, "a list of texts");
      for (const json &header : value)
        settings.headers.push_back(line(key, header));
    } else {
      throw std::invalid_argument("unknown setting '" + key + "'");
    }
  }
  return settings;
}

}  // namespace tutti::impl::http
