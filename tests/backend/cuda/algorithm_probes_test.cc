// SPDX-License-Identifier: Apache-2.0
//
// Algorithms that keep a NaN are told from those that do not by a call, once for a kind of GPU: in a process, and by
// the plan cache in the next. Libraries and runtime are replaced by what works on the host's memory.
#include "backend/gpu/library/algorithm_probes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cublaslt_product.h"
#include "backend/cuda/host_cublaslt.h"
#include "backend/cuda/host_runtime.h"
#include "base/temporary_directory.h"
#include "testing.h"

namespace algorithm_probes_test {

using namespace tutti::impl;
using backend::PlanCache;
using backend::cuda::CublasLtProduct;
using backend::cuda::ProductShape;
using backend::gpu::AlgorithmProbes;
using backend::gpu::AlgorithmTrials;
using backend::gpu::NanProbe;
using backend::gpu::TrialMemory;
using tensor::DType;
using tutti::testing::host_cublaslt;
using tutti::testing::host_runtime;
using tutti::testing::TemporaryDirectory;

namespace {

int64_t allocated = 0;
bool has_memory = true;
std::vector<std::string> lines;

TrialMemory memory() {
  return {[](int64_t bytes) -> base::Result<void *> {
            if (!has_memory) return base::resource_exhausted("no memory");
            allocated += bytes;
            return std::aligned_alloc(256, static_cast<size_t>((bytes + 255) / 256 * 256));
          },
          [](void *pointer, int64_t bytes) {
            allocated -= bytes;
            std::free(pointer);
          }};
}

void log_line(const std::string &line) { lines.push_back(line); }

PlanCache cache(const std::string &folder, const std::string &gpu = "a GPU") { return {folder, {"gpu", gpu, "1"}}; }

/// The probes of one compilation.
struct Compilation {
  AlgorithmProbes probes;

  explicit Compilation(const std::string &folder = "", const std::string &gpu = "a GPU")
      : probes(cache(folder, gpu), memory(), log_line) {}
};

enum class Writes { nan, numbers, nothing, fails };

/// An algorithm that leaves NaNs in a result of 60 bytes, or something else.
bool keeps_nan(Compilation &compilation, const std::string &shape, const std::string &algorithm, Writes writes) {
  NanProbe probe{shape, algorithm, 1000, 256, 60, DType::f32, {}};
  bool is_prepared = true;
  probe.issue = [&](char *operands, gpuStream_t) -> base::Status {
    // What is read is NaN, what is written is not.
    for (int i = 0; i < 1000; ++i)
      is_prepared = is_prepared && static_cast<unsigned char>(operands[i]) == (i >= 256 && i < 316 ? 0 : 255);
    if (writes == Writes::fails) return base::internal_error("it cannot");
    if (writes == Writes::numbers) std::fill_n(reinterpret_cast<float *>(operands + 256), 15, 2.0f);
    if (writes == Writes::nan) std::fill_n(reinterpret_cast<float *>(operands + 256), 15, NAN);
    return base::Status();
  };
  const bool keeps = compilation.probes.keeps_nan(probe);
  assert_true(is_prepared);
  return keeps;
}

void a_nan_is_told_from_a_number(void **) {
  AlgorithmProbes::forget();
  Compilation compilation;
  assert_true(keeps_nan(compilation, "x", "0", Writes::nan));
  assert_false(keeps_nan(compilation, "x", "1", Writes::numbers));
  assert_false(keeps_nan(compilation, "x", "2", Writes::nothing));
  assert_int_equal(compilation.probes.probed_count(), 3);
  assert_int_equal(allocated, 0);
}

/// Whether results of bits are all NaN, each element once another: the type's NaNs, and what lies next to them.
template <typename Bits>
void check_bits(DType dtype, Bits infinity) {
  const Bits sign = static_cast<Bits>(~(static_cast<Bits>(~Bits{0}) >> 1));
  const std::pair<Bits, bool> kBits[] = {{static_cast<Bits>(infinity + 1), true},
                                         {static_cast<Bits>(~Bits{0}), true},
                                         {static_cast<Bits>(sign | (infinity + 1)), true},
                                         {infinity, false},
                                         {static_cast<Bits>(sign | infinity), false},
                                         {Bits{0}, false},
                                         {sign, false},
                                         {static_cast<Bits>(infinity - 1), false}};
  for (const auto &[bits, is_nan] : kBits) {
    for (size_t at = 0; at < 5; ++at) {
      AlgorithmProbes::forget();
      Compilation compilation;
      NanProbe probe{"bits", "0", 4096, 0, 5 * sizeof(Bits), dtype, {}};
      probe.issue = [&, odd = bits](char *operands, gpuStream_t) {
        std::memset(operands, 0xff, 5 * sizeof(Bits));
        std::memcpy(operands + at * sizeof(Bits), &odd, sizeof(Bits));
        return base::Status();
      };
      assert_int_equal(compilation.probes.keeps_nan(probe), is_nan);
    }
  }
}

void every_dtype_has_its_nan(void **) {
  check_bits<uint16_t>(DType::f16, 0x7c00);
  check_bits<uint16_t>(DType::bf16, 0x7f80);
  check_bits<uint32_t>(DType::f32, 0x7f800000);
  check_bits<uint64_t>(DType::f64, 0x7ff0000000000000);
}

/// Both ends of a large result are looked at, whatever its size.
void both_ends_are_looked_at(void **) {
  constexpr int64_t kEnd = AlgorithmProbes::kMostBytesOfAnEnd;
  for (const int64_t bytes : {kEnd - 4, kEnd, kEnd + 4, 3 * kEnd + 400}) {
    for (const int64_t odd :
         {int64_t{-1}, int64_t{0}, std::min(bytes, kEnd) - 4, bytes - std::min(bytes, kEnd), bytes - 4}) {
      AlgorithmProbes::forget();
      Compilation compilation;
      NanProbe probe{"large", "0", bytes, 0, bytes, DType::f32, {}};
      probe.issue = [&, odd](char *operands, gpuStream_t) {
        std::memset(operands, 0xff, static_cast<size_t>(bytes));
        if (odd >= 0) std::memset(operands + odd, 0, 4);
        return base::Status();
      };
      assert_int_equal(compilation.probes.keeps_nan(probe), odd < 0);
    }
  }
}

void answers_stay(void **) {
  AlgorithmProbes::forget();
  Compilation first, second;
  assert_true(keeps_nan(first, "x", "0", Writes::nan));
  assert_true(keeps_nan(second, "x", "0", Writes::numbers));
  assert_false(keeps_nan(first, "x", "1", Writes::numbers));
  assert_false(keeps_nan(second, "x", "1", Writes::nan));
  assert_int_equal(second.probes.probed_count(), 0);
  // Of another shape, or of GPUs of another kind, they are others.
  assert_true(keeps_nan(second, "y", "1", Writes::nan));
  Compilation other("", "another GPU");
  assert_false(keeps_nan(other, "x", "0", Writes::numbers));
}

void the_plan_cache_remembers(void **) {
  const TemporaryDirectory directory;
  AlgorithmProbes::forget();
  {
    Compilation compilation(directory.path());
    assert_true(keeps_nan(compilation, "x", "0", Writes::nan));
    compilation.probes.remember();
  }
  AlgorithmProbes::forget();
  {
    Compilation compilation(directory.path());
    assert_true(keeps_nan(compilation, "x", "0", Writes::numbers));
    // What is found out later joins it.
    assert_false(keeps_nan(compilation, "x", "1", Writes::numbers));
    compilation.probes.remember();
    assert_int_equal(compilation.probes.probed_count(), 1);
  }
  AlgorithmProbes::forget();
  Compilation next(directory.path()), other(directory.path(), "another GPU");
  assert_true(keeps_nan(next, "x", "0", Writes::numbers));
  assert_false(keeps_nan(next, "x", "1", Writes::nan));
  assert_int_equal(next.probes.probed_count(), 0);
  assert_false(keeps_nan(other, "x", "0", Writes::numbers));
}

/// The file is that of trials: neither loses what the other wrote, nor takes it for its own.
void trials_are_kept_beside_it(void **) {
  const TemporaryDirectory directory;
  const std::vector<std::string> names = {"0", "1"};
  const auto issue = [](size_t i, char *, gpuStream_t) {
    host_cublaslt().milliseconds += i == 0 ? 2 : 1;
    return base::Status();
  };
  AlgorithmTrials::forget();
  AlgorithmProbes::forget();
  {
    AlgorithmTrials trials(cache(directory.path()), memory(), log_line);
    Compilation compilation(directory.path());
    assert_int_equal(trials.fastest("x", names, 100, issue), 1);
    assert_true(keeps_nan(compilation, "x", "0", Writes::nan));
    trials.remember();
    compilation.probes.remember();
  }
  AlgorithmTrials::forget();
  AlgorithmProbes::forget();
  AlgorithmTrials trials(cache(directory.path()), memory(), log_line);
  Compilation compilation(directory.path());
  assert_string_equal(trials.known("x").value_or("").c_str(), "1");
  assert_true(keeps_nan(compilation, "x", "0", Writes::numbers));
  assert_false(keeps_nan(compilation, "x", "1", Writes::numbers));
  assert_int_equal(compilation.probes.probed_count(), 1);
}

/// A call that cannot be made is no answer for later processes; in this one it stays.
void what_cannot_be_probed_is_not_used(void **) {
  const TemporaryDirectory directory;
  for (const bool fails : {false, true}) {
    AlgorithmProbes::forget();
    lines.clear();
    {
      Compilation compilation(directory.path()), second(directory.path());
      has_memory = fails;
      assert_false(keeps_nan(compilation, "x", "0", fails ? Writes::fails : Writes::nan));
      has_memory = true;
      assert_false(keeps_nan(compilation, "x", "0", Writes::nan));
      assert_false(keeps_nan(second, "x", "0", Writes::nan));
      assert_int_equal(lines.size(), 1);
      assert_contains(lines[0].c_str(), fails ? "it cannot" : "no memory");
      compilation.probes.remember();
    }
    AlgorithmProbes::forget();
    Compilation next(directory.path());
    assert_true(keeps_nan(next, "x", "0", Writes::nan));
    assert_int_equal(allocated, 0);
  }
}

// ---- products ----

ProductShape relu_shape(DType dtype = DType::f32) {
  ProductShape shape{dtype, 3, 5, 4};
  shape.has_relu = shape.has_bias = true;
  return shape;
}

/// Which algorithm the product takes, by the milliseconds of a call; -1: there is no product.
int taken(const ProductShape &shape, AlgorithmTrials *trials, AlgorithmProbes *probes) {
  host_cublaslt().algorithms = 4;
  host_cublaslt().algorithm_milliseconds = {{0, 1000}, {1, 2000}, {2, 1500}, {3, 500}};
  const auto product =
      assert_ok_value(CublasLtProduct::make(host_cublaslt().functions, nullptr, shape, 4096, trials, probes));
  if (product == nullptr) return -1;
  std::vector<double> a(1000), b(1000), y(1000), c(1000), bias(1000), u(1000), scratch(1000);
  const double before = host_cublaslt().milliseconds;
  assert_ok(product->issue(nullptr, {a.data(), b.data(), y.data(), c.data(), bias.data(), nullptr, u.data(), u.data()},
                           scratch.data(), nullptr));
  const double milliseconds = host_cublaslt().milliseconds - before;
  for (const auto &[algorithm, each] : host_cublaslt().algorithm_milliseconds) {
    if (each == milliseconds) return static_cast<int>(algorithm);
  }
  return -2;
}

/// Without trials the first estimate among those that keep a NaN, with them the fastest.
void products_with_relu_keep_nan(void **) {
  struct Expected {
    std::set<uint64_t> droppers;
    int first, fastest;
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto &[droppers, first, fastest] :
         {Expected{{}, 0, 3}, {{3}, 0, 0}, {{0}, 1, 3}, {{0, 3}, 1, 2}, {{0, 1, 2}, 3, 3}, {{0, 1, 2, 3}, -1, -1}}) {
      host_cublaslt().nan_droppers = droppers;
      AlgorithmTrials::forget();
      AlgorithmProbes::forget();
      Compilation without, with;
      assert_int_equal(taken(relu_shape(dtype), nullptr, &without.probes), first);
      AlgorithmTrials trials(cache(""), memory(), log_line);
      assert_int_equal(taken(relu_shape(dtype), &trials, &with.probes), fastest);
      // No algorithm is asked twice.
      assert_int_equal(without.probes.probed_count() + with.probes.probed_count(), 4);
    }
  }
  host_cublaslt().nan_droppers.clear();
}

/// Batches, an addend, results of another dtype: the call is that of the product, with memory for all of it.
void every_kind_of_product_can_be_probed(void **) {
  for (const bool drops : {false, true}) {
    AlgorithmProbes::forget();
    Compilation compilation;
    host_cublaslt().nan_droppers = drops ? std::set<uint64_t>{0, 1, 2, 3} : std::set<uint64_t>();
    ProductShape shape = relu_shape(DType::bf16);
    shape.has_addend = true;
    assert_int_equal(taken(shape, nullptr, &compilation.probes), drops ? -1 : 0);
    shape.result = DType::f32;
    assert_int_equal(taken(shape, nullptr, &compilation.probes), drops ? -1 : 0);
    shape.has_bias = false;
    shape.batches = 3;
    shape.a_step = 12;
    shape.y_step = 15;
    assert_int_equal(taken(shape, nullptr, &compilation.probes), drops ? -1 : 0);
    assert_int_equal(compilation.probes.probed_count(), drops ? 12 : 3);
  }
  host_cublaslt().nan_droppers.clear();
}

/// gelu whose operand is stored, and its gradient, which reads that.
void gelu_with_its_operand_can_be_probed(void **) {
  for (const bool is_gradient : {false, true}) {
    for (const bool drops : {false, true}) {
      AlgorithmProbes::forget();
      Compilation compilation;
      host_cublaslt().nan_droppers = drops ? std::set<uint64_t>{0, 1, 2, 3} : std::set<uint64_t>();
      ProductShape shape{DType::bf16, 5, 8, 4};
      shape.has_gelu = shape.keeps_gelu_operand = shape.has_bias = !is_gradient;
      shape.has_gelu_gradient = is_gradient;
      assert_int_equal(taken(shape, nullptr, nullptr), -1);
      assert_int_equal(taken(shape, nullptr, &compilation.probes), drops ? -1 : 0);
      assert_int_equal(compilation.probes.probed_count(), drops ? 4 : 1);
    }
  }
  host_cublaslt().nan_droppers.clear();
}

void what_needs_no_probe_has_none(void **) {
  AlgorithmProbes::forget();
  Compilation compilation;
  ProductShape shape = relu_shape();
  assert_int_equal(taken(shape, nullptr, nullptr), -1);
  shape.has_relu = false;
  host_cublaslt().nan_droppers = {0};
  assert_int_equal(taken(shape, nullptr, &compilation.probes), 0);
  shape.has_gelu = true;
  assert_int_equal(taken(shape, nullptr, &compilation.probes), 0);
  assert_int_equal(compilation.probes.probed_count(), 0);
  host_cublaslt().nan_droppers.clear();
}

/// With a plan cache the next process makes no call before the first of the program.
void a_warm_start_calls_nothing(void **) {
  const TemporaryDirectory directory;
  host_cublaslt().nan_droppers = {0, 3};
  for (const bool is_warm : {false, true}) {
    AlgorithmTrials::forget();
    AlgorithmProbes::forget();
    AlgorithmTrials trials(cache(directory.path()), memory(), log_line);
    Compilation compilation(directory.path());
    const int calls = host_cublaslt().calls;
    assert_int_equal(taken(relu_shape(), &trials, &compilation.probes), 2);
    if (is_warm) assert_int_equal(host_cublaslt().calls, calls + 1);
    assert_int_equal(compilation.probes.probed_count(), is_warm ? 0 : 4);
    trials.remember();
    compilation.probes.remember();
  }
  host_cublaslt().nan_droppers.clear();
}

void nothing_is_left_over(void **) {
  assert_int_equal(allocated, 0);
  assert_int_equal(host_runtime().objects, 0);
  assert_int_equal(host_cublaslt().descriptors, 0);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_nan_is_told_from_a_number),
      cmocka_unit_test(every_dtype_has_its_nan),
      cmocka_unit_test(both_ends_are_looked_at),
      cmocka_unit_test(answers_stay),
      cmocka_unit_test(the_plan_cache_remembers),
      cmocka_unit_test(trials_are_kept_beside_it),
      cmocka_unit_test(what_cannot_be_probed_is_not_used),
      cmocka_unit_test(products_with_relu_keep_nan),
      cmocka_unit_test(every_kind_of_product_can_be_probed),
      cmocka_unit_test(gelu_with_its_operand_can_be_probed),
      cmocka_unit_test(what_needs_no_probe_has_none),
      cmocka_unit_test(a_warm_start_calls_nothing),
      cmocka_unit_test(nothing_is_left_over),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace algorithm_probes_test
