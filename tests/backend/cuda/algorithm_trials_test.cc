// SPDX-License-Identifier: Apache-2.0
//
// The fastest algorithm is found by trials, once for a kind of GPU: in a process, and by the plan cache in the next.
// Libraries and runtime are replaced by what works on the host's memory, and time passes as the test says.
#include "backend/gpu/library/algorithm_trials.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend/cuda/cublaslt_product.h"
#include "backend/cuda/host_cublaslt.h"
#include "backend/cuda/host_cudnn.h"
#include "backend/cuda/host_runtime.h"
#include "base/file.h"
#include "base/temporary_directory.h"
#include "testing.h"

namespace algorithm_trials_test {

using namespace tutti::impl;
using backend::PlanCache;
using backend::cuda::CublasLtProduct;
using backend::cuda::ProductShape;
using backend::gpu::AlgorithmTrials;
using backend::gpu::TrialMemory;
using tensor::DType;
using tutti::testing::host_cublaslt;
using tutti::testing::host_cudnn;
using tutti::testing::host_runtime;
using tutti::testing::TemporaryDirectory;

namespace {

int64_t allocated = 0, most_allocated = 0;
bool has_memory = true;
std::vector<std::string> lines;

TrialMemory memory() {
  return {[](int64_t bytes) -> base::Result<void *> {
            if (!has_memory) return base::resource_exhausted("no memory");
            allocated += bytes;
            most_allocated = std::max(most_allocated, allocated);
            return std::aligned_alloc(256, static_cast<size_t>((bytes + 255) / 256 * 256));
          },
          [](void *pointer, int64_t bytes) {
            allocated -= bytes;
            std::free(pointer);
          }};
}

/// The trials of one compilation, whose candidates take so many milliseconds; -1: it cannot.
struct Compilation {
  AlgorithmTrials trials;
  std::vector<int> calls;

  explicit Compilation(const std::string &folder = "", const std::string &gpu = "a GPU")
      : trials(PlanCache(folder, {"gpu", gpu, "1"}), memory(), [](const std::string &line) { lines.push_back(line); }) {
  }

  size_t fastest(const std::string &shape, const std::vector<double> &milliseconds) {
    std::vector<std::string> names;
    for (size_t i = 0; i < milliseconds.size(); ++i)
      names.push_back("candidate " + std::to_string(i));
    calls.assign(milliseconds.size(), 0);
    return trials.fastest(shape, names, 1000, [&](size_t i, char *operands, gpuStream_t) -> base::Status {
      ++calls[i];
      assert_true(std::all_of(operands, operands + 1000, [](char byte) { return byte == 0; }));
      if (milliseconds[i] < 0) return base::internal_error("it cannot");
      host_cudnn().milliseconds += milliseconds[i];
      return base::Status();
    });
  }
};

void the_fastest_is_taken(void **) {
  AlgorithmTrials::forget();
  Compilation compilation;
  assert_int_equal(compilation.fastest("x", {3, 2, 2.5}), 1);
  assert_int_equal(compilation.fastest("y", {1, -1, 5}), 0);
  // What is far slower is not run again.
  assert_true(compilation.calls[0] > compilation.calls[2] && compilation.calls[1] == 1);
  assert_int_equal(compilation.fastest("z", {-1, -1}), 0);
  assert_string_equal(compilation.trials.known("x")->c_str(), "candidate 1");
  assert_false(compilation.trials.known("another").has_value());
  assert_int_equal(compilation.trials.measured_count(), 2);
}

void answers_stay(void **) {
  AlgorithmTrials::forget();
  Compilation first, second;
  assert_int_equal(first.fastest("x", {3, 2}), 1);
  assert_int_equal(second.fastest("x", {1, 2}), 1);
  assert_int_equal(second.calls[0], 0);
  // With one candidate there is nothing to try; with a spent budget nothing is tried. The answer stays all the same.
  assert_int_equal(first.fastest("alone", {1}), 0);
  assert_int_equal(first.calls[0], 0);
  first.trials.spend(AlgorithmTrials::kBudgetSeconds);
  assert_false(first.trials.may_measure());
  assert_int_equal(first.fastest("late", {3, 2}), 0);
  assert_int_equal(second.fastest("late", {3, 2}), 0);
  assert_int_equal(second.calls[0], 0);
  // GPUs of another kind have their own.
  Compilation other("", "another GPU");
  assert_int_equal(other.fastest("x", {1, 2}), 0);
  assert_true(other.calls[0] > 0);
}

void the_plan_cache_remembers(void **) {
  const TemporaryDirectory directory;
  AlgorithmTrials::forget();
  {
    Compilation compilation(directory.path());
    assert_int_equal(compilation.fastest("x", {3, 2}), 1);
    assert_int_equal(compilation.fastest("single", {3}), 0);
    compilation.trials.remember();
  }
  AlgorithmTrials::forget();
  Compilation next(directory.path()), other(directory.path(), "another GPU");
  assert_int_equal(next.fastest("x", {1, 2}), 1);
  assert_int_equal(next.calls[0], 0);
  assert_int_equal(next.trials.measured_count(), 0);
  assert_false(next.trials.known("single").has_value());
  assert_false(other.trials.known("x").has_value());
  // A name that the library does not offer any more: its first choice.
  std::vector<std::string> names = {"new", "newer"};
  const auto issue = [](size_t, char *, gpuStream_t) { return base::internal_error("not to be tried"); };
  assert_int_equal(next.trials.fastest("x", names, 0, issue), 0);
  // A folder that cannot be written costs a line.
  assert_ok(base::write_file_atomically(directory / "file", "x"));
  Compilation unlucky(directory / "file/folder");
  assert_int_equal(unlucky.fastest("x", {3, 2}), 1);
  lines.clear();
  unlucky.trials.remember();
  assert_int_equal(lines.size(), 1);
}

void without_memory_the_first_is_taken(void **) {
  AlgorithmTrials::forget();
  has_memory = false;
  lines.clear();
  Compilation compilation;
  assert_int_equal(compilation.fastest("x", {3, 2}), 0);
  assert_int_equal(lines.size(), 1);
  has_memory = true;
  assert_int_equal(compilation.calls[0], 0);
}

// ---- the libraries ----

/// The product that is made: the algorithm by the time that a call takes.
double product_milliseconds(const ProductShape &shape, AlgorithmTrials *trials) {
  const auto product = assert_ok_value(CublasLtProduct::make(host_cublaslt().functions, nullptr, shape, 4096, trials));
  std::vector<double> a(1000), b(1000), y(1000), scratch(1000);
  const double before = host_cublaslt().milliseconds;
  assert_ok(product->issue(nullptr, {a.data(), b.data(), y.data(), y.data(), a.data()}, scratch.data(), nullptr));
  return host_cublaslt().milliseconds - before;
}

void products_take_the_fastest(void **) {
  AlgorithmTrials::forget();
  // What the library thinks less of than of eight others is not tried.
  host_cublaslt().algorithms = 10;
  host_cublaslt().algorithm_milliseconds = {{0, 8}, {1, 7}, {2, 4}, {3, 6}, {4, 9},
                                            {5, 8}, {6, 7}, {7, 9}, {8, 1}, {9, 1}};
  ProductShape shape{DType::f32, 8, 9, 7};
  assert_true(product_milliseconds(shape, nullptr) == 8);
  Compilation compilation;
  most_allocated = 0;
  assert_true(product_milliseconds(shape, &compilation.trials) == 4);
  assert_in_range(most_allocated, 4 * (8 * 7 + 7 * 9 + 8 * 9) + 1000, 4 * (8 * 7 + 7 * 9 + 8 * 9) + 1000 + 4 * 256);
  // Batches, another dtype, what follows: shapes of their own, with memory for all operands.
  shape.batches = 3;
  shape.a_step = 8 * 7;
  shape.y_step = 8 * 9;
  assert_true(product_milliseconds(shape, &compilation.trials) == 4);
  shape.dtype = DType::bf16;
  shape.result = DType::f32;
  shape.has_addend = shape.has_bias = shape.has_gelu = true;
  assert_true(product_milliseconds(shape, &compilation.trials) == 4);
  assert_int_equal(compilation.trials.measured_count(), 3);
  const int calls = host_cublaslt().calls;
  assert_true(product_milliseconds(shape, &compilation.trials) == 4);
  assert_int_equal(host_cublaslt().calls, calls + 1);
  host_cublaslt().algorithms = 1;
  assert_int_equal(host_cublaslt().descriptors, 0);
}

void nothing_is_left_over(void **) {
  assert_int_equal(allocated, 0);
  assert_int_equal(host_runtime().objects, 0);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_fastest_is_taken),      cmocka_unit_test(answers_stay),
      cmocka_unit_test(the_plan_cache_remembers),  cmocka_unit_test(without_memory_the_first_is_taken),
      cmocka_unit_test(products_take_the_fastest), cmocka_unit_test(nothing_is_left_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace algorithm_trials_test
