// SPDX-License-Identifier: Apache-2.0
//
// A file that gets a line for each event of a training: CSV, whose first line names the columns, or JSON lines, an
// object each. A new name of a metric becomes a column of all lines of CSV.
//
//   event,time,step,epoch,examples_per_second,loss,accuracy
//   step,1790000000.125,100,0,51234.5,0.4121,0.875
//   evaluation,1790000003.5,100,0,,0.3912,0.9
//
//   {"event":"step","time":1790000000.125,"step":100,"epoch":0,"examples_per_second":51234.5,"loss":0.4121, ...}
//
// Threads: belongs to one.
#ifndef TUTTI_ESTIMATOR_HOOKS_METRICS_FILE_H_
#define TUTTI_ESTIMATOR_HOOKS_METRICS_FILE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "estimator/hook.h"

namespace tutti::impl::estimator::hooks {

/// The numbers are part of the C ABI.
enum class MetricsFormat : int32_t { csv = 1, json_lines = 2 };

struct MetricsLine {
  std::string_view event;          // "step", "epoch", "evaluation" or "end"
  double time = 0;                 // seconds since 1970
  int64_t step = 0;                // completed steps of the model
  int64_t epoch = 0;               // the pass over the dataset, from 0
  double examples_per_second = 0;  // below 0: not known, left out
  /// Loss and metrics. One that has the name of another column is written as "metric/NAME".
  std::span<const NamedNumber> values;
};

class MetricsFile {
 public:
  /// A file that is there goes on, without lines of steps after `step` and without a line that was cut.
  /// FAILED_PRECONDITION when it is no file of metrics of this format.
  static base::Result<MetricsFile> open(const std::string &path, MetricsFormat format, int64_t step);
  /// One write.
  base::Status add(const MetricsLine &line);

 private:
  MetricsFile(std::string path, MetricsFormat format) : path_(std::move(path)), format_(format) {}
  base::Status keep_steps_until(int64_t step);
  base::Status add_columns(const MetricsLine &line);
  std::string csv_line(const MetricsLine &line) const;

  std::string path_;
  MetricsFormat format_;
  std::vector<std::string> columns_;  // CSV: names of the values
  bool has_header_ = false;           // CSV
  std::optional<base::AppendFile> file_;
};

}  // namespace tutti::impl::estimator::hooks

#endif  // TUTTI_ESTIMATOR_HOOKS_METRICS_FILE_H_
