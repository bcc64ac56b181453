// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/convolution/convolution_timing.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/kernel/floating_point_mode.h"
#include "base/memory.h"

namespace tutti::impl::backend::cpu {

using base::Result;

namespace {

constexpr int64_t kPattern = 1 << 14;  // numbers that are repeated
constexpr int kRuns = 3;
constexpr double kClearlyMore = 1.5;
constexpr double kEnoughSeconds = 4e-3;  // of runs of one candidate

/// A run that fails here only means that the candidate is none.
void ignore_error(tutti_error_sink *, int32_t, const char *) {}

int64_t image_bytes(const ConvolutionShape &s, bool input) {
  const int64_t positions = input ? s.in_height * s.in_width : s.out_height * s.out_width;
  return s.rows * positions * (input ? s.in_channels : s.out_channels) * static_cast<int64_t>(sizeof(float));
}

struct OneOpenMpThread {
  OneOpenMpThread() : before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneOpenMpThread() { omp_set_num_threads(before); }
  OneOpenMpThread(const OneOpenMpThread &) = delete;
  OneOpenMpThread &operator=(const OneOpenMpThread &) = delete;
  int before;
};

/// The candidate's operands: numbers in the order input, kernel, output, but the one that the pass computes.
struct Operands {
  enum Index { input, kernel, output, scratch, count };
  void *pointers[count] = {};

  Operands(const ConvolutionRequest &request, const ConvolutionPlan &plan, int64_t kernel_bytes, TimingMemory &memory) {
    const int64_t bytes[3] = {base::round_up_aligned(image_bytes(request.shape, true)),
                              base::round_up_aligned(kernel_bytes),
                              base::round_up_aligned(image_bytes(request.shape, false))};
    const Index results[] = {output, input, kernel};
    const Index result = results[static_cast<size_t>(request.pass)];
    auto *from = static_cast<char *>(memory.numbers(bytes[0] + bytes[1] + bytes[2] - bytes[result]));
    for (const Index index : {input, kernel, output}) {
      if (index == result) continue;
      pointers[index] = from;
      from += bytes[index];
    }
    pointers[result] = memory.results(bytes[result] + base::round_up_aligned(plan.scratch_bytes()));
    pointers[scratch] = static_cast<char *>(pointers[result]) + bytes[result];
  }
};

}  // namespace

TimingMemory::~TimingMemory() {
  std::free(numbers_.memory);
  std::free(results_.memory);
}

void TimingMemory::grow(Block &block, int64_t bytes) {
  if (bytes <= block.bytes) return;
  std::free(block.memory);
  block = {};
  block.memory = std::aligned_alloc(base::kAlignment, static_cast<size_t>(base::round_up_aligned(bytes)));
  if (block.memory == nullptr) throw std::bad_alloc();
  block.bytes = base::round_up_aligned(bytes);
}

void *TimingMemory::numbers(int64_t bytes) {
  const int64_t before = numbers_.bytes;
  grow(numbers_, bytes);
  if (numbers_.bytes == before) return numbers_.memory;
  auto *to = static_cast<float *>(numbers_.memory);
  const int64_t n = numbers_.bytes / static_cast<int64_t>(sizeof(float));
  uint32_t state = 1;
  for (int64_t i = 0; i < std::min(n, kPattern); ++i) {
    state = state * 1664525u + 1013904223u;
    to[i] = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  }
  for (int64_t i = kPattern; i < n; i += kPattern) {
    std::memcpy(to + i, to, static_cast<size_t>(std::min(kPattern, n - i)) * sizeof(float));
  }
  return to;
}

void *TimingMemory::results(int64_t bytes) {
  const int64_t before = results_.bytes;
  grow(results_, bytes);
  if (results_.bytes != before) std::memset(results_.memory, 0, static_cast<size_t>(results_.bytes));
  return results_.memory;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

const tutti_backend_host &quiet_host() {
  static const tutti_backend_host host = [] {
    tutti_backend_host made{};
    made.struct_size = sizeof(made);
    made.set_error = ignore_error;
    return made;
  }();
  return host;
}

double least_seconds(const std::function<void()> &run) {
  const FloatingPointMode mode;
  const OneOpenMpThread one_thread;
  double least = 0, spent = 0;
  for (int i = 0; i <= kRuns && (i < 2 || spent < kEnoughSeconds); ++i) {
    const double start = thread_seconds();
    run();
    const double seconds = thread_seconds() - start;
    spent += i > 0 ? seconds : 0;
    least = i <= 1 ? seconds : std::min(least, seconds);
  }
  return least;
}

std::optional<double> time_candidate(const ConvolutionCandidate &candidate, double best_seconds, TimingMemory &memory) {
  const ConvolutionShape &s = candidate.request.shape;
  // What several threads do is cut from what one does: the order of candidates is that of one thread.
  ConvolutionCandidate alone = candidate;
  alone.request.threads = 1;
  const Result<ConvolutionPlanPointer> plan = make_plan(alone, "", {});
  if (!plan.ok()) return std::nullopt;
  const Result<int64_t> kernel_bytes = kernel_storage_bytes(
      (*plan)->kernel_layout(), {s.kernel_height, s.kernel_width, s.in_channels / s.groups, s.out_channels});
  if (!kernel_bytes.ok()) return std::nullopt;
  const Operands operands(candidate.request, **plan, *kernel_bytes, memory);
  const std::unique_ptr<Kernel> kernel =
      (*plan)->kernel({Operands::input, Operands::kernel, -1, Operands::output, Operands::scratch});
  const Result<std::unique_ptr<KernelState>> state = kernel->make_state();
  if (!state.ok()) return std::nullopt;
  const FloatingPointMode mode;
  const OneOpenMpThread one_thread;
  RunContext context;
  context.buffers = operands.pointers;
  context.host = &quiet_host();
  double least = 0, spent = 0;
  for (int run = 0; run <= kRuns; ++run) {
    const double start = thread_seconds();
    if (kernel->run(context, state->get()) != 0) return std::nullopt;
    const double seconds = thread_seconds() - start;
    spent += seconds;
    least = run <= 1 ? seconds : std::min(least, seconds);
    // The first run also pays for caches and pages, so it has to be worse by more.
    if (seconds > (run == 0 ? 2 * kClearlyMore : kClearlyMore) * best_seconds) break;
    if (run > 0 && spent > kEnoughSeconds) break;
  }
  return least;
}

double time_reorder(TimingMemory &memory) {
  constexpr int64_t kRows = 4, kPositions = 56 * 56, kChannels = 64;
  constexpr int64_t kBytes = kRows * kPositions * kChannels * static_cast<int64_t>(sizeof(float));
  const auto *from = static_cast<const float *>(memory.numbers(kBytes));
  auto *to = static_cast<float *>(memory.results(kBytes));
  double least = 0;
  for (int run = 0; run <= kRuns; ++run) {
    const double start = thread_seconds();
    to_blocked(kRows, kPositions, kChannels, from, to);
    const double seconds = thread_seconds() - start;
    least = run <= 1 ? seconds : std::min(least, seconds);
  }
  return least / static_cast<double>(kBytes);
}

}  // namespace tutti::impl::backend::cpu
