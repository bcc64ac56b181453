// SPDX-License-Identifier: Apache-2.0
//
// Milliseconds of one training step, or of one prediction, of the networks of step_networks.h, and the share of the
// processor's f32 ceiling (fma_ceiling.h) that its matrix products and convolutions come to. Above 100 % is possible
// with algorithms that multiply less.
//
//   step_bench [--predict] [--threads N] [--bf16] [--report] [--profile] [--seconds S] [--backend B] [MODEL:BATCH ...]
//                                           --profile: what each kernel takes, and what it moves at least where the
//                                           backend says so, beside what moving that would take
//   step_bench --precision [...]            time in f32 alone ÷ time with --bf16, measured in turns
//   step_bench --loop STEPS MODEL:BATCH     runs so many steps and prints nothing: for tools that count
//   step_bench --soak STEPS MODEL:BATCH     runs so many steps and fails if the device has less memory free behind them
//                                           than behind the first tenth, or the loss is not finite
//   step_bench --serve                      answers requests, see step_server.h
//
// --bf16 permits factors rounded to bfloat16 where that is faster. Models by name or letter; without any toy:64 mlp:64
// cnn:64 resnet20:128 separable:128 resnet18:32.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "fma_ceiling.h"
#include "kernel_times.h"
#include "step_case.h"
#include "step_server.h"

namespace {

using tutti::impl::base::Status;
using tutti::testing::CaseSpec;
using tutti::testing::Measured;
using tutti::testing::StepCase;

struct Arguments {
  std::vector<std::string> cases;
  std::string backend = "cpu";
  std::string form = "training";
  int32_t threads = 1;
  int64_t loop = 0, soak = 0;
  double seconds = 3;
  bool report = false, profile = false, serve = false, bf16 = false, precision = false;
};

Status print_profile(const Arguments &arguments, const CaseSpec &spec) {
  TUTTI_ASSIGN(const auto times, tutti::testing::kernel_times(arguments.backend, spec));
  constexpr int64_t kLarge = int64_t{64} << 20;
  double ms = 0, bytes = 0, fastest = 0;
  for (const auto &time : times) {
    const double rate = time.ms > 0 ? static_cast<double>(time.bytes) / time.ms * 1e-6 : 0;  // GB/s
    std::printf("  %9.4f ms %9.2f MB %7.0f GB/s  %s\n", time.ms, static_cast<double>(time.bytes) * 1e-6, rate,
                time.name.c_str());
    ms += time.ms;
    bytes += static_cast<double>(time.bytes);
    if (time.bytes >= kLarge) fastest = std::max(fastest, rate);
  }
  if (fastest > 0)
    std::printf("  kernels take %.3f ms and move %.2f GB at least: %.3f ms at the rate of the fastest, %.0f GB/s\n", ms,
                bytes * 1e-9, bytes * 1e-6 / fastest, fastest);
  return Status();
}

Status measure(const Arguments &arguments, const CaseSpec &spec, double ceiling) {
  TUTTI_ASSIGN(StepCase one, StepCase::create(arguments.backend, spec));
  TUTTI_TRY(one.run_once());
  const double first_loss = one.trainer() != nullptr ? one.trainer()->loss() : 0;
  TUTTI_TRY(one.measure(0.1));
  TUTTI_ASSIGN(const Measured cost, one.measure(arguments.seconds));
  const double gflops = one.flops() / cost.cpu_ms * 1e-6;
  std::printf("%-9s %s b%-4lld %10.4f ms  %7.1f GF/s = %5.1f %% of the ceiling", spec.model.c_str(), spec.form.c_str(),
              static_cast<long long>(spec.batch), spec.threads > 1 ? cost.wall_ms : cost.cpu_ms, gflops,
              100 * gflops / ceiling);
  if (one.trainer() != nullptr) std::printf("  loss %.4f -> %.4f", first_loss, one.trainer()->loss());
  std::printf("  build %.0f ms  workspace %.1f MB  steps %lld\n", one.build_seconds() * 1e3,
              static_cast<double>(one.workspace_bytes()) / 1e6, static_cast<long long>(cost.steps));
  for (size_t i = 0; arguments.report && i < one.reports().size(); ++i)
    std::printf("%s\n", one.reports()[i].c_str());
  return Status();
}

/// Turns in the order ABBA; the ratio of each pair, of which the median is printed.
Status compare_precision(const Arguments &arguments, const CaseSpec &spec) {
  CaseSpec permitted = spec;
  permitted.flags |= TUTTI_COMPILE_BF16_WHERE_FASTER;
  TUTTI_ASSIGN(StepCase plain, StepCase::create(arguments.backend, spec));
  TUTTI_ASSIGN(StepCase rounded, StepCase::create(arguments.backend, permitted));
  constexpr int kPairs = 12;
  std::vector<double> ratios, plain_ms, rounded_ms;
  for (int pair = -1; pair < kPairs; ++pair) {
    StepCase &first = pair % 2 == 0 ? plain : rounded, &second = pair % 2 == 0 ? rounded : plain;
    TUTTI_ASSIGN(const Measured one, first.measure(arguments.seconds / kPairs / 2));
    TUTTI_ASSIGN(const Measured other, second.measure(arguments.seconds / kPairs / 2));
    if (pair < 0) continue;
    plain_ms.push_back((pair % 2 == 0 ? one : other).cpu_ms);
    rounded_ms.push_back((pair % 2 == 0 ? other : one).cpu_ms);
    ratios.push_back(plain_ms.back() / rounded_ms.back());
  }
  for (std::vector<double> *values : {&ratios, &plain_ms, &rounded_ms})
    std::sort(values->begin(), values->end());
  std::printf("%-9s %s b%-4lld f32 %10.4f ms  bf16 %10.4f ms  ratio %.2f [%.2f, %.2f]", spec.model.c_str(),
              spec.form.c_str(), static_cast<long long>(spec.batch), plain_ms[kPairs / 2], rounded_ms[kPairs / 2],
              ratios[kPairs / 2], ratios.front(), ratios.back());
  if (plain.trainer() != nullptr) std::printf("  loss %.4f / %.4f", plain.trainer()->loss(), rounded.trainer()->loss());
  std::printf("  build %.0f / %.0f ms\n", plain.build_seconds() * 1e3, rounded.build_seconds() * 1e3);
  return Status();
}

Status run_loop(const Arguments &arguments, const CaseSpec &spec) {
  TUTTI_ASSIGN(StepCase one, StepCase::create(arguments.backend, spec));
  for (int64_t i = 0; i < arguments.loop; ++i)
    TUTTI_TRY(one.run_once());
  return one.synchronize();  // memory is freed behind this, which the device may still use
}

/// What drivers take and give back in passing.
constexpr int64_t kSoakToleranceBytes = int64_t{16} << 20;

Status soak(const Arguments &arguments, const CaseSpec &spec) {
  constexpr int64_t kStretches = 10;
  TUTTI_ASSIGN(StepCase one, StepCase::create(arguments.backend, spec));
  int64_t first = 0, least = INT64_MAX;
  for (int64_t stretch = 0; stretch < kStretches; ++stretch) {
    for (int64_t i = arguments.soak * stretch / kStretches; i < arguments.soak * (stretch + 1) / kStretches; ++i)
      TUTTI_TRY(one.run_once());
    TUTTI_TRY(one.synchronize());
    const int64_t available = one.available_bytes();
    if (stretch == 0) first = available;
    least = std::min(least, available);
  }
  const double loss = one.trainer() != nullptr ? one.trainer()->loss() : 0;
  std::printf(
      "{\"model\": \"%s\", \"batch\": %lld, \"steps\": %lld, \"first_free_bytes\": %lld, "
      "\"least_free_bytes\": %lld, \"loss\": %.6g}\n",
      spec.model.c_str(), static_cast<long long>(spec.batch), static_cast<long long>(arguments.soak),
      static_cast<long long>(first), static_cast<long long>(least), loss);
  if (!std::isfinite(loss)) return tutti::impl::base::out_of_range("the loss is ", loss);
  if (first - least <= kSoakToleranceBytes) return Status();
  return tutti::impl::base::resource_exhausted(first - least, " bytes less of the device's memory are free behind ",
                                               arguments.soak, " steps than behind the first tenth of them");
}

Arguments parse(int argc, char **argv) {
  Arguments result;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_next = i + 1 < argc;
    if (word == "--report") {
      result.report = true;
    } else if (word == "--profile") {
      result.profile = true;
    } else if (word == "--bf16") {
      result.bf16 = true;
    } else if (word == "--precision") {
      result.precision = true;
    } else if (word == "--serve") {
      result.serve = true;
    } else if (word == "--predict") {
      result.form = "inference";
    } else if (word == "--backend" && has_next) {
      result.backend = argv[++i];
    } else if (word == "--threads" && has_next) {
      result.threads = std::atoi(argv[++i]);
    } else if (word == "--loop" && has_next) {
      result.loop = std::atoll(argv[++i]);
    } else if (word == "--soak" && has_next) {
      result.soak = std::atoll(argv[++i]);
    } else if (word == "--seconds" && has_next) {
      result.seconds = std::atof(argv[++i]);
    } else {
      result.cases.push_back(word);
    }
  }
  if (result.cases.empty())
    result.cases = {"toy:64", "mlp:64", "cnn:64", "resnet20:128", "separable:128", "resnet18:32"};
  return result;
}

}  // namespace

int main(int argc, char **argv) {
  const Arguments arguments = parse(argc, argv);
  if (arguments.serve) {
    tutti::testing::serve_steps(arguments.backend);
    return 0;
  }
  const bool measures = arguments.loop == 0 && arguments.soak == 0;
  const double ceiling = measures ? tutti::testing::fma_gflops(0.5) : 1;
  if (measures) {
    std::printf("ceiling of one thread: %.1f GF/s (%s)\n", ceiling, tutti::testing::fma_target_name());
  }
  int failures = 0;
  for (const std::string &one : arguments.cases) {
    const size_t colon = one.find(':');
    CaseSpec spec{arguments.form, one.substr(0, colon), 64, arguments.threads};
    if (colon != std::string::npos) spec.batch = std::atoll(one.c_str() + colon + 1);
    if (arguments.bf16) spec.flags = TUTTI_COMPILE_BF16_WHERE_FASTER;
    Status status = arguments.loop > 0    ? run_loop(arguments, spec)
                    : arguments.soak > 0  ? soak(arguments, spec)
                    : arguments.precision ? compare_precision(arguments, spec)
                                          : measure(arguments, spec, ceiling);
    if (status.ok() && arguments.profile) status = print_profile(arguments, spec);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s: %s\n", one.c_str(), status.to_string().c_str());
    ++failures;
  }
  return failures > 0;
}
