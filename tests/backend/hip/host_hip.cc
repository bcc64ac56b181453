// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/host_hip.h"

#include <tutti_gpu.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/device/device_transpose.h"
#include "tensor/half.h"

using namespace tutti::impl;
using tensor::DType;
using tutti::testing::host_hip;
using tutti::testing::HostHip;

HostHip &tutti::testing::host_hip() {
  static HostHip host;
  return host;
}

// ---- the runtime ----

namespace {

/// An event: the time at which it was recorded.
double &time_of(hipEvent_t event) { return *reinterpret_cast<double *>(event); }

}  // namespace

hipError_t hipGetDevice(int *device) {
  *device = host_hip().current_device;
  return hipSuccess;
}
hipError_t hipSetDevice(int device) {
  host_hip().current_device = device;
  return hipSuccess;
}
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  const bool was_relaxed = std::exchange(host_hip().is_relaxed, *mode == hipStreamCaptureModeRelaxed);
  *mode = was_relaxed ? hipStreamCaptureModeRelaxed : hipStreamCaptureModeGlobal;
  return hipSuccess;
}
const char *hipGetErrorName(hipError_t) { return "error"; }
const char *hipGetErrorString(hipError_t) { return "an error"; }
hipError_t hipMemsetAsync(void *memory, int value, size_t bytes, hipStream_t) {
  std::memset(memory, value, bytes);
  return hipSuccess;
}
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, hipMemcpyKind, hipStream_t) {
  std::memcpy(to, from, bytes);
  return hipSuccess;
}
hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned) {
  *stream = reinterpret_cast<hipStream_t>(&host_hip());
  return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned) {
  *event = reinterpret_cast<hipEvent_t>(new double(0));
  return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t event) {
  delete &time_of(event);
  return hipSuccess;
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  time_of(event) = host_hip().milliseconds;
  return hipSuccess;
}
hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
hipError_t hipEventQuery(hipEvent_t) { return hipSuccess; }
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t begin, hipEvent_t end) {
  *milliseconds = static_cast<float>(time_of(end) - time_of(begin));
  return hipSuccess;
}

// ---- kernels ----

namespace {

float load(DType dtype, const void *memory, int64_t index) {
  if (dtype == DType::f32) return static_cast<const float *>(memory)[index];
  const uint16_t bits = static_cast<const uint16_t *>(memory)[index];
  return dtype == DType::f16 ? tensor::half_bits_to_float(bits) : tensor::bfloat16_bits_to_float(bits);
}

void store(DType dtype, void *memory, int64_t index, float value) {
  if (dtype == DType::f32) {
    static_cast<float *>(memory)[index] = value;
  } else {
    static_cast<uint16_t *>(memory)[index] =
        dtype == DType::f16 ? tensor::float_to_half_bits(value) : tensor::float_to_bfloat16_bits(value);
  }
}

}  // namespace

namespace tutti::impl::backend {

/// Nothing here copies.
hipError_t gpu::launch_copy(void *, const void *, int64_t, hipStream_t) { return hipErrorNotSupported; }
hipError_t gpu::launch_transpose(void *to, const void *from, int64_t rows, int64_t columns, int64_t bytes,
                                 hipStream_t) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::copy_n(static_cast<const char *>(from) + (row * columns + column) * bytes, bytes,
                  static_cast<char *>(to) + (column * rows + row) * bytes);
  return hipSuccess;
}
/// One sum of what lies densely and one number for each column.
hipError_t gpu::launch_elements(const gpu::ElementProgram &program, const gpu::ElementPlaces &places, hipStream_t) {
  const gpu::ElementOperand &rows = program.inputs[0], &column = program.inputs[1];
  const gpu::ElementInstruction &sum = program.instructions[0];
  const bool is_known = program.input_count == 2 && program.instruction_count == 1 && sum.op == gpu::ElementOp::add &&
                        sum.a == 0 && sum.b == 1 && rows.access == gpu::ElementAccess::dense && program.rank == 2 &&
                        column.access == gpu::ElementAccess::strided && column.strides[0] == 0 &&
                        column.strides[1] == 1 && program.dims[0] * program.dims[1] == program.elements;
  if (!is_known) return hipErrorInvalidValue;
  for (int64_t i = 0; i < places.elements; ++i)
    store(program.output.dtype, places.output, i,
          load(rows.dtype, places.inputs[0], i) + load(column.dtype, places.inputs[1], i % program.dims[1]));
  return hipSuccess;
}

}  // namespace tutti::impl::backend
