// SPDX-License-Identifier: Apache-2.0
//
// Timing of convolutions and products on scratch memory: what a candidate takes on random numbers, by the processor
// time of the calling thread, so that other work on the machine counts little.
//
//   TimingMemory memory;
//   std::optional<double> seconds = time_candidate(candidate, infinity, memory);   // none: there is no such plan
//
// Never on the path of a request: only where layouts of state are planned (plan_layouts.h).
#ifndef TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_TIMING_H_
#define TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_TIMING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "backend/cpu/convolution/convolution_choice.h"

namespace tutti::impl::backend::cpu {

/// Memory for operands, kept from one candidate to the next. One thread.
class TimingMemory {
 public:
  TimingMemory() = default;
  TimingMemory(const TimingMemory &) = delete;
  TimingMemory &operator=(const TimingMemory &) = delete;
  ~TimingMemory();

  /// `bytes` of random floats in [-0.5, 0.5).
  void *numbers(int64_t bytes);
  /// `bytes` of anything, apart from numbers().
  void *results(int64_t bytes);

 private:
  struct Block {
    void *memory = nullptr;
    int64_t bytes = 0;
  };
  static void grow(Block &block, int64_t bytes);

  Block numbers_, results_;
};

/// Processor time of the calling thread in seconds.
double thread_seconds();

/// For kernels that are timed: an error only means that it is no candidate.
const tutti_backend_host &quiet_host();

/// Seconds of one call of `run`: the least of up to three after one to warm up, fewer when they are long. Libraries and
/// arithmetic as in programs.
double least_seconds(const std::function<void()> &run);

/// Seconds of one run of the candidate's request: the least of up to three after one to warm up; fewer when they are
/// long, or when it is clear that it takes more than `best_seconds`. No value when there is no plan for it.
std::optional<double> time_candidate(const ConvolutionCandidate &candidate, double best_seconds, TimingMemory &memory);

/// Seconds for each byte of an image to be copied from row-major to blocked layout.
double time_reorder(TimingMemory &memory);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_TIMING_H_
