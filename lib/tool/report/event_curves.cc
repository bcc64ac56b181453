// SPDX-License-Identifier: Apache-2.0
#include "tool/report/event_curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <protozero/pbf_message.hpp>
#include <set>
#include <string_view>
#include <tutti/tutti.hpp>

#include "tool/console/tensor_values.h"

namespace tutti::tool {

namespace {

// Fields as TensorFlow numbers them: core/util/event.proto, core/framework/summary.proto.
enum class EventField : protozero::pbf_tag_type { wall_time = 1, step = 2, summary = 5, session_log = 7 };
enum class SummaryField : protozero::pbf_tag_type { value = 1 };
enum class ValueField : protozero::pbf_tag_type { tag = 1, simple_value = 2 };
enum class SessionField : protozero::pbf_tag_type { status = 1 };
constexpr int32_t kSessionStart = 1;

struct CurveEvent {
  double time = 0;
  int64_t step = 0;
  bool starts_session = false;
  std::vector<std::pair<std::string, float>> values;
};

void read_value(protozero::data_view view, CurveEvent &event) {
  protozero::pbf_message<ValueField> value(view);
  std::string tag;
  bool has_number = false;
  float number = 0;
  while (value.next()) {
    if (value.tag() == ValueField::tag) {
      tag = value.get_string();
    } else if (value.tag() == ValueField::simple_value) {
      number = value.get_float();
      has_number = true;
    } else {
      value.skip();
    }
  }
  if (has_number) event.values.emplace_back(std::move(tag), number);
}

void read_summary(protozero::data_view view, CurveEvent &event) {
  protozero::pbf_message<SummaryField> summary(view);
  while (summary.next(SummaryField::value))
    read_value(summary.get_view(), event);
}

bool starts_session(protozero::data_view view) {
  protozero::pbf_message<SessionField> log(view);
  return log.next(SessionField::status) && log.get_enum() == kSessionStart;
}

CurveEvent read_event(std::string_view record) {
  CurveEvent event;
  protozero::pbf_message<EventField> message(protozero::data_view(record.data(), record.size()));
  while (message.next()) {
    switch (message.tag()) {
      case EventField::wall_time:
        event.time = message.get_double();
        break;
      case EventField::step:
        event.step = message.get_int64();
        break;
      case EventField::summary:
        read_summary(message.get_view(), event);
        break;
      case EventField::session_log:
        event.starts_session = starts_session(message.get_view());
        break;
      default:
        message.skip();
    }
  }
  return event;
}

void forget_from(int64_t step, Curves &curves) {
  for (auto &[tag, points] : curves) {
    const auto later = [&](const CurvePoint &point) { return point.step >= step; };
    points.erase(std::remove_if(points.begin(), points.end(), later), points.end());
  }
}

/// A path that is no pattern for the library.
std::string literal(const std::string &path) {
  std::string text;
  for (const char c : path) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

void read_event_file(const std::string &path, Curves &curves) {
  Pipeline pipeline;
  pipeline.transform("tfrecord", 1, [&](tutti_pipeline *source) {
    tutti_pipeline_set_string(source, "paths", literal(path).c_str());
    tutti_pipeline_set_string(source, "compression", "none");
  });
  const Dataset records = pipeline.build();
  Iterator iterator(records);
  while (iterator.next()) {
    const Tensor record = iterator.component(0);
    const CurveEvent event = read_event(bytes_at(record, 0));
    if (event.starts_session) forget_from(event.step, curves);
    for (const auto &[tag, value] : event.values)
      curves[tag].push_back({event.step, event.time, value});
  }
}

std::vector<std::string> event_files(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".tfevents.") != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

EventCurves read_event_curves(const std::string &folder) {
  EventCurves all;
  for (const std::string &name : event_files(folder)) {
    ++all.files;
    try {
      read_event_file(folder + "/" + name, all.curves);
    } catch (const std::exception &error) {  // of the library, or of protozero
      all.damages.push_back("the event file " + name +
                            " was read up to what is damaged or not complete: " + std::string(error.what()));
    }
  }
  for (auto entry = all.curves.begin(); entry != all.curves.end();)
    entry = entry->second.empty() ? all.curves.erase(entry) : std::next(entry);
  return all;
}

std::vector<CurvePoint> thinned(const std::vector<CurvePoint> &curve, size_t most) {
  if (curve.size() <= most || most < 8) return curve;
  const size_t parts = most / 4;
  std::vector<CurvePoint> kept;
  for (size_t part = 0; part < parts; ++part) {
    const size_t begin = curve.size() * part / parts, end = curve.size() * (part + 1) / parts;
    std::set<size_t> chosen = {begin};
    size_t least = end, greatest = end, odd = end;
    for (size_t i = begin; i < end; ++i) {
      if (!std::isfinite(curve[i].value)) {
        odd = std::min(odd, i);
        continue;
      }
      if (least == end || curve[i].value < curve[least].value) least = i;
      if (greatest == end || curve[i].value > curve[greatest].value) greatest = i;
    }
    chosen.insert({least, greatest, odd});
    if (part + 1 == parts) chosen.insert(end - 1);
    for (const size_t i : chosen)
      if (i < end) kept.push_back(curve[i]);
  }
  return kept;
}

}  // namespace tutti::tool
