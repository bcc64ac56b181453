// SPDX-License-Identifier: Apache-2.0
//
// The names of lib/backend/gpu/ for a GPU that is emulated on the host, so that its kernels and its executor are tested
// where there is no GPU. lib/backend/cuda/tutti_gpu.h and lib/backend/hip/tutti_gpu.h are the real ones; this one
// implements what they alias.
//
// What it is strict about:
//  * Work on a stream is done as late as possible: when somebody waits for it. What reads memory too early, or frees it
//    too early, fails every time.
//  * Device memory is filled with 0xFF when it is allocated: what is read before it was written is not a number.
//  * Blocks and threads run in either order. Kernels end the process at an address that is not aligned for what they
//    read or write together, at a number that leaves the range of an integer, at a shift by too much.
//  * A barrier that not all living threads of a block reach ends the process with a sentence.
//  * The device's clock goes on by TUTTI_EMULATED_LAUNCH_NS of the environment with each launch of a kernel and stands
//    still otherwise; where that is not set, it is the host's. An event without timing, or not reached, has no time.
//  * Each GPU has as many bytes as TUTTI_EMULATED_BYTES of the environment says when it is asked, or 4 GiB. What makes
//    a GPU the current one, or takes memory or a stream of the current one, adds a line with its number to the file
//    that TUTTI_EMULATED_USES names, the first time.
//  * While a stream is captured it is not waited for; nor are events that were captured, ever; it does not wait for
//    what was not. Nothing is allocated then, unless capture or thread are relaxed. Streams that join by an event are
//    left behind at the end, or there is no graph. In a graph only events order what two streams do (captures.cc).
//    An event has the times of launches only where it was recorded as an external one, which ends with its event; where
//    TUTTI_EMULATED_UNTIMED_GRAPHS is set there are no such events, as with HIP.
//  * What a device asks the host again and again (gpu_launch_until) it asks though nobody waits for the stream, the
//    first time late where TUTTI_EMULATED_LATE_QUESTION says "NUMBER MILLISECONDS": of the launches since then, one.
//  * Where TUTTI_EMULATED_DRIVER of the environment is "waits", what takes or frees memory and makes streams and graphs
//    waits for the GPU and keeps launches away meanwhile (driver.h); the first launch of a graph does so, unless it was
//    uploaded.
//  * Blocks and warps are small (kBlockThreads, warpSize), so that tests of few elements use several.
//
// Threads: all functions may be called from any thread; work is done under one lock.
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_TUTTI_GPU_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_TUTTI_GPU_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "emulated_machine.h"
#include "host_call.h"
#include "tensor/half.h"

// ---- what the host calls -------------------------------------------------------------------------------------------

enum gpuError_t : int {
  gpuSuccess = 0,
  gpuErrorInvalidValue = 1,
  gpuErrorMemoryAllocation = 2,
  gpuErrorInvalidDeviceFunction = 98,
  gpuErrorNoDevice = 100,
  gpuErrorNoKernelImage = 209,
  gpuErrorNotReady = 600,
  gpuErrorNotSupported = 801,
  gpuErrorStreamCaptureUnsupported = 900,
  gpuErrorStreamCaptureInvalidated = 901,
  gpuErrorStreamCaptureUnmatched = 903,
  gpuErrorStreamCaptureUnjoined = 904,
  gpuErrorStreamCaptureIsolation = 905,
  gpuErrorCapturedEvent = 907,
};
enum gpuMemcpyKind { gpuMemcpyHostToDevice = 1, gpuMemcpyDeviceToHost = 2, gpuMemcpyDeviceToDevice = 3 };
enum { gpuStreamNonBlocking = 1, gpuEventDisableTiming = 2, gpuHostAllocMapped = 2, gpuHostAllocCoherent = 4 };
enum { gpuEventRecordExternal = 1 };
/// 0, as every thread begins: what is unsafe while a stream is captured fails.
enum gpuStreamCaptureMode { gpuStreamCaptureModeRelaxed = 2 };

using gpuStream_t = struct EmulatedStream *;
using gpuEvent_t = struct EmulatedEvent *;
using gpuGraph_t = struct EmulatedGraph *;
using gpuGraphExec_t = struct EmulatedGraph *;

const char *gpuGetErrorName(gpuError_t error);
const char *gpuGetErrorString(gpuError_t error);
gpuError_t gpuGetLastError();
gpuError_t gpuGetDeviceCount(int *count);
gpuError_t gpuSetDevice(int device);
struct gpuFuncAttributes {};
/// gpuErrorNoKernelImage where the current GPU is the one whose number TUTTI_EMULATED_NO_CODE of the environment says.
gpuError_t gpuFuncGetAttributes(gpuFuncAttributes *attributes, const void *kernel);
/// Pairs of GPUs (0 and 1, 2 and 3, ...) are connected.
gpuError_t gpuDeviceCanAccessPeer(int *reaches, int device, int peer);
enum gpuDeviceP2PAttr { gpuDevP2PAttrPerformanceRank, gpuDevP2PAttrNativeAtomicSupported };
/// The connections of such pairs are of the fastest kind, and have atomic operations; an error of a GPU with itself.
gpuError_t gpuDeviceGetP2PAttribute(int *value, gpuDeviceP2PAttr attribute, int device, int peer);
/// GPUs of different processes are different ones, unless the environment's TUTTI_EMULATED_MACHINE names where they
/// are.
gpuError_t gpuDeviceGetPCIBusId(char *text, int bytes, int device);
gpuError_t gpuMemGetInfo(size_t *available, size_t *total);
gpuError_t gpuMalloc(void **memory, size_t bytes);
gpuError_t gpuFree(void *memory);
gpuError_t gpuHostAlloc(void **memory, size_t bytes, unsigned flags);
gpuError_t gpuFreeHost(void *memory);
gpuError_t gpuMemcpyAsync(void *to, const void *from, size_t bytes, gpuMemcpyKind kind, gpuStream_t stream);
gpuError_t gpuMemsetAsync(void *to, int value, size_t bytes, gpuStream_t stream);
gpuError_t gpuStreamCreateWithFlags(gpuStream_t *stream, unsigned flags);
gpuError_t gpuStreamDestroy(gpuStream_t stream);
gpuError_t gpuStreamSynchronize(gpuStream_t stream);
gpuError_t gpuStreamWaitEvent(gpuStream_t stream, gpuEvent_t event, unsigned flags);
gpuError_t gpuEventCreateWithFlags(gpuEvent_t *event, unsigned flags);
gpuError_t gpuEventDestroy(gpuEvent_t event);
gpuError_t gpuEventRecord(gpuEvent_t event, gpuStream_t stream);
/// With gpuEventRecordExternal, on a stream that is captured: a node of the graph, each launch of which records the
/// event anew.
gpuError_t gpuEventRecordWithFlags(gpuEvent_t event, gpuStream_t stream, unsigned flags);
gpuError_t gpuEventSynchronize(gpuEvent_t event);
gpuError_t gpuEventQuery(gpuEvent_t event);
gpuError_t gpuEventElapsedTime(float *milliseconds, gpuEvent_t begin, gpuEvent_t end);
gpuError_t gpuStreamBeginCapture(gpuStream_t stream, gpuStreamCaptureMode mode);
gpuError_t gpuStreamEndCapture(gpuStream_t stream, gpuGraph_t *graph);
/// Sets the calling thread's mode and gives the one before.
gpuError_t gpuThreadExchangeStreamCaptureMode(gpuStreamCaptureMode *mode);
gpuError_t gpuGraphInstantiate(gpuGraphExec_t *executable, gpuGraph_t graph, unsigned long long flags);
gpuError_t gpuGraphUpload(gpuGraphExec_t executable, gpuStream_t stream);
gpuError_t gpuGraphDestroy(gpuGraph_t graph);
gpuError_t gpuGraphExecDestroy(gpuGraphExec_t executable);
gpuError_t gpuGraphLaunch(gpuGraphExec_t executable, gpuStream_t stream);

// ---- what kernels are written in -----------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __restrict__ __restrict
#define TUTTI_UNROLL
#define TUTTI_NOINLINE

/// Threads of a block that has no reason to be of another size; a power of two.
inline constexpr int kBlockThreads = 32;
inline constexpr int warpSize = 8;

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads();
inline void __threadfence_system() {}

namespace tutti_gpu_emulator {

void launch(dim3 grid, dim3 block, size_t shared_bytes, gpuStream_t stream, std::function<void()> thread);
/// What is asked again until it says yes; each launch of a graph has a question of its own.
gpuError_t launch_until(const std::function<std::function<bool()>()> &make_question, gpuStream_t stream);
/// What the thread `source` places into this thread's warp gives; all living threads of the warp must call it.
uint64_t exchange(uint64_t value, int source_lane);
unsigned char *dynamic_shared();

}  // namespace tutti_gpu_emulator

/// The value of the lane whose number differs in the bits of `mask`; for types of up to 8 bytes.
template <typename T>
T gpu_shuffle_xor(T value, int mask) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  const int thread = static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  word = tutti_gpu_emulator::exchange(word, (thread % warpSize) ^ mask);
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

inline unsigned atomicCAS(unsigned *address, unsigned expected, unsigned desired) {
  const unsigned before = *address;
  if (before == expected) *address = desired;
  return before;
}
inline int atomicAdd(int *address, int value) {
  const int before = *address;
  *address += value;
  return before;
}

inline float gpu_half_to_float(uint16_t bits) { return tutti::impl::tensor::half_bits_to_float(bits); }
inline uint16_t gpu_float_to_half(float value) { return tutti::impl::tensor::float_to_half_bits(value); }
/// Two floats rounded to bf16 by one instruction: there is none.
inline bool gpu_floats_to_bfloat16(float, float, uint32_t *) { return false; }

/// a b + c; on devices rounded once.
template <typename C>
C gpu_multiply_add(C a, C b, C c) {
  return a * b + c;
}

inline uint32_t gpu_load_from_host(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
inline void gpu_store_to_host(uint32_t *word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

/// Shared memory of the size that the launch asked for, aligned to 16.
#define TUTTI_DYNAMIC_SHARED(name) unsigned char *const name = tutti_gpu_emulator::dynamic_shared()

template <typename... Parameters, typename... Arguments>
gpuError_t gpu_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, gpuStream_t stream,
                      Arguments... arguments) {
  if (tutti_gpu_emulator::is_refused()) return gpuErrorMemoryAllocation;
  const tutti_gpu_emulator::HostCall host;
  tutti_gpu_emulator::launch(grid, block, shared_bytes, stream, [=] { kernel(static_cast<Parameters>(arguments)...); });
  return gpuSuccess;
}

template <typename Question>
gpuError_t gpu_launch_until(const Question &question, gpuStream_t stream) {
  return tutti_gpu_emulator::launch_until([question] { return [asked = question]() mutable { return asked(); }; },
                                          stream);
}

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_TUTTI_GPU_H_
