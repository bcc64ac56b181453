// SPDX-License-Identifier: Apache-2.0
#include "estimator/profile/profile_report.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <vector>

#include "base/text.h"

namespace tutti::impl::estimator::profile {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using Row = base::Tracer::Row;
using Span = base::Tracer::Span;

namespace {

constexpr int64_t kNone = INT64_MAX;
constexpr size_t kLayersInText = 30;

bool is_work(const Span &span) {
  const std::string_view category = span.category;
  return category == "kernel" || category == "copy";
}
bool is(const Span &span, std::string_view category) { return category == span.category; }
int64_t end_of(const Span &span) { return span.start_ns + span.duration_ns; }
double ms(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

/// What is counted.
struct Interval {
  int64_t begin_ns = kNone, end_ns = 0;

  void include(const Span &span) {
    begin_ns = std::min(begin_ns, span.start_ns);
    end_ns = std::max(end_ns, end_of(span));
  }
  bool has(const Span &span) const { return span.start_ns >= begin_ns && end_of(span) <= end_ns; }
  int64_t length_ns() const { return std::max<int64_t>(0, end_ns - begin_ns); }
};

/// The steps, or without any all that devices did; from where every row remembers.
Interval interval_of(std::span<const Row> rows) {
  Interval steps, work;
  int64_t remembered_ns = 0;
  for (const Row &row : rows) {
    if (row.forgotten_count > 0 && !row.spans.empty())
      remembered_ns = std::max(remembered_ns, row.spans.front().start_ns);
    for (const Span &span : row.spans) {
      if (is(span, "step")) steps.include(span);
      if (is_work(span)) work.include(span);
    }
  }
  Interval interval = steps.begin_ns != kNone ? steps : work;
  if (interval.begin_ns == kNone) return {0, 0};
  interval.begin_ns = std::max(interval.begin_ns, remembered_ns);
  return interval;
}

/// How much of the interval is covered by work, where that overlaps counted once. Spans are in order.
int64_t busy_ns(const Row &row, const Interval &interval) {
  int64_t busy = 0, covered_until = interval.begin_ns;
  for (const Span &span : row.spans) {
    if (!is_work(span)) continue;
    const int64_t begin = std::max(span.start_ns, covered_until), end = std::min(end_of(span), interval.end_ns);
    if (end <= begin) continue;
    busy += end - begin;
    covered_until = end;
  }
  return busy;
}

/// Of one row.
struct ReplicaSums {
  int64_t steps = 0, step_ns = 0, input_ns = 0, communication_ns = 0;
};

ReplicaSums sums_of(const Row &row, const Interval &interval) {
  ReplicaSums sums;
  std::vector<Span> steps;
  for (const Span &span : row.spans) {
    if (!is(span, "step") || !interval.has(span)) continue;
    ++sums.steps;
    sums.step_ns += span.duration_ns;
    steps.push_back(span);
  }
  for (const Span &span : row.spans) {
    if (!is(span, "wait")) continue;
    // Runs end with waits that belong to no step.
    const auto next = std::upper_bound(steps.begin(), steps.end(), span.start_ns,
                                       [](int64_t start_ns, const Span &step) { return start_ns < step.start_ns; });
    if (next == steps.begin() || end_of(span) > end_of(*(next - 1))) continue;
    (std::string_view(span.name) == "input" ? sums.input_ns : sums.communication_ns) += span.duration_ns;
  }
  return sums;
}

struct Layer {
  std::string name;
  std::array<int64_t, 3> ns{};  // by phase
  int64_t sum() const { return ns[0] + ns[1] + ns[2]; }
};

std::vector<Layer> layers_of(std::span<const Row> rows, const Interval &interval) {
  std::map<std::string, Layer> by_name;
  for (const Row &row : rows) {
    for (const Span &span : row.spans) {
      if (!is(span, "kernel") || !interval.has(span)) continue;
      const KernelPlace place = place_of(span.name);
      by_name[place.layer].ns[static_cast<size_t>(place.phase)] += span.duration_ns;
    }
  }
  std::vector<Layer> layers;
  for (auto &[name, layer] : by_name) {
    layer.name = name;
    layers.push_back(std::move(layer));
  }
  std::stable_sort(layers.begin(), layers.end(), [](const Layer &a, const Layer &b) { return a.sum() > b.sum(); });
  return layers;
}

template <typename... Values>
std::string line(const char *format, Values... values) {
  std::array<char, 200> text;
  const int length = std::snprintf(text.data(), text.size(), format, values...);
  return {text.data(), std::min(static_cast<size_t>(std::max(length, 0)), text.size() - 1)};
}

JsonArray report_devices(std::span<const Row> rows, const Interval &interval, std::string &text) {
  JsonArray devices;
  for (const Row &row : rows) {
    const auto kernels = std::count_if(row.spans.begin(), row.spans.end(),
                                       [&](const Span &span) { return is(span, "kernel") && interval.has(span); });
    const int64_t busy = busy_ns(row, interval);
    if (busy == 0) continue;
    const double utilisation = static_cast<double>(busy) / static_cast<double>(interval.length_ns());
    devices.push_back(JsonObject{{"device", row.name},
                                 {"utilisation", utilisation},
                                 {"idle", 1 - utilisation},
                                 {"kernels", static_cast<int64_t>(kernels)}});
    text +=
        line("device %s: busy %.1f %%, idle %.1f %%\n", row.name.c_str(), 100 * utilisation, 100 * (1 - utilisation));
  }
  return devices;
}

/// That computes for the replica of this row; null when it did nothing.
const Row *device_of(const Row &replica, std::span<const Row> rows) {
  const size_t on = replica.name.rfind(" on ");
  const std::string_view device =
      on == std::string::npos ? replica.name : std::string_view(replica.name).substr(on + 4);
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row &row) {
    return row.name == device && std::any_of(row.spans.begin(), row.spans.end(), is_work);
  });
  return found != rows.end() ? &*found : nullptr;
}

JsonArray report_replicas(std::span<const Row> rows, const Interval &interval, int64_t *steps, std::string &text) {
  JsonArray replicas;
  for (const Row &row : rows) {
    const ReplicaSums sums = sums_of(row, interval);
    if (sums.steps == 0) continue;
    *steps += sums.steps;
    const double count = static_cast<double>(sums.steps), step = ms(sums.step_ns) / count,
                 input = ms(sums.input_ns) / count, communication = ms(sums.communication_ns) / count,
                 rest = std::max(0.0, step - input - communication);
    const Row *const device = device_of(row, rows);
    const double compute = device != nullptr ? std::min(rest, ms(busy_ns(*device, interval)) / count) : 0;
    replicas.push_back(JsonObject{{"replica", row.name},
                                  {"steps", sums.steps},
                                  {"step_ms", step},
                                  {"compute_ms", compute},
                                  {"input_ms", input},
                                  {"communication_ms", communication},
                                  {"host_ms", rest - compute}});
    text += line("%s: a step takes %.3f ms: compute %.3f, input %.3f, communication %.3f, host %.3f\n",
                 row.name.c_str(), step, compute, input, communication, rest - compute);
  }
  return replicas;
}

JsonArray report_layers(const std::vector<Layer> &layers, int64_t steps, std::string &text) {
  int64_t all = 0;
  for (const Layer &layer : layers)
    all += layer.sum();
  JsonArray list;
  const double count = static_cast<double>(std::max<int64_t>(steps, 1));
  text += line("%-40s %10s %10s %10s %7s\n", "layer (ms of a step)", "forward", "backward", "update", "share");
  for (const Layer &layer : layers) {
    const double share = all > 0 ? static_cast<double>(layer.sum()) / static_cast<double>(all) : 0;
    const double forward = ms(layer.ns[0]) / count, backward = ms(layer.ns[1]) / count,
                 update = ms(layer.ns[2]) / count;
    if (list.size() < kLayersInText)
      text += line("%-40s %10.3f %10.3f %10.3f %5.1f %%\n", layer.name.c_str(), forward, backward, update, 100 * share);
    list.push_back(JsonObject{{"layer", layer.name},
                              {"forward_ms", forward},
                              {"backward_ms", backward},
                              {"update_ms", update},
                              {"share", share}});
  }
  return list;
}

}  // namespace

KernelPlace place_of(std::string_view span_name) {
  KernelPlace place;
  std::string_view node = span_name.substr(0, span_name.find(' '));
  const auto cut_last = [&] {
    const size_t slash = node.rfind('/');
    if (slash != std::string_view::npos) node = node.substr(0, slash);
  };
  constexpr std::string_view kGradient = "gradient/", kUpdate = "update/";
  // Behind these stand a node or a variable, and the op that works for it.
  for (const std::string_view prefix : {kGradient, kUpdate}) {
    if (!node.starts_with(prefix)) continue;
    place.phase = prefix == kGradient ? Phase::backward : Phase::update;
    node.remove_prefix(prefix.size());
    cut_last();
    break;
  }
  cut_last();
  place.layer = node;
  return place;
}

Json profile_report(std::span<const Row> rows) {
  const Interval interval = interval_of(rows);
  std::string text;
  int64_t steps = 0, forgotten = 0;
  for (const Row &row : rows)
    forgotten += row.forgotten_count;
  JsonArray devices = report_devices(rows, interval, text);
  JsonArray replicas = report_replicas(rows, interval, &steps, text);
  JsonArray layers = report_layers(layers_of(rows, interval), steps, text);
  return JsonObject{{"seconds", static_cast<double>(interval.length_ns()) * 1e-9},
                    {"steps", replicas.empty() ? 0 : steps / static_cast<int64_t>(replicas.size())},
                    {"devices", std::move(devices)},
                    {"replicas", std::move(replicas)},
                    {"layers", std::move(layers)},
                    {"forgotten", forgotten},
                    {"text", std::move(text)}};
}

}  // namespace tutti::impl::estimator::profile
