// SPDX-License-Identifier: Apache-2.0
#include "monitor/hyperparameters.h"

#include "base/text.h"
#include "monitor/event_messages.h"

namespace tutti::impl::monitor {

using base::Json;
using base::JsonObject;
using protozero::pbf_builder;

namespace {

enum class Data : protozero::pbf_tag_type { version = 1, experiment = 2, session_start = 3 };
enum class Experiment : protozero::pbf_tag_type { time_created_secs = 3, hyperparameter = 4, metric = 5 };
enum class Info : protozero::pbf_tag_type { name = 1, type = 4 };
enum class Metric : protozero::pbf_tag_type { name = 1, dataset_type = 5 };
enum class MetricName : protozero::pbf_tag_type { group = 1, tag = 2 };
enum class SessionStart : protozero::pbf_tag_type { hyperparameters = 1, start_time_secs = 5 };
/// google.protobuf.Value
enum class AnyValue : protozero::pbf_tag_type { number = 2, text = 3, boolean = 4 };
enum class DataType : int32_t { text = 1, boolean = 2, number = 3 };

constexpr std::string_view kPlugin = "hparams";

std::string text_of(const Json &value) { return value.is_string() ? value.string() : value.dump(); }

DataType type_of_setting(const Json &value) {
  if (value.is_boolean()) return DataType::boolean;
  return value.is_integer() || value.is_number() ? DataType::number : DataType::text;
}

std::string experiment_of(const JsonObject &settings, std::span<const std::string> metrics, double start_secs) {
  std::string message;
  pbf_builder<Data> data(message);
  pbf_builder<Experiment> experiment(data, Data::experiment);
  experiment.add_double(Experiment::time_created_secs, start_secs);
  for (const auto &[name, value] : settings) {
    pbf_builder<Info> info(experiment, Experiment::hyperparameter);
    message::add_text(info, Info::name, name);
    info.add_enum(Info::type, static_cast<int32_t>(type_of_setting(value)));
  }
  for (const std::string &tag : metrics) {
    pbf_builder<Metric> metric(experiment, Experiment::metric);
    pbf_builder<MetricName> name(metric, Metric::name);
    message::add_text(name, MetricName::tag, tag);
  }
  return message;
}

std::string session_of(const JsonObject &settings, double start_secs) {
  std::string message;
  pbf_builder<Data> data(message);
  pbf_builder<SessionStart> session(data, Data::session_start);
  for (const auto &[name, value] : settings) {
    pbf_builder<message::MapEntry> entry(session, SessionStart::hyperparameters);
    message::add_text(entry, message::MapEntry::key, name);
    pbf_builder<AnyValue> any(entry, message::MapEntry::value);
    switch (type_of_setting(value)) {
      case DataType::boolean:
        any.add_bool(AnyValue::boolean, value.boolean());
        break;
      case DataType::number:
        any.add_double(AnyValue::number, value.is_integer() ? static_cast<double>(value.integer()) : value.number());
        break;
      case DataType::text:
        message::add_text(any, AnyValue::text, text_of(value));
        break;
    }
  }
  session.add_double(SessionStart::start_time_secs, start_secs);
  return message;
}

// A cell of a table: "|" and new lines would end it.
std::string cell(std::string_view text) {
  std::string all;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      all += ' ';
    } else {
      if (c == '|' || c == '\\') all += '\\';
      all += c;
    }
  }
  return all;
}

}  // namespace

void add_hyperparameters(Summary &summary, const JsonObject &settings, std::span<const std::string> metrics,
                         int64_t start_ns) {
  const double start_secs = 1e-9 * static_cast<double>(start_ns);
  summary.add_plugin_content("_hparams_/experiment", kPlugin, experiment_of(settings, metrics, start_secs));
  summary.add_plugin_content("_hparams_/session_start_info", kPlugin, session_of(settings, start_secs));
}

std::string settings_table(const JsonObject &settings) {
  std::string text = "| setting | value |\n|---|---|\n";
  for (const auto &[name, value] : settings)
    text += base::concat("| ", cell(name), " | ", cell(text_of(value)), " |\n");
  return text;
}

}  // namespace tutti::impl::monitor
