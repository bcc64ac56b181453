// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_elementwise.h"

#include "backend/gpu/arithmetic-inl.h"
#include "backend/gpu/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Position of the result's element in an operand.
__device__ inline int64_t position_of(const ElementProgram &program, const ElementOperand &operand, int64_t element) {
  if (operand.is_dense) return element;
  int64_t position = 0;
  for (int32_t axis = program.rank - 1; axis >= 0; --axis) {
    position += element % program.dims[axis] * operand.strides[axis];
    element /= program.dims[axis];
  }
  return position;
}

/// Registers: one column of shared memory per thread.
template <typename C>
__global__ void run_elements(const ElementProgram program) {
  TUTTI_DYNAMIC_SHARED(shared);
  C *const registers = reinterpret_cast<C *>(shared) + threadIdx.x;
  const int32_t stride = static_cast<int32_t>(blockDim.x);
  for (int64_t element = grid_thread(); element < program.elements; element += grid_threads()) {
    for (int32_t i = 0; i < program.input_count; ++i) {
      const ElementOperand &input = program.inputs[i];
      registers[i * stride] = load_element<C>(input.dtype, input.data, position_of(program, input, element));
    }
    for (int32_t i = 0; i < program.instruction_count; ++i) {
      const ElementInstruction &instruction = program.instructions[i];
      registers[(program.input_count + i) * stride] =
          apply<C>(instruction.op, registers[instruction.a * stride], registers[instruction.b * stride],
                   registers[instruction.c * stride], static_cast<C>(instruction.number));
    }
    for (int32_t i = 0; i < program.output_count; ++i) {
      const ElementOperand &output = program.outputs[i];
      store_element<C>(output.dtype, output.data, position_of(program, output, element),
                       registers[output.slot * stride]);
    }
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

template <typename C>
gpuError_t launch(const ElementProgram &program, gpuStream_t stream) {
  const size_t registers = static_cast<size_t>(program.input_count + program.instruction_count);
  return gpu_launch(run_elements<C>, blocks_for(program.elements), kBlockThreads,
                    registers * sizeof(C) * kBlockThreads, stream, program);
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
