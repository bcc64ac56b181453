// SPDX-License-Identifier: Apache-2.0
//
// The names of lib/backend/gpu/ for CUDA. tests/backend/gpu/emulator/tutti_gpu.h says what they mean and is equal in
// names.
#ifndef TUTTI_BACKEND_CUDA_TUTTI_GPU_H_
#define TUTTI_BACKEND_CUDA_TUTTI_GPU_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

// ---- what the host calls -------------------------------------------------------------------------------------------

#define gpuError_t cudaError_t
#define gpuSuccess cudaSuccess
#define gpuErrorInvalidValue cudaErrorInvalidValue
#define gpuErrorMemoryAllocation cudaErrorMemoryAllocation
#define gpuErrorNoDevice cudaErrorNoDevice
#define gpuErrorInvalidDeviceFunction cudaErrorInvalidDeviceFunction
#define gpuErrorNoKernelImage cudaErrorNoKernelImageForDevice
#define gpuErrorNotReady cudaErrorNotReady
#define gpuErrorNotSupported cudaErrorNotSupported
#define gpuErrorStreamCaptureUnsupported cudaErrorStreamCaptureUnsupported
#define gpuErrorStreamCaptureInvalidated cudaErrorStreamCaptureInvalidated
#define gpuErrorStreamCaptureUnmatched cudaErrorStreamCaptureUnmatched
#define gpuErrorStreamCaptureUnjoined cudaErrorStreamCaptureUnjoined
#define gpuErrorStreamCaptureIsolation cudaErrorStreamCaptureIsolation
#define gpuErrorCapturedEvent cudaErrorCapturedEvent
#define gpuMemcpyKind cudaMemcpyKind
#define gpuMemcpyHostToDevice cudaMemcpyHostToDevice
#define gpuMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define gpuMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define gpuStreamNonBlocking cudaStreamNonBlocking
#define gpuEventDisableTiming cudaEventDisableTiming
#define gpuEventRecordExternal cudaEventRecordExternal
#define gpuHostAllocMapped cudaHostAllocMapped
#define gpuHostAllocCoherent cudaHostAllocMapped
#define gpuStreamCaptureMode cudaStreamCaptureMode
#define gpuStreamCaptureModeRelaxed cudaStreamCaptureModeRelaxed
#define gpuStream_t cudaStream_t
#define gpuEvent_t cudaEvent_t
#define gpuGraph_t cudaGraph_t
#define gpuGraphExec_t cudaGraphExec_t
#define gpuGetErrorName cudaGetErrorName
#define gpuGetErrorString cudaGetErrorString
#define gpuGetLastError cudaGetLastError
#define gpuGetDeviceCount cudaGetDeviceCount
#define gpuSetDevice cudaSetDevice
#define gpuFuncAttributes cudaFuncAttributes
#define gpuFuncGetAttributes cudaFuncGetAttributes
#define gpuDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define gpuDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define gpuDeviceP2PAttr cudaDeviceP2PAttr
#define gpuDeviceGetP2PAttribute cudaDeviceGetP2PAttribute
#define gpuDevP2PAttrPerformanceRank cudaDevP2PAttrPerformanceRank
#define gpuDevP2PAttrNativeAtomicSupported cudaDevP2PAttrNativeAtomicSupported
#define gpuMemGetInfo cudaMemGetInfo
#define gpuMalloc cudaMalloc
#define gpuFree cudaFree
#define gpuHostAlloc cudaHostAlloc
#define gpuFreeHost cudaFreeHost
#define gpuMemcpyAsync cudaMemcpyAsync
#define gpuMemsetAsync cudaMemsetAsync
#define gpuStreamCreateWithFlags cudaStreamCreateWithFlags
#define gpuStreamDestroy cudaStreamDestroy
#define gpuStreamSynchronize cudaStreamSynchronize
#define gpuStreamWaitEvent cudaStreamWaitEvent
#define gpuEventCreateWithFlags cudaEventCreateWithFlags
#define gpuEventDestroy cudaEventDestroy
#define gpuEventRecord cudaEventRecord
#define gpuEventRecordWithFlags cudaEventRecordWithFlags
#define gpuEventSynchronize cudaEventSynchronize
#define gpuEventQuery cudaEventQuery
#define gpuEventElapsedTime cudaEventElapsedTime
#define gpuStreamBeginCapture cudaStreamBeginCapture
#define gpuThreadExchangeStreamCaptureMode cudaThreadExchangeStreamCaptureMode
#define gpuStreamEndCapture cudaStreamEndCapture
#define gpuGraphInstantiate cudaGraphInstantiate
#define gpuGraphUpload cudaGraphUpload
#define gpuGraphDestroy cudaGraphDestroy
#define gpuGraphExecDestroy cudaGraphExecDestroy
#define gpuGraphLaunch cudaGraphLaunch

// ---- what kernels are written in -----------------------------------------------------------------------------------

/// Threads of a block that has no reason to be of another size; a power of two.
inline constexpr int kBlockThreads = 256;

#if defined(__CUDACC__)

#include <cuda_fp16.h>

#include <cstring>

/// The value of the lane whose number differs in the bits of `mask`; for types of up to 8 bytes.
template <typename T>
__device__ inline T gpu_shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) <= 8);
  if constexpr (sizeof(T) <= 4) {
    uint32_t word = 0;
    memcpy(&word, &value, sizeof(T));
    word = __shfl_xor_sync(0xffffffffu, word, mask);
    memcpy(&value, &word, sizeof(T));
  } else {
    unsigned long long word = 0;
    memcpy(&word, &value, sizeof(T));
    word = __shfl_xor_sync(0xffffffffu, word, mask);
    memcpy(&value, &word, sizeof(T));
  }
  return value;
}

__device__ inline float gpu_half_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
__device__ inline uint16_t gpu_float_to_half(float value) { return __half_as_ushort(__float2half_rn(value)); }

/// Both rounded to nearest even by one instruction, `low` in the lower half; false where there is none.
__device__ inline bool gpu_floats_to_bfloat16([[maybe_unused]] float low, [[maybe_unused]] float high,
                                              [[maybe_unused]] uint32_t *bits) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(*bits) : "f"(high), "f"(low));
  return true;
#else
  return false;
#endif
}

/// a b + c, rounded once: what compilers otherwise make of it is forbidden where bits have to agree.
__device__ inline float gpu_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double gpu_multiply_add(double a, double b, double c) { return fma(a, b, c); }

/// In front of a loop of a fixed count.
#define TUTTI_UNROLL _Pragma("unroll")

/// In front of a function that is called, not expanded.
#define TUTTI_NOINLINE __noinline__

/// A word of the host's that it may be writing.
__device__ inline uint32_t gpu_load_from_host(const uint32_t *word) {
  return *reinterpret_cast<const volatile uint32_t *>(word);
}
__device__ inline void gpu_store_to_host(uint32_t *word, uint32_t value) {
  *reinterpret_cast<volatile uint32_t *>(word) = value;
  __threadfence_system();
}

/// One thread, which asks until the answer is yes.
template <typename Question>
__global__ void ask_until_yes(Question question) {
  while (!question())
    __nanosleep(100);
  __threadfence_system();
}

/// Shared memory of the size that the launch asked for, aligned to 16.
#define TUTTI_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]

template <typename... Parameters, typename... Arguments>
gpuError_t gpu_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, gpuStream_t stream,
                      Arguments... arguments) {
  (void)gpuGetLastError();  // of a call before, which was answered where it was made
  kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(arguments)...);
  return gpuGetLastError();
}

/// Launches what waits on the device: `question` is copied there and called, bool operator()(), until it gives true.
template <typename Question>
gpuError_t gpu_launch_until(const Question &question, gpuStream_t stream) {
  return gpu_launch(ask_until_yes<Question>, 1, 1, 0, stream, question);
}

#endif

#endif  // TUTTI_BACKEND_CUDA_TUTTI_GPU_H_
