// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_elementwise.h"

#include "backend/gpu/device/arithmetic-inl.h"
#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/rows-inl.h"
#include "backend/gpu/device/vector4-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Elements that a thread works on at a time.
constexpr int32_t kLanes = 4;

/// Enough for any GPU; each goes on with the next of its chunks.
constexpr int64_t kMostBlocks = 4096;

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
__device__ inline Lanes<C> load_lanes(const ElementProgram &program, int32_t input, const ElementPlaces &places,
                                      int64_t first) {
  Lanes<C> lanes;
  const ElementOperand &operand = program.inputs[input];
  const void *const data = places.inputs[input];
  const bool is_whole = first + kLanes <= places.elements;
  if constexpr (sizeof(C) == 4) {
    const bool is_pack = operand.access == ElementAccess::dense && (places.aligned >> input & 1) != 0 && is_whole;
    if (is_pack && operand.dtype == DType::f32)
      return *reinterpret_cast<const Lanes<C> *>(static_cast<const float *>(data) + first);
    if (is_pack && is_half(operand.dtype)) {
      load_vector4(operand.dtype, data, first / kLanes, lanes.lane);
      return lanes;
    }
  }
  if (operand.access == ElementAccess::scalar) {
    const C value = load_element<C>(operand.dtype, data, 0);
    for (int32_t i = 0; i < kLanes; ++i)
      lanes.lane[i] = value;
    return lanes;
  }
  for (int32_t i = 0; i < kLanes; ++i) {
    const int64_t element = is_whole || first + i < places.elements ? first + i : first;
    const int64_t position = operand.access == ElementAccess::dense ? element : position_of(program, operand, element);
    lanes.lane[i] = load_element<C>(operand.dtype, data, position);
  }
  return lanes;
}

template <typename C>
__device__ inline void store_lanes(DType dtype, const ElementPlaces &places, int64_t first, const Lanes<C> &lanes) {
  if constexpr (sizeof(C) == 4) {
    const bool is_pack = (places.aligned & ElementPlaces::kOutputBit) != 0 && first + kLanes <= places.elements;
    if (is_pack && dtype == DType::f32) {
      *reinterpret_cast<Lanes<C> *>(static_cast<float *>(places.output) + first) = lanes;
      return;
    }
    if (is_pack && is_half(dtype)) return store_vector4(dtype, places.output, first / kLanes, lanes.lane);
  }
  for (int32_t i = 0; i < kLanes && first + i < places.elements; ++i)
    store_element<C>(dtype, places.output, first + i, lanes.lane[i]);
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
__device__ inline void run_program(const ElementProgram &program, const ElementPlaces &places, int64_t first,
                                   Lanes<C> *registers) {
  const int32_t stride = static_cast<int32_t>(blockDim.x);
  for (int32_t i = 0; i < program.input_count; ++i)
    registers[i * stride] = load_lanes<C>(program, i, places, first);
  for (int32_t i = 0; i < program.instruction_count; ++i) {
    const ElementInstruction &instruction = program.instructions[i];
    registers[(program.input_count + i) * stride] =
        run_instruction<C>(instruction, registers[instruction.a * stride], registers[instruction.b * stride],
                           registers[instruction.c * stride]);
  }
  const int32_t last = program.input_count + program.instruction_count - 1;
  store_lanes<C>(program.output.dtype, places, first, registers[last * stride]);
}

template <typename C>
__global__ void run_elements(const ElementProgram program, const ElementPlaces one, const Rows<ElementPlaces> rows) {
  TUTTI_DYNAMIC_SHARED(shared);
  Lanes<C> *const registers = reinterpret_cast<Lanes<C> *>(shared) + threadIdx.x;
  for_chunks(rows, one, [&](const ElementPlaces &places, int64_t chunk) {
    const int64_t first = (chunk * blockDim.x + threadIdx.x) * kLanes;
    if (first < places.elements) run_program<C>(program, places, first, registers);
  });
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

/// For registers, beside a row.
constexpr size_t kSharedBytes = (48 << 10) - sizeof(ElementPlaces);

size_t register_bytes(const ElementProgram &program) {
  const size_t lanes = program.arithmetic == Arithmetic::f32 ? sizeof(Lanes<float>) : sizeof(Lanes<double>);
  return static_cast<size_t>(program.input_count + program.instruction_count) * lanes;
}

/// Of a block: as many as have their registers.
int threads_of(const ElementProgram &program) {
  int threads = kBlockThreads;
  while (register_bytes(program) * static_cast<size_t>(threads) > kSharedBytes)
    threads /= 2;
  return threads;
}

template <typename C>
gpuError_t launch(const ElementProgram &program, const ElementPlaces &one, const Rows<ElementPlaces> &rows,
                  gpuStream_t stream) {
  const int threads = threads_of(program);
  const auto blocks = static_cast<unsigned>(rows.chunks < kMostBlocks ? rows.chunks : kMostBlocks);
  return gpu_launch(run_elements<C>, blocks, threads, register_bytes(program) * static_cast<size_t>(threads), stream,
                    program, one, rows);
}

gpuError_t launch_any(const ElementProgram &program, const ElementPlaces &one, const Rows<ElementPlaces> &rows,
                      gpuStream_t stream) {
  if (rows.chunks == 0) return gpuSuccess;
  switch (program.arithmetic) {
    case Arithmetic::f32:
      return launch<float>(program, one, rows, stream);
    case Arithmetic::f64:
      return launch<double>(program, one, rows, stream);
    case Arithmetic::i64:
      return launch<int64_t>(program, one, rows, stream);
    case Arithmetic::u64:
      return launch<uint64_t>(program, one, rows, stream);
  }
  return gpuErrorInvalidValue;
}

}  // namespace

int64_t chunk_elements(const ElementProgram &program) { return int64_t{kLanes} * threads_of(program); }

gpuError_t launch_elements(const ElementProgram &program, const ElementPlaces &places, gpuStream_t stream) {
  const int64_t chunk = chunk_elements(program);
  return launch_any(program, places, {nullptr, 1, (places.elements + chunk - 1) / chunk}, stream);
}

gpuError_t launch_elements(const ElementProgram &program, const Rows<ElementPlaces> &rows, gpuStream_t stream) {
  return launch_any(program, {}, rows, stream);
}

gpuError_t launch_copy(void *to, const void *from, int64_t bytes, gpuStream_t stream) {
  if (bytes == 0 || to == from) return gpuSuccess;
  const bool is_aligned = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0;
  return gpu_launch(is_aligned ? copy_bytes : copy_unaligned_bytes, blocks_for(bytes / (is_aligned ? 16 : 1) + 1),
                    kBlockThreads, 0, stream, static_cast<char *>(to), static_cast<const char *>(from), bytes);
}

}  // namespace tutti::impl::backend::gpu
