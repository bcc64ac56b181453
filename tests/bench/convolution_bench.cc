// SPDX-License-Identifier: Apache-2.0
//
// Effective GF/s (those of the plain sums) of 3x3 convolutions on one thread, by shape, pass and implementation: oneDNN
// direct, oneDNN Winograd where it has that, our Winograd, oneDNN direct with factors rounded to bfloat16 (copies
// included) where the processor multiplies in it; all on images in blocks of 16 channels.
//
//   convolution_bench [--rounds R] [--milliseconds M] [N:CHANNELS[:OUT]@SIZE ...]
//
// Implementations take turns of M milliseconds of thread time; printed is the median of R rounds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/convolution/winograd_convolution.h"
#include "backend/cpu/dnnl/dnnl_convolution.h"
#include "backend/cpu/kernel/floating_point_mode.h"

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Aligned memory with small values that repeat.
struct Memory {
  explicit Memory(int64_t bytes)
      : data(std::aligned_alloc(64, static_cast<size_t>((bytes + 127) / 64 * 64)), std::free) {
    uint32_t seed = 1;
    for (int64_t i = 0; i < bytes / 4; ++i) {
      seed = seed * 1664525 + 1013904223;
      static_cast<float *>(data.get())[i] = static_cast<float>(seed >> 8) * 0x1p-24f - 0.5f;
    }
  }
  std::unique_ptr<void, decltype(&std::free)> data;
};

class Candidate {
 public:
  using Plan = tutti::impl::base::Result<std::shared_ptr<const ConvolutionPlan>>;

  static std::unique_ptr<Candidate> make(const ConvolutionRequest &request, const Plan &plan) {
    if (!plan.ok()) return nullptr;
    auto made = std::make_unique<Candidate>();
    made->plan_ = *plan;
    const ConvolutionShape &s = request.shape;
    const auto kernel_bytes = kernel_storage_bytes((*plan)->kernel_layout(), {3, 3, s.in_channels, s.out_channels});
    if (!kernel_bytes.ok()) return nullptr;
    const int64_t sizes[] = {4 * s.rows * s.in_channels * s.in_height * s.in_width, *kernel_bytes, 4 * s.out_channels,
                             4 * s.rows * s.out_channels * s.out_height * s.out_width, (*plan)->scratch_bytes()};
    for (int64_t size : sizes) {
      made->memory_.emplace_back(size);
      made->pointers_.push_back(made->memory_.back().data.get());
    }
    made->kernel_ = (*plan)->kernel({0, 1, request.epilogue.bias ? 2 : -1, 3, 4});
    auto state = made->kernel_->make_state();
    if (!state.ok()) return nullptr;
    made->state_ = std::move(state).value();
    return made;
  }

  void round(double seconds) {
    RunContext context;
    context.buffers = pointers_.data();
    const double start = thread_seconds();
    double taken = 0;
    int runs = 0;
    for (; taken < seconds; ++runs) {
      if (kernel_->run(context, state_.get()) != 0) std::exit(1);
      taken = thread_seconds() - start;
    }
    times_.push_back(taken / runs);
  }

  double median() {
    std::sort(times_.begin(), times_.end());
    return times_[times_.size() / 2];
  }

 private:
  std::vector<double> times_;
  std::shared_ptr<const ConvolutionPlan> plan_;
  std::vector<Memory> memory_;
  std::vector<void *> pointers_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<KernelState> state_;
};

std::optional<ConvolutionShape> parse(const char *text) {
  long long rows = 0, in = 0, out = 0, size = 0;
  if (std::sscanf(text, "%lld:%lld:%lld@%lld", &rows, &in, &out, &size) != 4) {
    if (std::sscanf(text, "%lld:%lld@%lld", &rows, &in, &size) != 3) return std::nullopt;
    out = in;
  }
  ConvolutionShape s;
  s.rows = rows;
  s.in_channels = in;
  s.out_channels = out;
  s.in_height = s.in_width = s.out_height = s.out_width = size;
  s.kernel_height = s.kernel_width = 3;
  s.pad_low[0] = s.pad_low[1] = s.pad_high[0] = s.pad_high[1] = 1;
  return s;
}

void measure(const char *text, const ConvolutionShape &shape, int rounds, double seconds) {
  const char *const passes[] = {"forward", "input_gradient", "kernel_gradient"};
  for (int pass = 0; pass < 3; ++pass) {
    ConvolutionRequest request;
    request.shape = shape;
    request.pass = static_cast<ConvolutionPass>(pass);
    request.kernel_layout = "any";
    request.blocked_input = request.blocked_output = true;
    request.epilogue.bias = pass != 1;
    std::vector<std::unique_ptr<Candidate>> candidates;
    candidates.push_back(Candidate::make(request, ConvolutionPlan::make(request)));
    request.winograd = true;
    candidates.push_back(Candidate::make(request, ConvolutionPlan::make(request)));
    candidates.push_back(Candidate::make(request, make_winograd_plan(request)));
    request.winograd = false;
    request.bf16 = true;
    candidates.push_back(Candidate::make(request, ConvolutionPlan::make(request)));
    for (int round = 0; round < rounds; ++round) {
      for (const auto &candidate : candidates) {
        if (candidate != nullptr) candidate->round(seconds);
      }
    }
    const double flops = 18e-9 * static_cast<double>(shape.rows * shape.in_channels * shape.out_channels *
                                                     shape.out_height * shape.out_width);
    std::printf("| %-14s | %-15s |", text, passes[pass]);
    for (const auto &candidate : candidates)
      candidate == nullptr ? void(std::printf("     - |")) : void(std::printf(" %5.0f |", flops / candidate->median()));
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char **argv) {
  int rounds = 7;
  double seconds = 0.05;
  std::vector<const char *> shapes;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--milliseconds") == 0 && i + 1 < argc) {
      seconds = std::atof(argv[++i]) * 1e-3;
    } else if (parse(argv[i])) {
      shapes.push_back(argv[i]);
    } else {
      std::fprintf(stderr, "usage: %s [--rounds R] [--milliseconds M] [N:CHANNELS[:OUT]@SIZE ...]\n", argv[0]);
      return 2;
    }
  }
  if (shapes.empty()) {
    shapes = {"16:64@56", "16:128@28", "16:256@14", "16:512@7", "32:64@32", "32:128@16", "32:256@8",
              "32:512@4", "32:32@32",  "8:64@56",   "8:256@14", "1:64@56",  "1:256@14",  "64:32:64@26"};
  }
  const FloatingPointMode mode;
  std::printf("| N:channels@size | pass | %s direct | %s Winograd | ours | direct, bf16 |\n|---|---|---|---|---|---|\n",
              dnnl_version_text().c_str(), dnnl_version_text().c_str());
  for (const char *text : shapes)
    measure(text, *parse(text), rounds, seconds);
  return 0;
}
