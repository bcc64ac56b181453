// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/host_runtime.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cuda/host_cublaslt.h"
#include "backend/cuda/host_cudnn.h"
#include "backend/gpu/device/device_batch_norm.h"
#include "backend/gpu/device/device_elementwise.h"
#include "backend/gpu/device/device_fold.h"
#include "backend/gpu/device/device_move.h"
#include "backend/gpu/device/device_reduce.h"
#include "backend/gpu/device/device_transpose.h"
#include "tensor/half.h"

using namespace tutti::impl;
using tensor::DType;
using tutti::testing::host_cublaslt;
using tutti::testing::host_cudnn;
using tutti::testing::host_runtime;

tutti::testing::HostRuntime &tutti::testing::host_runtime() {
  static HostRuntime runtime;
  return runtime;
}

// ---- the runtime ----

namespace {

/// An event: the time at which it was recorded.
double &time_of(cudaEvent_t event) { return *reinterpret_cast<double *>(event); }

}  // namespace

cudaError_t cudaGetDevice(int *device) {
  *device = host_runtime().current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  host_runtime().current_device = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr name, int) {
  *value = name == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *) { return cudaSuccess; }
const char *cudaGetErrorName(cudaError_t) { return "error"; }
const char *cudaGetErrorString(cudaError_t) { return "an error"; }
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  ++host_runtime().objects;
  *stream = reinterpret_cast<cudaStream_t>(new char);
  host_runtime().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  --host_runtime().objects;
  host_runtime().streams.erase(stream);
  delete reinterpret_cast<char *>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  ++host_runtime().objects;
  *event = reinterpret_cast<cudaEvent_t>(new double(0));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  --host_runtime().objects;
  delete &time_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  time_of(event) = host_cudnn().milliseconds + host_cublaslt().milliseconds + host_runtime().milliseconds;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>(time_of(end) - time_of(begin));
  return cudaSuccess;
}

// ---- libraries and kernels ----

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

base::Result<const cuda::CublasLt *> cuda::cublaslt() {
  if (!host_runtime().has_libraries) return base::unavailable("libcublasLt.so: not here");
  return &host_cublaslt().functions;
}
base::Result<const cuda::Cudnn *> cuda::cudnn() {
  if (!host_runtime().has_libraries) return base::unavailable("libcudnn.so: not here");
  return &host_cudnn().functions;
}
/// Nothing here copies.
cudaError_t gpu::launch_copy(void *, const void *, int64_t, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t gpu::launch_transpose(void *to, const void *from, int64_t rows, int64_t columns, int64_t bytes,
                                  cudaStream_t) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::copy_n(static_cast<const char *>(from) + (row * columns + column) * bytes, bytes,
                  static_cast<char *>(to) + (column * rows + row) * bytes);
  return cudaSuccess;
}
/// Calls function(place), the index along each axis, for each element of `dims` in order.
template <typename Function>
static void for_places(const int64_t *dims, int32_t rank, Function function) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < rank; ++axis)
    elements *= dims[axis];
  for (int64_t i = 0; i < elements; ++i) {
    std::vector<int64_t> place(static_cast<size_t>(rank));
    int64_t rest = i;
    for (int32_t axis = rank; axis-- > 0; rest /= dims[axis])
      place[static_cast<size_t>(axis)] = rest % dims[axis];
    function(place);
  }
}
cudaError_t gpu::launch_strided_read(const gpu::StridedRead &read, cudaStream_t) {
  char *to = static_cast<char *>(read.to);
  for_places(read.dims, read.rank, [&](const std::vector<int64_t> &place) {
    int64_t at = 0;
    for (size_t axis = 0; axis < place.size(); ++axis)
      at += place[axis] * read.strides[axis];
    to = std::copy_n(static_cast<const char *>(read.from) + at * read.element_bytes, read.element_bytes, to);
  });
  return cudaSuccess;
}
/// With zeros around, and elements one beside the other.
cudaError_t gpu::launch_placement(const gpu::Placement &placement, cudaStream_t) {
  if (placement.fill != 0) return cudaErrorNotSupported;
  char *to = static_cast<char *>(placement.to);
  const char *from = static_cast<const char *>(placement.from);
  for_places(placement.dims, placement.rank, [&](const std::vector<int64_t> &place) {
    bool is_inside = true;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      const int64_t i = place[axis] - placement.low[axis];
      is_inside = is_inside && placement.step[axis] == 1 && i >= 0 && i < placement.counts[axis];
    }
    to = is_inside ? std::copy_n(from, placement.element_bytes, to) : std::fill_n(to, placement.element_bytes, '\0');
    if (is_inside) from += placement.element_bytes;
  });
  return cudaSuccess;
}
/// Pixel by pixel of the squares; takes its time.
cudaError_t gpu::launch_fold_image(const gpu::StrideFold &fold, void *to, const void *from, cudaStream_t) {
  host_runtime().milliseconds += host_runtime().elements_milliseconds;
  const gpu::FoldedAxis &height = fold.axes[0], &width = fold.axes[1];
  const int64_t dims[] = {fold.images, height.folded, width.folded, 2, 2, gpu::StrideFold::kPlaces};
  auto *next = static_cast<uint16_t *>(to);
  for_places(dims, 6, [&](const std::vector<int64_t> &at) {
    const int64_t row = 2 * (at[1] + height.first) + at[3], column = 2 * (at[2] + width.first) + at[4];
    const bool is_there = row >= 0 && row < height.own && column >= 0 && column < width.own && at[5] < fold.channels;
    const int64_t element = ((at[0] * height.own + row) * width.own + column) * fold.channels + at[5];
    *next++ = is_there ? static_cast<const uint16_t *>(from)[element] : uint16_t{0};
  });
  return cudaSuccess;
}
/// Calls function(element of the folded kernel, element of the own one or -1).
template <typename Function>
static void for_folded(const gpu::StrideFold &fold, Function function) {
  const gpu::FoldedAxis &height = fold.axes[0], &width = fold.axes[1];
  const int64_t dims[] = {fold.filters, height.folded_window, width.folded_window, 2, 2, gpu::StrideFold::kPlaces};
  int64_t folded = 0;
  for_places(dims, 6, [&](const std::vector<int64_t> &at) {
    const int64_t row = 2 * (at[1] + height.first) + at[3] + height.pad;
    const int64_t column = 2 * (at[2] + width.first) + at[4] + width.pad;
    const bool is_there =
        row >= 0 && row < height.window && column >= 0 && column < width.window && at[5] < fold.channels;
    function(folded++, is_there ? ((row * width.window + column) * fold.channels + at[5]) * fold.filters + at[0] : -1);
  });
}
cudaError_t gpu::launch_fold_kernel(const gpu::StrideFold &fold, void *to, const void *from, cudaStream_t) {
  for_folded(fold, [&](int64_t folded, int64_t own) {
    static_cast<uint16_t *>(to)[folded] = own < 0 ? uint16_t{0} : static_cast<const uint16_t *>(from)[own];
  });
  return cudaSuccess;
}
cudaError_t gpu::launch_unfold_kernel(const gpu::StrideFold &fold, void *to, const void *from, cudaStream_t) {
  for_folded(fold, [&](int64_t folded, int64_t own) {
    if (own >= 0) static_cast<uint16_t *>(to)[own] = static_cast<const uint16_t *>(from)[folded];
  });
  return cudaSuccess;
}
int64_t gpu::reduce_scratch_bytes(const gpu::ReduceWork &) { return 640; }
/// Takes its time, and computes nothing: only trials launch it here.
cudaError_t gpu::launch_reduce(const gpu::ReduceWork &, cudaStream_t) {
  host_runtime().milliseconds += host_runtime().reduce_milliseconds;
  return cudaSuccess;
}
int64_t gpu::batch_norm_scratch_bytes(const gpu::BatchNormWork &) { return 320; }
/// Takes its time, and computes nothing: only trials launch it here.
cudaError_t gpu::launch_batch_norm_moments(const gpu::BatchNormWork &, cudaStream_t) {
  host_runtime().milliseconds += host_runtime().reduce_milliseconds;
  return cudaSuccess;
}
cudaError_t gpu::launch_batch_norm_moments_of_sums(const gpu::BatchNormWork &work, const float *sums,
                                                   const float *squares, cudaStream_t) {
  for (int64_t channel = 0; channel < work.channels; ++channel) {
    static_cast<double *>(work.first)[channel] = static_cast<double>(sums[channel]);
    static_cast<double *>(work.second)[channel] = static_cast<double>(squares[channel]);
  }
  return cudaSuccess;
}
/// With f32 parameters and at most relu behind it.
cudaError_t gpu::launch_batch_norm_of_sums(const gpu::BatchNormWork &work, const float *sums, const float *squares,
                                           cudaStream_t) {
  const bool has_relu = work.epilogue != nullptr && work.epilogue->steps[1].op == gpu::ElementOp::relu;
  for (int64_t channel = 0; channel < work.channels; ++channel) {
    const float mean = sums[channel] / static_cast<float>(work.rows);
    const float variance = squares[channel] / static_cast<float>(work.rows) - mean * mean;
    static_cast<float *>(work.first)[channel] = mean;
    static_cast<float *>(work.second)[channel] = variance;
    const float factor =
        static_cast<const float *>(work.scale)[channel] / std::sqrt(variance + static_cast<float>(work.epsilon));
    for (int64_t row = 0; row < work.rows; ++row) {
      const int64_t at = row * work.channels + channel;
      const float y = (load(work.dtype, work.x, at) - mean) * factor + static_cast<const float *>(work.offset)[channel];
      store(work.dtype, work.y, at, has_relu && y < 0 ? 0 : y);
    }
  }
  return cudaSuccess;
}
/// Sums, of f32, f16 or bf16.
cudaError_t gpu::launch_elements(const gpu::ElementProgram &program, const gpu::ElementPlaces &places, cudaStream_t) {
  host_runtime().milliseconds += host_runtime().elements_milliseconds;
  const auto value = [&](int32_t input, int64_t i) {
    const gpu::ElementOperand &operand = program.inputs[input];
    const bool is_strided = operand.access == gpu::ElementAccess::strided;
    const int64_t row = is_strided ? i / program.dims[1] : 0, column = is_strided ? i % program.dims[1] : 0;
    const int64_t position = operand.access == gpu::ElementAccess::scalar ? 0
                             : is_strided ? row * operand.strides[0] + column * operand.strides[1]
                                          : i;
    return load(operand.dtype, places.inputs[input], position);
  };
  for (int64_t i = 0; i < places.elements; ++i) {
    std::vector<float> registers;
    for (int32_t input = 0; input < program.input_count; ++input)
      registers.push_back(value(input, i));
    for (int32_t at = 0; at < program.instruction_count; ++at) {
      const gpu::ElementInstruction &instruction = program.instructions[at];
      const float a = registers[static_cast<size_t>(instruction.a)], b = registers[static_cast<size_t>(instruction.b)];
      if (instruction.op != gpu::ElementOp::add && instruction.op != gpu::ElementOp::identity)
        return cudaErrorInvalidValue;
      registers.push_back(instruction.op == gpu::ElementOp::add ? a + b : a);
    }
    store(program.output.dtype, places.output, i, registers.back());
  }
  return cudaSuccess;
}

}  // namespace tutti::impl::backend
