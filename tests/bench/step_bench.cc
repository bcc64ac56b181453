// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds of one training step of the models of step_models.h on one thread, and the share of the processor's f32
// peak that its matrix products and convolutions come to.
//
//   step_bench [--report] [--profile] [--seconds S] [--backend NAME] [MODEL:BATCH ...]
//
// Without arguments: A:64 B:64 C:64 D:128 E:128.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/step_models.h"
#include "runtime/backend_list.h"

namespace {

using tutti::impl::base::Status;

/// Time of this thread alone: other work on the machine counts little.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// GFLOP/s of independent fused multiply-adds; the vectors are the compiler's, so build for the machine to believe it.
double measured_peak() {
  const char *given = std::getenv("STEP_BENCH_PEAK");
  return given != nullptr ? std::atof(given) : 0;
}

/// Time of each kernel, taken from the trace spans of a program.
class KernelTimes {
 public:
  tutti::impl::backend::HostOptions host_options() {
    tutti::impl::backend::HostOptions options;
    options.trace_begin = [this](const char *name) {
      names_.emplace_back(name);
      starts_.push_back(thread_seconds());
      return static_cast<uint64_t>(names_.size());
    };
    options.trace_end = [this](uint64_t span) {
      auto &entry = times_[names_[span - 1]];
      entry.first += thread_seconds() - starts_[span - 1];
      ++entry.second;
    };
    return options;
  }

  void print() const {
    std::vector<std::pair<double, std::string>> sorted;
    for (const auto &[name, entry] : times_)
      sorted.emplace_back(entry.first / entry.second, name);
    std::sort(sorted.rbegin(), sorted.rend());
    for (const auto &[seconds, name] : sorted)
      std::printf("  %9.4f ms  %s\n", seconds * 1e3, name.c_str());
  }

 private:
  std::vector<std::string> names_;
  std::vector<double> starts_;
  std::map<std::string, std::pair<double, int64_t>> times_;
};

/// One profiled run: every kernel with its mean time.
Status profile(const std::string &backend_name, const std::string &model_name, int64_t batch) {
  KernelTimes times;
  TUTTI_ASSIGN(const auto backend, tutti::impl::runtime::open_backend(backend_name, "{}", times.host_options()));
  TUTTI_ASSIGN(const auto model, tutti::testing::make_step_model(model_name));
  TUTTI_ASSIGN(auto trainer, tutti::testing::StepTrainer::create(
                                 backend, model, batch, tutti::impl::backend::Level::fast, TUTTI_COMPILE_DEBUG_NAMES));
  for (int i = 0; i < 5; ++i)
    TUTTI_TRY(trainer.step());
  times.print();
  return Status();
}

Status measure(const std::string &backend_name, const std::string &model_name, int64_t batch, bool report,
               double seconds) {
  TUTTI_ASSIGN(const auto backend, tutti::impl::runtime::open_backend(backend_name, "{}", {}));
  TUTTI_ASSIGN(const auto model, tutti::testing::make_step_model(model_name));
  const double compile_start = thread_seconds();
  TUTTI_ASSIGN(auto trainer, tutti::testing::StepTrainer::create(backend, model, batch));
  const double compile = thread_seconds() - compile_start;
  TUTTI_TRY(trainer.step());
  const double first_loss = trainer.loss();
  for (int i = 0; i < 2; ++i)
    TUTTI_TRY(trainer.step());
  std::vector<double> times;
  const double start = thread_seconds();
  while (times.size() < 5 || (thread_seconds() - start < seconds && times.size() < 100000)) {
    const double step_start = thread_seconds();
    TUTTI_TRY(trainer.step());
    times.push_back(thread_seconds() - step_start);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const double gflops = model.dense_flops * static_cast<double>(batch) / median / 1e9;
  std::printf("%s b%-4lld %10.4f ms/step (min %.4f)  %7.1f GF/s", model_name.c_str(), static_cast<long long>(batch),
              median * 1e3, times.front() * 1e3, gflops);
  if (measured_peak() > 0) std::printf(" = %4.1f %% of peak", 100 * gflops / measured_peak());
  std::printf("  loss %.4f -> %.4f  compile %.0f ms  workspace %.1f MB  steps %zu\n", first_loss, trainer.loss(),
              compile * 1e3, static_cast<double>(trainer.workspace_bytes()) / 1e6, times.size());
  if (report) std::printf("%s\n%s\n", trainer.accumulate_report().c_str(), trainer.finish_report().c_str());
  return Status();
}

}  // namespace

int main(int argc, char **argv) {
  std::vector<std::string> cases;
  std::string backend = "cpu";
  bool report = false, profiled = false;
  double seconds = 3;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--report") == 0) {
      report = true;
    } else if (std::strcmp(argv[i], "--profile") == 0) {
      profiled = true;
    } else if (std::strcmp(argv[i], "--backend") == 0 && i + 1 < argc) {
      backend = argv[++i];
    } else if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else {
      cases.emplace_back(argv[i]);
    }
  }
  if (cases.empty()) cases = {"A:64", "B:64", "C:64", "D:128", "E:128"};
  for (const std::string &one : cases) {
    const size_t colon = one.find(':');
    const int64_t batch = colon == std::string::npos ? 64 : std::atoll(one.c_str() + colon + 1);
    Status status = measure(backend, one.substr(0, colon), batch, report, seconds);
    if (status.ok() && profiled) status = profile(backend, one.substr(0, colon), batch);
    if (!status.ok()) std::printf("%s: %s\n", one.c_str(), status.to_string().c_str());
  }
  return 0;
}
