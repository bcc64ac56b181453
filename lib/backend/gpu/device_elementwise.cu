// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_elementwise.h"

#include "backend/gpu/arithmetic-inl.h"
#include "backend/gpu/device-inl.h"
#include "backend/gpu/fours-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Elements that a thread works on at a time.
constexpr int32_t kLanes = 4;

template <typename C>
struct alignas(16) Lanes {
  C lane[kLanes];
};

/// Position of the result's element in a strided operand.
__device__ inline int64_t position_of(const ElementProgram &program, const ElementOperand &operand, int64_t element) {
  int64_t position = 0;
  for (int32_t axis = program.rank - 1; axis > 0; --axis) {
    const int64_t before = element / program.dims[axis];
    position += (element - before * program.dims[axis]) * operand.strides[axis];
    element = before;
  }
  return position + element * operand.strides[0];
}

__device__ inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

template <typename C>
__device__ inline Lanes<C> load_lanes(const ElementProgram &program, const ElementOperand &operand, int64_t first) {
  Lanes<C> lanes;
  const bool is_whole = first + kLanes <= program.elements;
  if constexpr (sizeof(C) == 4) {
    if (operand.access == ElementAccess::dense && operand.dtype == DType::f32 && operand.is_aligned && is_whole)
      return *reinterpret_cast<const Lanes<C> *>(static_cast<const float *>(operand.data) + first);
    if (operand.access == ElementAccess::dense && is_half(operand.dtype) && operand.is_aligned && is_whole) {
      load_four(operand.dtype, operand.data, first / kLanes, lanes.lane);
      return lanes;
    }
  }
  if (operand.access == ElementAccess::scalar) {
    const C value = load_element<C>(operand.dtype, operand.data, 0);
    for (int32_t i = 0; i < kLanes; ++i)
      lanes.lane[i] = value;
    return lanes;
  }
  for (int32_t i = 0; i < kLanes; ++i) {
    const int64_t element = is_whole || first + i < program.elements ? first + i : first;
    const int64_t position = operand.access == ElementAccess::dense ? element : position_of(program, operand, element);
    lanes.lane[i] = load_element<C>(operand.dtype, operand.data, position);
  }
  return lanes;
}

template <typename C>
__device__ inline void store_lanes(const ElementProgram &program, const ElementOperand &operand, int64_t first,
                                   const Lanes<C> &lanes) {
  if constexpr (sizeof(C) == 4) {
    if (operand.dtype == DType::f32 && operand.is_aligned && first + kLanes <= program.elements) {
      *reinterpret_cast<Lanes<C> *>(static_cast<float *>(operand.data) + first) = lanes;
      return;
    }
    if (is_half(operand.dtype) && operand.is_aligned && first + kLanes <= program.elements)
      return store_four(operand.dtype, operand.data, first / kLanes, lanes.lane);
  }
  for (int32_t i = 0; i < kLanes && first + i < program.elements; ++i)
    store_element<C>(operand.dtype, operand.data, first + i, lanes.lane[i]);
}

template <ElementOp op, typename C>
__device__ inline Lanes<C> apply_lanes(const Lanes<C> &a, const Lanes<C> &b, const Lanes<C> &c, C number) {
  Lanes<C> result;
  for (int32_t i = 0; i < kLanes; ++i)
    result.lane[i] = apply<op, C>(a.lane[i], b.lane[i], c.lane[i], number);
  return result;
}

template <typename C>
__device__ inline Lanes<C> run_instruction(const ElementInstruction &instruction, const Lanes<C> &a, const Lanes<C> &b,
                                           const Lanes<C> &c) {
  const C number = static_cast<C>(instruction.number);
  switch (instruction.op) {
#define TUTTI_ELEMENT_OP_CASE(name) \
  case ElementOp::name:             \
    return apply_lanes<ElementOp::name>(a, b, c, number);
    TUTTI_ELEMENT_OPS(TUTTI_ELEMENT_OP_CASE)
#undef TUTTI_ELEMENT_OP_CASE
  }
  return a;
}

/// Registers: one column of shared memory per thread.
template <typename C>
__global__ void run_elements(const ElementProgram program) {
  TUTTI_DYNAMIC_SHARED(shared);
  Lanes<C> *const registers = reinterpret_cast<Lanes<C> *>(shared) + threadIdx.x;
  const int32_t stride = static_cast<int32_t>(blockDim.x);
  for (int64_t first = grid_thread() * kLanes; first < program.elements; first += grid_threads() * kLanes) {
    for (int32_t i = 0; i < program.input_count; ++i)
      registers[i * stride] = load_lanes<C>(program, program.inputs[i], first);
    for (int32_t i = 0; i < program.instruction_count; ++i) {
      const ElementInstruction &instruction = program.instructions[i];
      registers[(program.input_count + i) * stride] =
          run_instruction<C>(instruction, registers[instruction.a * stride], registers[instruction.b * stride],
                             registers[instruction.c * stride]);
    }
    const int32_t last = program.input_count + program.instruction_count - 1;
    store_lanes<C>(program, program.output, first, registers[last * stride]);
  }
}

__global__ void copy_bytes(char *to, const char *from, int64_t bytes) {
  const int64_t wide = bytes / 16;
  for (int64_t i = grid_thread(); i < wide; i += grid_threads())
    reinterpret_cast<Bytes16 *>(to)[i] = reinterpret_cast<const Bytes16 *>(from)[i];
  for (int64_t i = wide * 16 + grid_thread(); i < bytes; i += grid_threads())
    to[i] = from[i];
}

__global__ void copy_unaligned_bytes(char *to, const char *from, int64_t bytes) {
  for (int64_t i = grid_thread(); i < bytes; i += grid_threads())
    to[i] = from[i];
}

constexpr size_t kSharedBytes = 48 << 10;

template <typename C>
gpuError_t launch(const ElementProgram &program, gpuStream_t stream) {
  const size_t bytes = static_cast<size_t>(program.input_count + program.instruction_count) * sizeof(Lanes<C>);
  int threads = kBlockThreads;
  while (bytes * static_cast<size_t>(threads) > kSharedBytes)
    threads /= 2;
  const int64_t groups = (program.elements + kLanes - 1) / kLanes;
  const unsigned blocks = blocks_for(groups * kBlockThreads / threads);
  return gpu_launch(run_elements<C>, blocks, threads, bytes * static_cast<size_t>(threads), stream, program);
}

}  // namespace

gpuError_t launch_elements(const ElementProgram &program, gpuStream_t stream) {
  if (program.elements == 0) return gpuSuccess;
  switch (program.arithmetic) {
    case Arithmetic::f32:
      return launch<float>(program, stream);
    case Arithmetic::f64:
      return launch<double>(program, stream);
    case Arithmetic::i64:
      return launch<int64_t>(program, stream);
    case Arithmetic::u64:
      return launch<uint64_t>(program, stream);
  }
  return gpuErrorInvalidValue;
}

gpuError_t launch_copy(void *to, const void *from, int64_t bytes, gpuStream_t stream) {
  if (bytes == 0 || to == from) return gpuSuccess;
  const bool is_aligned = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0;
  return gpu_launch(is_aligned ? copy_bytes : copy_unaligned_bytes, blocks_for(bytes / (is_aligned ? 16 : 1) + 1),
                    kBlockThreads, 0, stream, static_cast<char *>(to), static_cast<const char *>(from), bytes);
}

}  // namespace tutti::impl::backend::gpu
