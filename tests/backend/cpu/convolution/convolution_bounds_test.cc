// SPDX-License-Identifier: Apache-2.0
//
// Convolutions stay within the memory they are given: generated code, the library's as well, escapes what compilers
// check. Every candidate for shapes with odd sizes runs between guards of NaN, which it must neither write nor let into
// its results, and leaves its operands as they are. None but the last resort unfolds images.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/convolution/convolution_choice.h"
#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/simd/simd_testing.h"
#include "testing.h"

namespace convolution_bounds_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT
namespace base = tutti::impl::base;

/// Floats between two guards.
class Guarded {
 public:
  Guarded(int64_t floats, uint64_t seed)
      : floats_(static_cast<size_t>(floats)), memory_(floats + 2 * kGuard), before_(noise(floats, seed)) {
    std::fill_n(memory_.memory.get(), floats_ + 2 * kGuard, std::numeric_limits<float>::quiet_NaN());
    std::copy(before_.begin(), before_.end(), data());
  }

  float *data() const { return memory_.memory.get() + kGuard; }
  bool is_unchanged() const { return std::memcmp(data(), before_.data(), floats_ * sizeof(float)) == 0; }
  bool is_finite() const {
    return std::all_of(data(), data() + floats_, [](float value) { return std::isfinite(value); });
  }
  /// Floats from the first to the last one that was written outside.
  int64_t escapes() const {
    int64_t reach = 0;
    for (int64_t i = 0; i < kGuard; ++i) {
      if (!std::isnan(memory_.memory.get()[i])) reach = std::max(reach, kGuard - i);
      if (!std::isnan(data()[static_cast<int64_t>(floats_) + i])) reach = std::max(reach, i + 1);
    }
    return reach;
  }

 private:
  static constexpr int64_t kGuard = 4096;

  size_t floats_;
  Scratch memory_;
  std::vector<float> before_;
};

struct Guards {
  Guarded input, kernel, bias, output, scratch;
  const Guarded *result = nullptr;

  Guards(const ConvolutionShape &s, ConvolutionPass pass, int64_t kernel_floats, int64_t scratch_floats)
      : input(s.rows * s.in_height * s.in_width * s.in_channels, 1),
        kernel(kernel_floats, 2),
        bias(s.out_channels, 3),
        output(s.rows * s.out_height * s.out_width * s.out_channels, 4),
        scratch(scratch_floats, 5),
        result(pass == ConvolutionPass::forward          ? &output
               : pass == ConvolutionPass::input_gradient ? &input
                                                         : &kernel) {}

  /// What is wrong after the convolution; empty when nothing is.
  std::string complaint() const {
    const std::pair<const char *, const Guarded *> all[] = {
        {"input", &input}, {"kernel", &kernel}, {"bias", &bias}, {"output", &output}, {"scratch", &scratch}};
    for (const auto &[name, memory] : all) {
      if (memory->escapes() > 0) return base::concat(name, " was left by ", memory->escapes(), " floats");
    }
    for (const Guarded *operand : {&input, &kernel, &output}) {
      if (operand != result && !operand->is_unchanged()) return "an operand was changed";
    }
    return result->is_finite() ? std::string() : "the result has what lies outside";
  }
};

base::Result<std::string> run(const ConvolutionCandidate &candidate) {
  const ConvolutionShape &s = candidate.request.shape;
  const ConvolutionPass pass = candidate.request.pass;
  ConvolutionEpilogue epilogue;
  epilogue.bias = pass != ConvolutionPass::input_gradient;
  TUTTI_ASSIGN(const ConvolutionPlanPointer plan, make_plan(candidate, "", epilogue));
  TUTTI_ASSIGN(const int64_t bytes,
               kernel_storage_bytes(plan->kernel_layout(),
                                    {s.kernel_height, s.kernel_width, s.in_channels / s.groups, s.out_channels}));
  const Guards guards(s, pass, bytes / 4, (plan->scratch_bytes() + 3) / 4);
  void *buffers[] = {guards.input.data(), guards.kernel.data(), guards.bias.data(), guards.output.data(),
                     guards.scratch.data()};
  RunContext context;
  context.buffers = buffers;
  context.threads = candidate.request.threads;
  const std::unique_ptr<Kernel> kernel = plan->kernel({0, 1, epilogue.bias ? 2 : -1, 3, 4});
  TUTTI_ASSIGN(const std::unique_ptr<KernelState> state, kernel->make_state());
  assert_int_equal(kernel->run(context, state.get()), 0);
  std::string complaint = guards.complaint();
  if (!candidate.family->is_last_resort && plan->implementation().find("gemm:") != std::string::npos)
    complaint = "images are unfolded";
  return complaint.empty() ? complaint : base::concat(plan->implementation(), ": ", complaint);
}

ConvolutionShape shape_of(int64_t rows, int64_t size, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                          int64_t pad, int64_t groups) {
  ConvolutionShape s;
  s.rows = rows;
  s.in_height = size;
  s.in_width = size + 2;
  s.in_channels = in;
  s.out_channels = out;
  s.groups = groups;
  s.kernel_height = s.kernel_width = kernel;
  for (int axis = 0; axis < 2; ++axis) {
    s.stride[axis] = stride;
    s.pad_low[axis] = pad;
    int64_t &length = axis == 0 ? s.out_height : s.out_width;
    length = (size + 2 * axis + 2 * pad - kernel) / stride + 1;
    s.pad_high[axis] = (length - 1) * stride + kernel - size - 2 * axis - pad;
  }
  return s;
}

struct Counts {
  int run = 0, bad = 0;
};

void check_shape(const ConvolutionShape &s, Counts &counts) {
  for (const auto pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::kernel_gradient}) {
    for (const ConvolutionCandidate &candidate : convolution_candidates(s, pass, TUTTI_LEVEL_FAST, 1)) {
      const base::Result<std::string> complaint = run(candidate);
      if (!complaint.ok()) {
        assert_int_equal(complaint.status().code(), base::Code::unimplemented);
        continue;
      }
      ++counts.run;
      if (complaint->empty()) continue;
      ++counts.bad;
      print_error("%s %s of %dx%dx%dx%d, %dx%d to %d, stride %d, pad %d, %d groups: %s\n", label(candidate).c_str(),
                  std::string(name(pass)).c_str(), static_cast<int>(s.rows), static_cast<int>(s.in_height),
                  static_cast<int>(s.in_width), static_cast<int>(s.in_channels), static_cast<int>(s.kernel_height),
                  static_cast<int>(s.kernel_width), static_cast<int>(s.out_channels), static_cast<int>(s.stride[0]),
                  static_cast<int>(s.pad_low[0]), static_cast<int>(s.groups), complaint->c_str());
    }
  }
}

void convolutions_stay_within_their_memory(void **) {
  Counts counts;
  for (const int64_t in : {1, 3, 4, 12, 16, 20, 32}) {
    for (const int64_t out : {1, 4, 10, 16, 48}) {
      for (const int64_t kernel : {1, 3, 5}) {
        for (const int64_t stride : {1, 2}) {
          // A stride leaves the last line, or not.
          for (const int64_t size : {11, 12}) {
            check_shape(shape_of(2, size, in, out, kernel, stride, 0, 1), counts);
            if (kernel > 1) check_shape(shape_of(2, size, in, out, kernel, stride, kernel / 2, 1), counts);
          }
        }
      }
    }
  }
  for (const int64_t channels : {4, 8, 12, 32}) {
    for (const int64_t groups : {int64_t{2}, channels}) {
      for (const int64_t stride : {1, 2})
        check_shape(shape_of(2, 11, channels, channels, 3, stride, 1, groups), counts);
    }
  }
  for (const int64_t out : {128, 150})
    check_shape(shape_of(3, 11, 130, out, 1, 1, 0, 1), counts);
  print_message("%d convolutions\n", counts.run);
  assert_true(counts.run > 1000);
  assert_int_equal(counts.bad, 0);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {cmocka_unit_test(convolutions_stay_within_their_memory)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace convolution_bounds_test
