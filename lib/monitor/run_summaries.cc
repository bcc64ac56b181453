// SPDX-License-Identifier: Apache-2.0
#include "monitor/run_summaries.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/exceptions.h"
#include "base/file.h"
#include "base/trace.h"
#include "monitor/graph_definition.h"
#include "monitor/hyperparameters.h"
#include "monitor/process_memory.h"

namespace tutti::impl::monitor {

using base::Ref;
using base::Status;

RunSummaries::RunSummaries(RunSummaryOptions options, Ref<base::Logger> logger)
    : options_(std::move(options)),
      logger_(std::move(logger)),
      training_{{options_.folder, options_.flush_secs}},
      evaluation_{{options_.folder + "/eval", options_.flush_secs}} {}

RunSummaries::~RunSummaries() {
  (void)base::without_exceptions([&] {
    flush();
    return Status();
  });
}

void RunSummaries::begin(int64_t step) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  last_ = SeenStep();
  last_.step = -1;
  training_.start = evaluation_.start = step + 1;
}

void RunSummaries::add_steps(std::span<const SeenStep> steps, std::span<const std::string> names) {
  if (!is_on() || steps.empty()) return;
  const std::vector<ScalarTag> tags(names.begin(), names.end());
  const std::lock_guard lock(mutex_);
  for (const SeenStep &step : steps) {
    summary_.clear();
    for (size_t i = 0; i < std::min(tags.size(), step.values.size()); ++i)
      summary_.add_scalar(tags[i], step.values[i]);
    add_rates(step);
    if (&step == &steps.back()) add_memory();
    add(training_, step.time_ns, step.step);
  }
}

void RunSummaries::add_memory() {
  constexpr int64_t interval_ns = 1'000'000'000;
  const int64_t now = base::now_ns();
  if (memory_ns_ != 0 && now - memory_ns_ < interval_ns) return;
  memory_ns_ = now;
  if (const int64_t bytes = resident_bytes(); bytes > 0)
    summary_.add_scalar("memory/resident_bytes", static_cast<double>(bytes));
}

void RunSummaries::add_rates(const SeenStep &step) {
  static const ScalarTag steps("global_step/sec"), examples("examples/sec"), waits("input_wait_fraction");
  const auto ns = static_cast<double>(step.time_ns - last_.time_ns);
  if (last_.step >= 0 && ns > 0) {
    summary_.add_scalar(steps, 1e9 * static_cast<double>(step.step - last_.step) / ns);
    summary_.add_scalar(examples, 1e9 * static_cast<double>(step.examples - last_.examples) / ns);
    summary_.add_scalar(waits, std::min(1.0, static_cast<double>(step.input_wait_ns - last_.input_wait_ns) / ns));
  }
  last_ = step;
  last_.values = {};
}

void RunSummaries::add_values(int64_t step, std::span<const TaggedValue> values) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  summary_.clear();
  for (const auto &[tag, value] : values)
    summary_.add_scalar(tag, value);
  add(training_, wall_time_ns(), step);
}

void RunSummaries::add(int64_t step, const Summary &summary) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  add(training_, {.time_ns = wall_time_ns(), .step = step, .message = summary.bytes()});
}

void RunSummaries::describe(int64_t time_ns, int64_t step, const graph::Graph &graph, const base::JsonObject &settings,
                            std::span<const std::string> metrics) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  if (is_described_.exchange(true)) return;
  summary_.clear();
  summary_.add_text("settings", settings_table(settings));
  add_hyperparameters(summary_, settings, metrics, time_ns);
  add(training_, time_ns, step);
  const std::string definition = graph_definition(graph);
  add(training_, {.time_ns = time_ns, .step = step, .kind = EventKind::graph, .message = definition});
}

void RunSummaries::add_evaluation(int64_t step, std::span<const TaggedValue> values,
                                  std::span<const ShownSummary> shown) {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  summary_.clear();
  for (const auto &[tag, value] : values)
    summary_.add_scalar(tag, value);
  for (const ShownSummary &one : shown)
    one.write(summary_);
  add(evaluation_, wall_time_ns(), step);
  // The next one may be hours away.
  note(evaluation_.file.flush());
}

void RunSummaries::add_record(std::string_view event, base::Json object) {
  if (!is_on()) return;
  base::Json record;
  record.set("event", event);
  record.set("time", 1e-9 * static_cast<double>(wall_time_ns()));
  for (auto &part : object.object())
    record.object().push_back(std::move(part));
  const std::string line = record.dump() + "\n";
  const std::lock_guard lock(mutex_);
  note(append_record(line));
}

Status RunSummaries::append_record(const std::string &line) const {
  TUTTI_TRY(base::make_directories(options_.folder));
  const std::string path = options_.folder + "/run.jsonl";
  TUTTI_ASSIGN(base::AppendFile file, base::AppendFile::open(path));
  TUTTI_ASSIGN(const base::RandomAccessFile written, base::RandomAccessFile::open(path));
  char last = '\n';
  if (written.size_bytes() > 0) TUTTI_TRY(written.read_at(written.size_bytes() - 1, &last, 1));
  return file.append(last == '\n' ? line : "\n" + line);
}

void RunSummaries::flush_if_due() {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  note(training_.file.flush_if_due());
}

void RunSummaries::flush() {
  if (!is_on()) return;
  const std::lock_guard lock(mutex_);
  note(training_.file.flush());
}

void RunSummaries::add(Curves &curves, int64_t time_ns, int64_t step) {
  add(curves, {.time_ns = time_ns, .step = step, .message = summary_.bytes()});
}

void RunSummaries::add(Curves &curves, const Event &event) {
  if (event.message.empty()) return;
  if (curves.start) note(curves.file.start(*std::exchange(curves.start, std::nullopt)));
  note(curves.file.add(event));
}

void RunSummaries::note(const Status &status) {
  if (status.ok() || has_warned_) return;
  has_warned_ = true;
  logger_->warning("summaries for TensorBoard cannot be written: ", status.to_string(),
                   "; the run goes on, and writing them is tried again");
}

}  // namespace tutti::impl::monitor
