// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/last_node.h"

#include <cstdint>

#include "backend/gpu/lowered_testing.h"
#include "backend/reference/kernel.h"
#include "tensor/half.h"
#include "testing.h"

namespace tutti::testing {

using namespace impl;
using backend::LoweredGraph;
using tensor::DType;
using tensor::Tensor;
using Tensors = std::vector<Tensor>;

namespace {

Tensor numbers(DType dtype, const std::vector<int64_t> &dims, int seed) {
  Tensor made = assert_ok_value(Tensor::allocate(dtype, assert_ok_value(tensor::Shape::make(dims))));
  const std::vector<float> values = tutti::testing::numbers(made.elements(), seed);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f32) made.mutable_data_as<float>()[i] = values[i];
    if (dtype == DType::f64) made.mutable_data_as<double>()[i] = static_cast<double>(values[i]);
    if (dtype == DType::f16) made.mutable_data_as<uint16_t>()[i] = tensor::float_to_half_bits(values[i]);
    if (dtype == DType::bf16) made.mutable_data_as<uint16_t>()[i] = tensor::float_to_bfloat16_bits(values[i]);
  }
  return made;
}

}  // namespace

const graph::Node &last_of(const LoweredGraph &lowered) { return lowered.step(lowered.step_count() - 1); }

Tensors inputs_of(const LoweredGraph &lowered) {
  Tensors made;
  for (const auto &input : lowered.inputs()) {
    const auto &value = lowered.value(input.value);
    made.push_back(numbers(value.dtype, value.dims, static_cast<int>(made.size()) * 3 + 1));
  }
  return made;
}

Tensor expected_of(const LoweredGraph &lowered, const Tensors &inputs) {
  const graph::Node &node = last_of(lowered);
  backend::reference::KernelRequest request{lowered, node};
  const auto kernel = assert_ok_value(backend::reference::find_kernel(node.op)(request));
  std::vector<void *> table(lowered.values().size());
  for (size_t i = 0; i < inputs.size(); ++i)
    table[static_cast<size_t>(lowered.inputs()[i].value)] = const_cast<void *>(inputs[i].data());
  const auto &value = lowered.value(node.outputs[0]);
  Tensor made = assert_ok_value(Tensor::zeros(value.dtype, assert_ok_value(tensor::Shape::make(value.dims))));
  table[static_cast<size_t>(node.outputs[0])] = made.mutable_data();
  std::vector<double> scratch(static_cast<size_t>(request.scratch_bytes) / sizeof(double) + 1);
  const std::vector<int64_t> scalars(backend::reference::kScalarCount);
  assert_ok(kernel(backend::reference::Frame(table.data(), node.inputs.data(), node.outputs.data(), scratch.data(),
                                             scalars.data())));
  return made;
}

}  // namespace tutti::testing
