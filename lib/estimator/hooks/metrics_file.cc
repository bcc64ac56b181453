// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/metrics_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace tutti::impl::estimator::hooks {

using base::Json;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kFixedColumns[] = {"event", "time", "step", "epoch", "examples_per_second"};
constexpr std::string_view kHeader = "event,time,step,epoch,examples_per_second";
constexpr size_t kStepColumn = 2;

std::string csv_number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string time_text(double seconds) {
  char text[48];
  snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

std::string column_name(const NamedNumber &value) {
  const bool is_taken =
      std::find(std::begin(kFixedColumns), std::end(kFixedColumns), value.name) != std::end(kFixedColumns);
  return is_taken ? base::concat("metric/", value.name) : std::string(value.name);
}

/// RFC 4180: a field with a comma, a quote or a line end is quoted.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + "\"";
}

/// The length of the first record with its line end; 0 when that is missing.
size_t record_size(std::string_view text, MetricsFormat format) {
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && format == MetricsFormat::csv) is_quoted = !is_quoted;
    if (text[i] == '\n' && !is_quoted) return i + 1;
  }
  return 0;
}

std::vector<std::string> csv_fields(std::string_view record) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (size_t i = 0; i < record.size(); ++i) {
    const char letter = record[i];
    if (letter == '"' && is_quoted && i + 1 < record.size() && record[i + 1] == '"')
      fields.back() += record[i++];
    else if (letter == '"')
      is_quoted = !is_quoted;
    else if (letter == ',' && !is_quoted)
      fields.emplace_back();
    else if (letter != '\n' || is_quoted)
      fields.back() += letter;
  }
  return fields;
}

/// The records with their line ends; what follows the last line end is left out.
std::vector<std::string_view> records_of(std::string_view text, MetricsFormat format) {
  std::vector<std::string_view> records;
  for (size_t size = record_size(text, format); size > 0; size = record_size(text, format)) {
    records.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return records;
}

/// Of a line; nothing where it has none.
std::optional<int64_t> step_of(std::string_view record, MetricsFormat format) {
  if (format == MetricsFormat::json_lines) {
    const Result<Json> line = Json::parse(record);
    const Json *const step = line.ok() ? line->find("step") : nullptr;
    if (step == nullptr || !step->is_integer()) return std::nullopt;
    return step->integer();
  }
  const std::vector<std::string> fields = csv_fields(record);
  if (fields.size() <= kStepColumn) return std::nullopt;
  const std::string &text = fields[kStepColumn];
  int64_t step = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return step;
}

Status no_metrics(const std::string &path, std::string_view first, std::string_view expected) {
  return base::failed_precondition("'", path, "' is no file of metrics: it begins with '", first.substr(0, 60),
                                   "', expected '", expected, "'; name another file, or remove this one")
      .with_detail("path", path);
}

std::string json_line(const MetricsLine &line) {
  Json json;
  json["event"] = line.event;
  json["time"] = std::round(line.time * 1e3) / 1e3;
  json["step"] = line.step;
  json["epoch"] = line.epoch;
  if (line.examples_per_second >= 0) json["examples_per_second"] = line.examples_per_second;
  for (const NamedNumber &value : line.values) {
    if (!value.is_number()) continue;
    json[column_name(value)] = std::isfinite(value.value) ? Json(value.value) : Json();
  }
  return json.dump() + "\n";
}

}  // namespace

Result<MetricsFile> MetricsFile::open(const std::string &path, MetricsFormat format, int64_t step) {
  MetricsFile file(path, format);
  if (base::path_exists(path)) TUTTI_TRY(file.keep_steps_until(step));
  TUTTI_ASSIGN(file.file_, base::AppendFile::open(path));
  return file;
}

Status MetricsFile::keep_steps_until(int64_t step) {
  TUTTI_ASSIGN(const std::string text, base::read_file(path_));
  const std::vector<std::string_view> records = records_of(text, format_);
  const bool is_csv = format_ == MetricsFormat::csv;
  if (is_csv && !text.empty() && !text.starts_with(kHeader))
    return no_metrics(path_, text.substr(0, text.find('\n')), kHeader);
  std::string kept;
  for (size_t i = 0; i < records.size(); ++i) {
    if (is_csv && i == 0) {
      has_header_ = true;
      columns_ = csv_fields(records[0]);
      columns_.erase(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(std::size(kFixedColumns)));
      kept += records[0];
      continue;
    }
    const std::optional<int64_t> line_step = step_of(records[i], format_);
    if (!line_step) return no_metrics(path_, records[i].substr(0, records[i].size() - 1), "a line with a step");
    if (*line_step <= step) kept += records[i];
  }
  return kept.size() == text.size() ? Status() : base::write_file_atomically(path_, kept);
}

Status MetricsFile::add(const MetricsLine &line) {
  if (format_ == MetricsFormat::json_lines) return file_->append(json_line(line));
  TUTTI_TRY(add_columns(line));
  return file_->append(csv_line(line));
}

// The header of a new file, or columns that all lines of it get.
Status MetricsFile::add_columns(const MetricsLine &line) {
  const size_t known = columns_.size();
  for (const NamedNumber &value : line.values) {
    const std::string name = column_name(value);
    if (value.is_number() && std::find(columns_.begin(), columns_.end(), name) == columns_.end())
      columns_.push_back(name);
  }
  if (has_header_ && columns_.size() == known) return Status();
  std::string lines(kHeader);
  for (const std::string &name : columns_)
    lines += "," + csv_field(name);
  lines += "\n";
  if (!std::exchange(has_header_, true)) return file_->append(lines);
  TUTTI_ASSIGN(const std::string text, base::read_file(path_));
  const std::vector<std::string_view> records = records_of(text, format_);
  const std::string commas(columns_.size() - known, ',');
  for (size_t i = 1; i < records.size(); ++i)
    lines += base::concat(records[i].substr(0, records[i].size() - 1), commas, "\n");
  file_.reset();
  TUTTI_TRY(base::write_file_atomically(path_, lines));
  TUTTI_ASSIGN(file_, base::AppendFile::open(path_));
  return Status();
}

std::string MetricsFile::csv_line(const MetricsLine &line) const {
  std::string text = base::concat(line.event, ",", time_text(line.time), ",", line.step, ",", line.epoch, ",",
                                  line.examples_per_second >= 0 ? csv_number(line.examples_per_second) : "");
  for (const std::string &name : columns_) {
    text += ',';
    for (const NamedNumber &value : line.values)
      if (value.is_number() && column_name(value) == name) text += csv_number(value.value);
  }
  return text + "\n";
}

}  // namespace tutti::impl::estimator::hooks
