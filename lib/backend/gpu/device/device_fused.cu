// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_fused.h"

#include "backend/gpu/device/arithmetic-inl.h"
#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

__device__ inline float run_fused_instruction(const ElementInstruction &instruction, float a, float b, float c) {
  const float number = static_cast<float>(instruction.number);
  switch (instruction.op) {
#define TUTTI_FUSED_OP_CASE(name) \
  case ElementOp::name:           \
    return apply<ElementOp::name>(a, b, c, number);
    TUTTI_ELEMENT_OPS(TUTTI_FUSED_OP_CASE)
#undef TUTTI_FUSED_OP_CASE
  }
  return a;
}

__device__ inline int64_t position_of(const FusedOperand &operand, int64_t row, int64_t column) {
  return operand.offset + row * operand.row_stride + column * operand.column_stride;
}

/// Registers: one column of shared memory per thread.
__global__ void run_fused(const FusedProgram program, const FusedPlaces places) {
  TUTTI_DYNAMIC_SHARED(shared);
  float *const registers = reinterpret_cast<float *>(shared) + threadIdx.x;
  const int32_t stride = static_cast<int32_t>(blockDim.x);
  const int64_t elements = program.rows * program.columns;
  for (int64_t element = grid_thread(); element < elements; element += grid_threads()) {
    const int64_t row = element / program.columns, column = element - row * program.columns;
    for (int32_t i = 0; i < program.input_count; ++i) {
      const FusedOperand &input = program.inputs[i];
      registers[i * stride] = load_element<float>(input.dtype, places.inputs[i], position_of(input, row, column));
    }
    for (int32_t i = 0; i < program.instruction_count; ++i) {
      const ElementInstruction &instruction = program.instructions[i];
      registers[(program.input_count + i) * stride] =
          run_fused_instruction(instruction, registers[instruction.a * stride], registers[instruction.b * stride],
                                registers[instruction.c * stride]);
    }
    for (int32_t i = 0; i < program.output_count; ++i) {
      const FusedOperand &output = program.outputs[i];
      store_element<float>(output.dtype, places.outputs[i], position_of(output, row, column),
                           registers[output.source * stride]);
    }
  }
}

constexpr int64_t kMostSharedBytes = 44 << 10;

}  // namespace

gpuError_t launch_fused(const FusedProgram &program, const FusedPlaces &places, gpuStream_t stream) {
  const int64_t elements = program.rows * program.columns;
  if (elements == 0) return gpuSuccess;
  const int64_t bytes = (program.input_count + program.instruction_count) * static_cast<int64_t>(sizeof(float));
  int threads = kBlockThreads;
  while (bytes * threads > kMostSharedBytes)
    threads /= 2;
  constexpr int64_t kMostBlocks = 4096;
  const int64_t blocks = (elements + threads - 1) / threads;
  return gpu_launch(run_fused, static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks), threads,
                    static_cast<size_t>(bytes * threads), stream, program, places);
}

}  // namespace tutti::impl::backend::gpu
