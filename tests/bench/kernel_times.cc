// SPDX-License-Identifier: Apache-2.0
#include "kernel_times.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/json.h"
#include "meters.h"

namespace tutti::testing {

using impl::backend::HostOptions;
using impl::base::Json;
using impl::base::Result;

namespace {

double thread_seconds() { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Spans in the order they begin; they do not nest.
class Spans {
 public:
  /// `clock`: seconds; cheap where spans are short.
  explicit Spans(double (*clock)()) : clock_(clock) {}

  HostOptions host_options() {
    HostOptions options;
    options.trace_begin = [this](const char *name) { return begin(name); };
    options.trace_end = [this](uint64_t span) { end(span); };
    // Devices with a clock of their own.
    options.trace_record = [this](int32_t, const char *, const char *name, int64_t, int64_t duration_ns) {
      spans_.push_back({name, static_cast<double>(duration_ns) * 1e-9, 0});
    };
    return options;
  }

  uint64_t begin(const char *name) {
    spans_.push_back({name, 0, clock_()});
    return spans_.size();
  }
  void end(uint64_t span) {
    const double now = clock_();
    spans_[span - 1].seconds = now - spans_[span - 1].start;
  }
  void clear() {
    spans_.clear();
    spans_.reserve(4096);
  }

  struct Span {
    std::string name;
    double seconds, start;
  };
  const std::vector<Span> &all() const { return spans_; }

 private:
  double (*clock_)();
  std::vector<Span> spans_;
};

/// Seconds that a span of nothing seems to take.
double empty_span_seconds(const HostOptions &hooks, Spans &spans) {
  std::vector<double> seconds;
  for (int i = 0; i < 2000; ++i) {
    spans.clear();
    hooks.trace_end(hooks.trace_begin("nothing"));
    seconds.push_back(spans.all()[0].seconds);
  }
  return median(seconds);
}

/// Seconds of one step in its kernels: the sum of the median of each, which a pause in one of many steps leaves alone.
Result<double> traced_seconds(StepCase &one, Spans &spans, int steps, double nothing) {
  std::vector<std::vector<double>> by_kernel;
  for (int i = 0; i < steps; ++i) {
    spans.clear();
    TUTTI_TRY(one.run_once());
    by_kernel.resize(spans.all().size());
    for (size_t k = 0; k < by_kernel.size(); ++k)
      by_kernel[k].push_back(spans.all()[k].seconds - nothing);
  }
  double sum = 0;
  for (const std::vector<double> &seconds : by_kernel)
    sum += median(seconds);
  return sum;
}

/// What calls of a name move, in the order of the calls.
using BytesByName = std::map<std::string, std::vector<int64_t>>;

/// Reports of executables have it where the backend knows.
Result<BytesByName> bytes_by_name(const std::vector<std::string> &reports) {
  BytesByName bytes;
  for (const std::string &text : reports) {
    TUTTI_ASSIGN(const Json report, Json::parse(text));
    const Json *const own = report.find("report");
    const Json *const calls = own == nullptr ? report.find("calls") : own->find("calls");
    if (calls == nullptr || !calls->is_array()) continue;
    for (const Json &call : calls->array())
      bytes[call.find("name")->string()].push_back(call.find("bytes")->integer());
  }
  return bytes;
}

}  // namespace

Result<std::vector<KernelTime>> kernel_times(const std::string &backend, const CaseSpec &spec) {
  Spans spans(thread_seconds);
  const HostOptions hooks = spans.host_options();
  TUTTI_ASSIGN(StepCase one, StepCase::create(backend, spec, hooks, TUTTI_COMPILE_DEBUG_NAMES));
  const double nothing = empty_span_seconds(hooks, spans);
  constexpr int kSteps = 7;
  std::vector<std::vector<double>> by_kernel;
  std::vector<KernelTime> result;
  for (int step = -2; step < kSteps; ++step) {
    spans.clear();
    TUTTI_TRY(one.run_once());
    TUTTI_TRY(one.synchronize());  // devices tell their times then
    by_kernel.resize(spans.all().size());
    for (size_t i = 0; step >= 0 && i < spans.all().size(); ++i)
      by_kernel[i].push_back(std::max(0.0, spans.all()[i].seconds - nothing));
  }
  TUTTI_ASSIGN(const BytesByName bytes, bytes_by_name(one.reports()));
  std::map<std::string, size_t> met;
  for (size_t i = 0; i < by_kernel.size(); ++i) {
    const std::string &name = spans.all()[i].name;
    const auto known = bytes.find(name);
    const size_t number = met[name]++;
    const bool is_known = known != bytes.end() && number < known->second.size();
    result.push_back({name, median(by_kernel[i]) * 1e3, is_known ? known->second[number] : 0});
  }
  std::stable_sort(result.begin(), result.end(), [](const auto &a, const auto &b) { return a.ms > b.ms; });
  return result;
}

Result<Overhead> executor_overhead(const std::string &backend, const CaseSpec &spec, int rounds) {
  Spans spans(wall_seconds);
  const HostOptions hooks = spans.host_options();
  TUTTI_ASSIGN(StepCase traced, StepCase::create(backend, spec, hooks, TUTTI_COMPILE_DEBUG_NAMES));
  TUTTI_ASSIGN(StepCase plain, StepCase::create(backend, spec));
  constexpr int kSteps = 500;
  std::vector<double> steps, kernels;
  for (int round = -1; round < rounds; ++round) {
    const double start = thread_seconds();
    for (int i = 0; i < kSteps; ++i)
      TUTTI_TRY(plain.run_once());
    const double step = (thread_seconds() - start) / kSteps;
    TUTTI_ASSIGN(const double in_kernels, traced_seconds(traced, spans, kSteps / 5, empty_span_seconds(hooks, spans)));
    if (round < 0) continue;
    steps.push_back(step * 1e6);
    kernels.push_back(in_kernels * 1e6);
  }
  return Overhead{median(steps), median(kernels), static_cast<int64_t>(spans.all().size())};
}

}  // namespace tutti::testing
