// SPDX-License-Identifier: Apache-2.0
//
// Elementwise work on a device, interpreted: a program that every thread runs for four elements at a time, with
// registers in shared memory. Where kernels are compiled at run time (generated_kernels.h) this is what the rest is
// done by.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_ELEMENTWISE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_ELEMENTWISE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/element_program.h"
#include "backend/gpu/device/rows.h"

namespace tutti::impl::backend::gpu {

/// Places without operands, and where these lie.
inline ElementPlaces make_places(int64_t elements) {
  ElementPlaces places{};
  places.elements = elements;
  return places;
}
inline bool is_aligned(const void *data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }
inline void place_input(ElementPlaces &places, int32_t input, const void *data) {
  places.inputs[input] = data;
  if (is_aligned(data)) places.aligned |= 1u << input;
}
inline void place_output(ElementPlaces &places, void *data) {
  places.output = data;
  if (is_aligned(data)) places.aligned |= ElementPlaces::kOutputBit;
}

/// Every thread runs the program for four elements at a time, with registers in shared memory.
gpuError_t launch_elements(const ElementProgram &program, const ElementPlaces &places, gpuStream_t stream);
/// For several calls; of strided operands all are alike.
gpuError_t launch_elements(const ElementProgram &program, const Rows<ElementPlaces> &rows, gpuStream_t stream);
/// Elements of a chunk of such rows.
int64_t chunk_elements(const ElementProgram &program);

/// to[i] = from[i] for bytes that may be the same memory, but not overlap otherwise.
gpuError_t launch_copy(void *to, const void *from, int64_t bytes, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_ELEMENTWISE_H_
