// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/progress_line.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace tutti::impl::estimator::hooks {
namespace {

constexpr int kLongestBar = 30, kShortestBar = 8;

std::string whole_number(double value) {
  char text[32];
  snprintf(text, sizeof text, value < 100 ? "%.3g" : "%.0f", value);
  return text;
}

bool has_goal(const ProgressFacts &facts) { return facts.goal_step >= 0 && facts.goal_step >= facts.step; }

double share_done(const ProgressFacts &facts) {
  return facts.goal_step > 0 ? static_cast<double>(facts.step) / static_cast<double>(facts.goal_step) : 1;
}

/// Rounded down: 100 % is the end.
int percent(const ProgressFacts &facts) { return static_cast<int>(100 * share_done(facts)); }

std::string bar_text(double share, int width) {
  const int done = std::clamp(static_cast<int>(share * width), 0, width);
  std::string text(static_cast<size_t>(done), '=');
  if (done < width) text += '>';
  text.resize(static_cast<size_t>(width), ' ');
  return text;
}

std::vector<std::string> value_texts(const ProgressFacts &facts) {
  std::vector<std::string> parts;
  for (const NamedNumber &value : facts.values)
    if (value.is_number()) parts.push_back(base::concat(value.name, " ", short_number(value.value)));
  return parts;
}

std::vector<std::string> time_texts(const ProgressFacts &facts) {
  std::vector<std::string> parts;
  if (facts.examples_per_second >= 0) parts.push_back(whole_number(facts.examples_per_second) + " examples/s");
  if (facts.seconds_taken >= 0)
    parts.push_back("in " + duration_text(facts.seconds_taken));
  else if (facts.seconds_left >= 0)
    parts.push_back(duration_text(facts.seconds_left) + " left");
  return parts;
}

}  // namespace

std::string short_number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  char text[48];
  if (whole < 3600)
    snprintf(text, sizeof text, "%d:%02d", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  else
    snprintf(text, sizeof text, "%lld:%02d:%02d", static_cast<long long>(whole / 3600),
             static_cast<int>(whole / 60 % 60), static_cast<int>(whole % 60));
  return text;
}

std::string values_text(std::span<const NamedNumber> values, std::string_view separator) {
  std::string text;
  for (const NamedNumber &value : values) {
    if (value.is_number())
      text += base::concat(text.empty() ? "" : separator, value.name, " ", short_number(value.value));
  }
  return text;
}

std::string progress_bar(const ProgressFacts &facts, int columns) {
  const size_t room = static_cast<size_t>(std::max(columns - 1, 20));
  std::string line = base::concat("step ", facts.step);
  std::string share;
  if (has_goal(facts)) {
    line += base::concat("/", facts.goal_step);
    char text[8];
    snprintf(text, sizeof text, "%3d%%", percent(facts));
    share = text;
  } else if (facts.epoch >= 0) {
    line += base::concat("  pass ", facts.epoch + 1);
  }
  std::vector<std::string> values = value_texts(facts), times = time_texts(facts);
  const size_t fixed = line.size() + (share.empty() ? 0 : share.size() + 1);
  const auto length = [&] {
    size_t sum = fixed;
    for (const auto *parts : {&values, &times})
      for (const std::string &part : *parts)
        sum += part.size() + 2;
    return sum;
  };
  // Of the values the loss stays longest, of the times what is left.
  while (length() > room && values.size() + times.size() > 0) {
    if (values.size() > 1 || times.empty())
      values.pop_back();
    else
      times.erase(times.begin());
  }
  const auto left = static_cast<int>(room) - static_cast<int>(length()) - 3;
  if (!share.empty() && left >= kShortestBar)
    line += base::concat(" [", bar_text(share_done(facts), std::min(left, kLongestBar)), "]");
  if (!share.empty()) line += " " + share;
  for (const auto *parts : {&values, &times})
    for (const std::string &part : *parts)
      line += "  " + part;
  if (line.size() > room) line.resize(room);
  return line;
}

std::string progress_sentence(const ProgressFacts &facts) {
  std::string line = base::concat("step ", facts.step);
  if (has_goal(facts))
    line += base::concat(" of ", facts.goal_step, " (", percent(facts), "%)");
  else if (facts.epoch >= 0)
    line += base::concat(", pass ", facts.epoch + 1);
  std::string_view before = ": ";
  for (const auto &parts : {value_texts(facts), time_texts(facts)}) {
    for (const std::string &part : parts) {
      line += base::concat(before, part);
      before = ", ";
    }
  }
  return line;
}

}  // namespace tutti::impl::estimator::hooks
