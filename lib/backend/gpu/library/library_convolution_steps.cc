// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/library/library_convolution_steps.h"

#include <utility>

#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/device/device_transpose.h"

namespace tutti::impl::backend::gpu {

using base::Status;
using tensor::DType;

Status to_filters_first(const ConvolutionShape &shape, void *to, const void *from, gpuStream_t stream) {
  return status_of(launch_transpose(to, from, shape.filter_size(), shape.filters(), shape.element_bytes(), stream),
                   "launching a transposition");
}

Status to_filters_last(const ConvolutionShape &shape, void *to, const void *from, gpuStream_t stream) {
  return status_of(launch_transpose(to, from, shape.filters(), shape.filter_size(), shape.element_bytes(), stream),
                   "launching a transposition");
}

namespace {

/// y += bias, for rows of `filters` elements.
ElementProgram bias_program(const LoweredValue &y) {
  ElementProgram program{};
  const int64_t filters = y.dims[3];
  program.elements = y.elements;
  program.arithmetic = y.dtype == DType::f64 ? Arithmetic::f64 : Arithmetic::f32;
  program.rank = 2;
  program.dims[0] = y.elements / filters;
  program.dims[1] = filters;
  program.input_count = 2;
  program.instruction_count = 1;
  program.inputs[0] = {y.dtype, ElementAccess::dense, {filters, 1}};
  program.inputs[1] = {y.dtype, ElementAccess::strided, {0, 1}};
  program.output = {y.dtype, ElementAccess::dense, {filters, 1}};
  program.instructions[0] = {ElementOp::add, 0, 1, 0, 0};
  return program;
}

}  // namespace

Kernel with_bias(Kernel convolution, const LoweredValue &y) {
  return [convolution = std::move(convolution), program = bias_program(y)](const Frame &frame) -> Status {
    TUTTI_TRY(convolution(frame));
    ElementPlaces places = make_places(program.elements);
    place_input(places, 0, frame.output(0));
    place_input(places, 1, frame.input(2));
    place_output(places, frame.output(0));
    return status_of(launch_elements(program, places, frame.stream()), "launching elementwise work");
  };
}

}  // namespace tutti::impl::backend::gpu
