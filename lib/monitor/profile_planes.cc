// SPDX-License-Identifier: Apache-2.0
#include "monitor/profile_planes.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "monitor/event_file.h"
#include "monitor/event_messages.h"
#include "monitor/profile_messages.h"

namespace tutti::impl::monitor {

using protozero::pbf_builder;
using Row = base::Tracer::Row;
using Span = base::Tracer::Span;

namespace {

enum Stat : int64_t { step_num = 1, is_root = 2, correlation_id = 3, tf_op = 4 };
constexpr std::array<std::string_view, 4> kStatNames = {"step_num", "_r", "correlation_id", "tf_op"};

bool is(const Span &span, std::string_view category) { return category == span.category; }
bool is_step(const Span &span) { return is(span, "step"); }

/// "dense/matmul_1" of "dense/matmul_1 simd:gemm".
std::string_view node_of(std::string_view span_name) { return span_name.substr(0, span_name.find(' ')); }

/// "matmul" of "dense/matmul_1".
std::string_view op_of(std::string_view node) {
  std::string_view op = node.substr(node.rfind('/') + 1);
  const size_t end = op.find_last_not_of("0123456789");
  if (end != std::string_view::npos && end > 0 && end + 1 < op.size() && op[end] == '_') op = op.substr(0, end);
  return op;
}

std::string op_name(const Span &span) {
  const std::string_view node = node_of(span.name);
  return base::concat(node, ":", op_of(node));
}

/// What the pages are to know a span by, and what they are to show: nothing where that is the same.
struct EventName {
  std::string name, shown;
};
EventName event_name(const Span &span) {
  const std::string_view name = span.name;
  if (is(span, "kernel")) return {op_name(span), span.name};
  // As waits for input they count the op of tf.data that hands out an element.
  if (is(span, "wait") && name == "input") return {"IteratorGetNext:IteratorGetNext", "wait for input"};
  if (is(span, "wait")) return {base::concat("wait for ", name), ""};
  return {is_step(span) && name == "step" ? "train" : span.name, ""};
}

/// Something that a device did, as its step on the host knows it.
struct Launch {
  int64_t time_ns;
  int64_t correlation;
};

/// One plane, whose events are added line by line.
class Plane {
 public:
  Plane(std::string &bytes, int64_t id, std::string_view name, int64_t begin_ns, int64_t epoch_ns)
      : plane_(bytes), begin_ns_(begin_ns), epoch_ns_(epoch_ns) {
    plane_.add_int64(message::ProfilePlane::id, id);
    message::add_text(plane_, message::ProfilePlane::name, name);
    for (size_t i = 0; i < kStatNames.size(); ++i)
      add_metadata(message::ProfilePlane::stat_metadata, static_cast<int64_t>(i) + 1, kStatNames[i], {});
  }

  void begin_line(int64_t id, std::string_view name) {
    line_bytes_.clear();
    pbf_builder<message::ProfileLine> line(line_bytes_);
    line.add_int64(message::ProfileLine::id, id);
    message::add_text(line, message::ProfileLine::name, name);
    line.add_int64(message::ProfileLine::timestamp_ns, begin_ns_ - epoch_ns_);
  }
  /// `add_stats` is called with the builder of the event's message.
  template <typename AddStats>
  void add_event(const EventName &name, int64_t start_ns, int64_t duration_ns, AddStats add_stats) {
    pbf_builder<message::ProfileLine> line(line_bytes_);
    pbf_builder<message::ProfileEvent> event(line, message::ProfileLine::event);
    event.add_int64(message::ProfileEvent::metadata_id, metadata_of(name));
    event.add_int64(message::ProfileEvent::offset_ps, 1000 * std::max<int64_t>(0, start_ns - begin_ns_));
    event.add_int64(message::ProfileEvent::duration_ps, 1000 * std::max<int64_t>(0, duration_ns));
    add_stats(event);
  }
  void end_line() { plane_.add_message(message::ProfilePlane::line, line_bytes_); }

  static void add_number(pbf_builder<message::ProfileEvent> &event, Stat name, int64_t value) {
    pbf_builder<message::ProfileStat> stat(event, message::ProfileEvent::stat);
    stat.add_int64(message::ProfileStat::metadata_id, name);
    stat.add_int64(message::ProfileStat::int64_value, value);
  }
  static void add_text(pbf_builder<message::ProfileEvent> &event, Stat name, std::string_view value) {
    pbf_builder<message::ProfileStat> stat(event, message::ProfileEvent::stat);
    stat.add_int64(message::ProfileStat::metadata_id, name);
    message::add_text(stat, message::ProfileStat::str_value, value);
  }

 private:
  int64_t metadata_of(const EventName &name) {
    const auto [found, is_new] = events_.try_emplace({name.name, name.shown}, events_.size() + 1);
    if (is_new) add_metadata(message::ProfilePlane::event_metadata, found->second, name.name, name.shown);
    return found->second;
  }
  void add_metadata(message::ProfilePlane map, int64_t id, std::string_view name, std::string_view shown) {
    pbf_builder<message::MapEntry> entry(plane_, map);
    entry.add_int64(message::MapEntry::key, id);
    pbf_builder<message::ProfileMetadata> metadata(entry, message::MapEntry::value);
    metadata.add_int64(message::ProfileMetadata::id, id);
    message::add_text(metadata, message::ProfileMetadata::name, name);
    if (!shown.empty() && shown != name) message::add_text(metadata, message::ProfileMetadata::display_name, shown);
  }

  pbf_builder<message::ProfilePlane> plane_;
  const int64_t begin_ns_, epoch_ns_;
  std::string line_bytes_;
  std::map<std::pair<std::string, std::string>, int64_t> events_;
};

/// Events must be in the order of time, and what others are in before these: readers find by that what is within what.
void add_host_line(Plane &plane, int64_t id, const Row &row, const std::vector<Launch> &launches) {
  plane.begin_line(id, row.name);
  auto launch = launches.begin();
  const auto add_launches_before = [&](int64_t time_ns) {
    for (; launch != launches.end() && launch->time_ns < time_ns; ++launch)
      plane.add_event({"launch", ""}, launch->time_ns, 1, [&](pbf_builder<message::ProfileEvent> &event) {
        Plane::add_number(event, correlation_id, launch->correlation);
      });
  };
  int64_t step = 0;
  for (const Span &span : row.spans) {
    add_launches_before(span.start_ns);
    plane.add_event(event_name(span), span.start_ns, span.duration_ns, [&](pbf_builder<message::ProfileEvent> &event) {
      if (!is_step(span)) return;
      Plane::add_number(event, step_num, ++step);
      Plane::add_number(event, is_root, 1);
    });
  }
  add_launches_before(INT64_MAX);
  plane.end_line();
}

/// The steps of a replica, asked for in the order of time.
class StepFinder {
 public:
  explicit StepFinder(const Row &row) {
    for (const Span &span : row.spans) {
      if (is_step(span)) steps_.push_back(&span);
    }
  }
  /// That in which the time lies, or else the last one before it; null before the first.
  const Span *at(int64_t time_ns) {
    while (next_ < steps_.size() && steps_[next_]->start_ns <= time_ns)
      ++next_;
    return next_ > 0 ? steps_[next_ - 1] : nullptr;
  }

 private:
  std::vector<const Span *> steps_;
  size_t next_ = 0;
};

/// Of a device; `host`: the row of a replica on it, which gets a launch for each event in a step.
void add_device_line(Plane &plane, const Row &device, const Row &host, std::vector<Launch> &launches,
                     int64_t &last_correlation) {
  StepFinder steps(host);
  plane.begin_line(1, device.name);
  for (const Span &span : device.spans) {
    const Span *const step = steps.at(span.start_ns);
    if (step != nullptr)
      launches.push_back({std::min(span.start_ns, step->start_ns + step->duration_ns - 1), ++last_correlation});
    plane.add_event({span.name, ""}, span.start_ns, span.duration_ns, [&](pbf_builder<message::ProfileEvent> &event) {
      if (is(span, "kernel")) Plane::add_text(event, tf_op, op_name(span));
      if (step != nullptr) Plane::add_number(event, correlation_id, last_correlation);
    });
  }
  plane.end_line();
}

/// The row of a replica that a device works for.
const Row *host_of(std::span<const Row> rows, const Row &device) {
  const std::string ending = " on " + device.name;
  for (const Row &row : rows) {
    if (row.name.ends_with(ending) && std::any_of(row.spans.begin(), row.spans.end(), is_step)) return &row;
  }
  return nullptr;
}

int64_t begin_of(std::span<const Row> rows) {
  int64_t begin_ns = INT64_MAX;
  for (const Row &row : rows) {
    if (!row.spans.empty()) begin_ns = std::min(begin_ns, row.spans.front().start_ns);
  }
  return begin_ns == INT64_MAX ? 0 : begin_ns;
}

}  // namespace

std::string profile_planes(std::span<const Row> rows, int64_t epoch_ns) {
  const int64_t begin_ns = begin_of(rows);
  std::string bytes;
  pbf_builder<message::ProfileSpace> space(bytes);
  std::map<const Row *, std::vector<Launch>> launches;
  std::vector<const Row *> hosts;
  int64_t correlation = 0, planes = 0;
  std::string message;
  for (const Row &row : rows) {
    const Row *const host = host_of(rows, row);
    if (host == nullptr) {
      if (!row.spans.empty()) hosts.push_back(&row);
      continue;
    }
    message.clear();
    {
      Plane plane(message, planes + 1, base::concat("/device:GPU:", planes), begin_ns, epoch_ns);
      add_device_line(plane, row, *host, launches[host], correlation);
    }
    space.add_message(message::ProfileSpace::plane, message);
    ++planes;
  }
  message.clear();
  {
    Plane plane(message, 0, "/host:CPU", begin_ns, epoch_ns);
    for (size_t i = 0; i < hosts.size(); ++i)
      add_host_line(plane, static_cast<int64_t>(i) + 1, *hosts[i], launches[hosts[i]]);
  }
  space.add_message(message::ProfileSpace::plane, message);
  message::add_text(space, message::ProfileSpace::host_name, host_name());
  return bytes;
}

std::string profile_planes_path(const std::string &log_folder) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y_%m_%d_%H_%M_%S", &local);
  const std::string folder = base::concat(log_folder, "/plugins/profile/", text.data());
  const std::string file = base::concat("/", host_name(), ".xplane.pb");
  std::string path = folder + file;
  for (int32_t number = 2; base::path_exists(path); ++number)
    path = base::concat(folder, "_", number, file);
  return path;
}

}  // namespace tutti::impl::monitor
