// SPDX-License-Identifier: Apache-2.0
//
// What the tests of nn/ share: writing an entry into a builder, and computing a value of it on the reference backend.
//
//   GraphBuilder b;
//   const ValueId x = input(b, "x", {1, 2, 3, 4}, {2, 2});
//   const ValueId y = expand(b, "layer_dense", {x}, {{"units", int64_t{3}}});
//   const std::vector<double> values = assert_ok_value(evaluate(b, y, {{"dense/kernel", {...}}}));
//
// The first dimension of an input is the batch. Variables are given values by name; all must be given.
#ifndef TUTTI_TESTS_NN_NN_TESTING_H_
#define TUTTI_TESTS_NN_NN_TESTING_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/executable.h"
#include "base/status.h"
#include "graph/builder.h"
#include "nn/registry.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn_testing {

using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using Numbers = std::vector<double>;
using Variables = std::map<std::string, Numbers>;

/// A graph and the numbers of its inputs.
class Bench {
 public:
  GraphBuilder builder;

  /// A feature [batch, rest...] with as many rows as `numbers` fill.
  ValueId input(const std::string &name, Numbers numbers, const std::vector<int64_t> &rest, DType dtype = DType::f32);
  /// The value of nn's entry; training mode unless told otherwise.
  ValueId expand(const std::string &entry, const std::vector<ValueId> &inputs, Attributes attributes = {},
                 bool training = true);
  /// Runs what was built on the reference backend, with step `step`.
  base::Result<Numbers> evaluate(ValueId value, const Variables &variables = {}, int64_t step = 0) const;
  /// The spec of a variable; null when there is none.
  const graph::VariableSpec *variable(const std::string &name) const { return builder.model().find_variable(name); }
  std::string error() const { return builder.ok() ? std::string() : std::string(builder.status().message()); }
  /// "[batch, 3]"
  std::string shape(ValueId value) const { return graph::to_string(builder.dims(value)); }

 private:
  std::map<std::string, Numbers> inputs_;
};

/// The first index at which the lists differ by more than `tolerance` of the larger magnitude (at least 1); -1 if none.
int64_t first_difference(const Numbers &actual, const Numbers &expected, double tolerance);

}  // namespace tutti::impl::nn_testing

/// Compares lists of numbers, and prints the first that differs.
#define assert_numbers(actual, ...) assert_numbers_within(actual, 1e-5, __VA_ARGS__)
#define assert_numbers_within(actual, tolerance, ...)                                                           \
  do {                                                                                                          \
    const ::tutti::impl::nn_testing::Numbers got = (actual), wanted = __VA_ARGS__;                              \
    assert_int_equal(got.size(), wanted.size());                                                                \
    const int64_t at = ::tutti::impl::nn_testing::first_difference(got, wanted, (tolerance));                   \
    if (at >= 0) fail_msg("element %d: got %.9g, expected %.9g", int(at), got[size_t(at)], wanted[size_t(at)]); \
  } while (0)

#endif  // TUTTI_TESTS_NN_NN_TESTING_H_
