// SPDX-License-Identifier: Apache-2.0
//
// Winograd plans: what they refuse, and that threads and layouts of the kernel change no result. What they compute is
// compared with plain sums in simd_winograd_test, with the reference backend in the conformance suite.
#include "backend/cpu/convolution/winograd_convolution.h"

#include <memory>
#include <vector>

#include "backend/cpu/simd/simd_testing.h"
#include "testing.h"

namespace winograd_convolution_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT
using tutti::impl::base::Code;

ConvolutionRequest request_of(int64_t rows, int64_t in, int64_t out, int64_t size) {
  ConvolutionRequest request;
  ConvolutionShape &s = request.shape;
  s.rows = rows;
  s.in_channels = in;
  s.out_channels = out;
  s.in_height = s.in_width = s.out_height = s.out_width = size;
  s.kernel_height = s.kernel_width = 3;
  s.pad_low[0] = s.pad_low[1] = s.pad_high[0] = s.pad_high[1] = 1;
  request.kernel_layout = "any";
  request.blocked_input = request.blocked_output = true;
  return request;
}

/// Input, kernel, bias, output: the operands are noise, the results are overwritten.
std::vector<std::vector<float>> run(const ConvolutionRequest &request) {
  const ConvolutionShape &s = request.shape;
  const auto plan = make_winograd_plan(request);
  assert_ok(plan);
  std::vector<std::vector<float>> arrays = {noise(s.rows * s.in_channels * s.in_height * s.in_width, 1),
                                            noise(9 * s.in_channels * s.out_channels, 2), noise(s.out_channels, 3),
                                            noise(s.rows * s.out_channels * s.out_height * s.out_width, 4)};
  const Scratch scratch((*plan)->scratch_bytes() / 4);
  void *buffers[] = {arrays[0].data(), arrays[1].data(), arrays[2].data(), arrays[3].data(), scratch.memory.get()};
  RunContext context;
  context.buffers = buffers;
  context.threads = request.threads;
  const std::unique_ptr<Kernel> kernel = (*plan)->kernel({0, 1, 2, 3, 4});
  assert_int_equal(kernel->run(context, nullptr), 0);
  return arrays;
}

void threads_change_no_bit(void **) {
  cut_everything = true;
  for (const auto pass :
       {ConvolutionPass::forward, ConvolutionPass::input_gradient, ConvolutionPass::kernel_gradient}) {
    // Many tiles and few, more channels on either side.
    for (ConvolutionRequest request :
         {request_of(5, 48, 96, 22), request_of(2, 160, 64, 5), request_of(1, 32, 32, 9)}) {
      request.pass = pass;
      if (pass == ConvolutionPass::forward) request.epilogue = {true, true, true};
      const auto alone = run(request);
      for (int32_t threads : {2, 3, 4}) {
        request.threads = threads;
        assert_true(run(request) == alone);
      }
    }
  }
  cut_everything = false;
}

void others_are_refused(void **) {
  const auto expect_refused = [](const ConvolutionRequest &request) {
    assert_int_equal(make_winograd_plan(request).code(), Code::unimplemented);
  };
  const ConvolutionRequest good = request_of(1, 32, 32, 8);
  assert_ok(make_winograd_plan(good));
  ConvolutionRequest bad = good;
  bad.shape.stride[1] = 2;
  expect_refused(bad);
  bad = good;
  bad.shape.dilation[0] = 2;
  expect_refused(bad);
  bad = good;
  bad.shape.kernel_width = 5;
  expect_refused(bad);
  bad = good;
  bad.shape.groups = 2;
  expect_refused(bad);
  bad = good;
  bad.shape.in_channels = 24;
  expect_refused(bad);
  bad = good;
  bad.shape.pad_high[1] = 3;
  expect_refused(bad);
  bad = good;
  bad.kernel_layout = "conv/abcd";
  expect_refused(bad);
}

void kernels_lie_as_asked(void **) {
  ConvolutionRequest request = request_of(2, 32, 48, 6);
  assert_string_equal((*make_winograd_plan(request))->kernel_layout().c_str(), "conv/ABcd16b16a");
  request.pass = ConvolutionPass::kernel_gradient;
  const auto blocked = run(request);
  request.kernel_layout = "";
  assert_string_equal((*make_winograd_plan(request))->kernel_layout().c_str(), "");
  const auto plain = run(request);
  std::vector<float> turned(plain[1].size());
  assert_ok(reorder_kernel("conv/ABcd16b16a", "", {3, 3, 32, 48}, blocked[1].data(), turned.data()));
  assert_true(turned == plain[1]);
  assert_true(blocked[2] == plain[2]);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(threads_change_no_bit),
      cmocka_unit_test(others_are_refused),
      cmocka_unit_test(kernels_lie_as_asked),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace winograd_convolution_test
