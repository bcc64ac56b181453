// SPDX-License-Identifier: Apache-2.0
//
// One op of the tables of gradient_test, and the table that has a file of its own.
#ifndef TUTTI_TESTS_CONFORMANCE_GRADIENT_CASE_H_
#define TUTTI_TESTS_CONFORMANCE_GRADIENT_CASE_H_

#include <string>
#include <utility>
#include <vector>

#include "backend_cases.h"
#include "graph/builder.h"

namespace gradient_test {

using namespace tutti::impl;
using conformance::BuildFunction;
using conformance::Operand;
using conformance::ShapeDims;
using conformance::whole;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using Values = GraphBuilder::Values;
using Ints = std::vector<int64_t>;

struct GradientCase {
  std::string op;
  std::vector<Operand> inputs;
  Attributes attributes = {};
  BuildFunction build = {};  // absent = the op on the inputs; all its results are weighed
};

inline Operand real(ShapeDims dims, double low = -2, double high = 2) {
  return {DType::f64, std::move(dims), low, high, false};
}

std::vector<GradientCase> running_cases();

}  // namespace gradient_test

#endif  // TUTTI_TESTS_CONFORMANCE_GRADIENT_CASE_H_
