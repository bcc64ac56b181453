// SPDX-License-Identifier: Apache-2.0
//
// The names of lib/backend/gpu/ for HIP. tests/backend/gpu/emulator/tutti_gpu.h says what they mean and is equal in
// names.
#ifndef TUTTI_BACKEND_HIP_TUTTI_GPU_H_
#define TUTTI_BACKEND_HIP_TUTTI_GPU_H_

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdint>

// ---- what the host calls -------------------------------------------------------------------------------------------

#define gpuError_t hipError_t
#define gpuSuccess hipSuccess
#define gpuErrorInvalidValue hipErrorInvalidValue
#define gpuErrorMemoryAllocation hipErrorMemoryAllocation
#define gpuErrorNoDevice hipErrorNoDevice
#define gpuErrorInvalidDeviceFunction hipErrorInvalidDeviceFunction
#define gpuErrorNoKernelImage hipErrorNoBinaryForGpu
#define gpuErrorNotReady hipErrorNotReady
#define gpuErrorNotSupported hipErrorNotSupported
#define gpuErrorStreamCaptureUnsupported hipErrorStreamCaptureUnsupported
#define gpuErrorStreamCaptureInvalidated hipErrorStreamCaptureInvalidated
#define gpuErrorStreamCaptureUnmatched hipErrorStreamCaptureUnmatched
#define gpuErrorStreamCaptureUnjoined hipErrorStreamCaptureUnjoined
#define gpuErrorStreamCaptureIsolation hipErrorStreamCaptureIsolation
#define gpuErrorCapturedEvent hipErrorCapturedEvent
#define gpuMemcpyKind hipMemcpyKind
#define gpuMemcpyHostToDevice hipMemcpyHostToDevice
#define gpuMemcpyDeviceToHost hipMemcpyDeviceToHost
#define gpuMemcpyDeviceToDevice hipMemcpyDeviceToDevice
#define gpuStreamNonBlocking hipStreamNonBlocking
#define gpuEventDisableTiming hipEventDisableTiming
#define gpuEventRecordExternal 1
// Not coherent: the device's atomic operations reach its own cache only, and need nothing of the bus. The host sees
// what was written when it has waited for the stream.
#define gpuHostAllocMapped (hipHostMallocMapped | hipHostMallocNonCoherent)
// What the host writes, work that begins later sees.
#define gpuHostAllocCoherent (hipHostMallocMapped | hipHostMallocCoherent)
#define gpuStreamCaptureMode hipStreamCaptureMode
#define gpuStreamCaptureModeRelaxed hipStreamCaptureModeRelaxed
#define gpuStream_t hipStream_t
#define gpuEvent_t hipEvent_t
#define gpuGraph_t hipGraph_t
#define gpuGraphExec_t hipGraphExec_t
#define gpuGetErrorName hipGetErrorName
#define gpuGetErrorString hipGetErrorString
#define gpuGetLastError hipGetLastError
#define gpuGetDeviceCount hipGetDeviceCount
#define gpuSetDevice hipSetDevice
#define gpuFuncAttributes hipFuncAttributes
#define gpuFuncGetAttributes hipFuncGetAttributes
#define gpuDeviceCanAccessPeer hipDeviceCanAccessPeer
#define gpuDeviceGetPCIBusId hipDeviceGetPCIBusId
#define gpuDeviceP2PAttr hipDeviceP2PAttr
#define gpuDeviceGetP2PAttribute hipDeviceGetP2PAttribute
#define gpuDevP2PAttrPerformanceRank hipDevP2PAttrPerformanceRank
#define gpuDevP2PAttrNativeAtomicSupported hipDevP2PAttrNativeAtomicSupported
#define gpuMemGetInfo hipMemGetInfo
#define gpuMalloc hipMalloc
#define gpuFree hipFree
#define gpuHostAlloc hipHostMalloc
#define gpuFreeHost hipHostFree
#define gpuMemcpyAsync hipMemcpyAsync
#define gpuMemsetAsync hipMemsetAsync
#define gpuStreamCreateWithFlags hipStreamCreateWithFlags
#define gpuStreamDestroy hipStreamDestroy
#define gpuStreamSynchronize hipStreamSynchronize
#define gpuStreamWaitEvent hipStreamWaitEvent
#define gpuEventCreateWithFlags hipEventCreateWithFlags
#define gpuEventDestroy hipEventDestroy
#define gpuEventRecord hipEventRecord
#define gpuEventSynchronize hipEventSynchronize
#define gpuEventQuery hipEventQuery
#define gpuEventElapsedTime hipEventElapsedTime
#define gpuStreamBeginCapture hipStreamBeginCapture
#define gpuThreadExchangeStreamCaptureMode hipThreadExchangeStreamCaptureMode
#define gpuStreamEndCapture hipStreamEndCapture
#define gpuGraphInstantiate hipGraphInstantiateWithFlags
#define gpuGraphDestroy hipGraphDestroy
#define gpuGraphExecDestroy hipGraphExecDestroy
#define gpuGraphLaunch hipGraphLaunch

/// Early releases of HIP lack it: the first launch does it.
inline hipError_t gpuGraphUpload(hipGraphExec_t, hipStream_t) { return hipSuccess; }

/// Early releases of HIP lack it, and of later ones events in graphs have no times.
inline hipError_t gpuEventRecordWithFlags(hipEvent_t, hipStream_t, unsigned) { return hipErrorNotSupported; }

// ---- what kernels are written in -----------------------------------------------------------------------------------

/// Threads of a block that has no reason to be of another size; a power of two.
inline constexpr int kBlockThreads = 256;

#if defined(__HIPCC__)

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <cstring>

/// The value of the lane whose number differs in the bits of `mask`; for types of up to 8 bytes.
template <typename T>
__device__ inline T gpu_shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) <= 8);
  int words[2] = {};
  memcpy(words, &value, sizeof(T));
  words[0] = __shfl_xor(words[0], mask);
  if constexpr (sizeof(T) > 4) words[1] = __shfl_xor(words[1], mask);
  memcpy(&value, words, sizeof(T));
  return value;
}

__device__ inline float gpu_half_to_float(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
__device__ inline uint16_t gpu_float_to_half(float value) { return __half_as_ushort(__float2half_rn(value)); }
/// Two floats rounded to bf16 by one instruction: there is none.
__device__ inline bool gpu_floats_to_bfloat16(float, float, uint32_t *) { return false; }

/// a b + c, rounded once: what compilers otherwise make of it is forbidden where bits have to agree.
__device__ inline float gpu_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double gpu_multiply_add(double a, double b, double c) { return fma(a, b, c); }

/// In front of a loop of a fixed count.
#define TUTTI_UNROLL _Pragma("unroll")

/// In front of a function that is called, not expanded.
#define TUTTI_NOINLINE __attribute__((noinline))

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
    __builtin_amdgcn_s_sleep(8);
  __threadfence_system();
}

/// Shared memory of the size that the launch asked for, aligned to 16.
#define TUTTI_DYNAMIC_SHARED(name) extern __shared__ __attribute__((aligned(16))) unsigned char name[]

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

#else

// The header of HIP takes this word, by which the standard library of GCC 16 names an attribute.
#undef __noinline__

#endif

#endif  // TUTTI_BACKEND_HIP_TUTTI_GPU_H_
