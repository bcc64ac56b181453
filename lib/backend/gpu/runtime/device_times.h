// SPDX-License-Identifier: Apache-2.0
//
// Times of kernels by the device's own clock: an event before and one behind each, told to the host when the device has
// done them. Of one stream; made when a program with a trace first runs there.
//
//   TUTTI_TRY(times.begin("dense/matmul cublaslt", "kernel"));
//   TUTTI_TRY(issue());                                       // on the stream; the host does not wait
//   TUTTI_TRY(times.end());
//   ...
//   TUTTI_TRY(times.tell());                                  // the stream was synchronized
//
// There are events for a fixed number of kernels. When all are in use, the stream is waited for and they are told.
//
// Threads: the one that uses the stream.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_DEVICE_TIMES_H_
#define TUTTI_BACKEND_GPU_RUNTIME_DEVICE_TIMES_H_

#include <tutti/plugin/backend.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/gpu/runtime/runtime.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// Of events with times that were recorded and reached.
base::Result<int64_t> nanoseconds_between(gpuEvent_t begin, gpuEvent_t end);

class DeviceTimes {
 public:
  /// Kernels between two waits.
  static constexpr size_t kSpans = 1024;

  /// `row`: of the trace, the device's name.
  static base::Result<std::unique_ptr<DeviceTimes>> create(const tutti_backend_host *host, const std::string &row,
                                                           gpuStream_t stream);
  ~DeviceTimes();
  DeviceTimes(const DeviceTimes &) = delete;
  DeviceTimes &operator=(const DeviceTimes &) = delete;

  /// What is issued until end() is a span of this name; `category` is a literal.
  base::Status begin(const std::string &name, const char *category);
  base::Status end();
  /// Tells the host of all spans, in order. Everything issued on the stream is done.
  base::Status tell();

 private:
  struct Span {
    gpuEvent_t begin = nullptr, end = nullptr;
    std::string name;
    const char *category = "";
  };

  DeviceTimes(const tutti_backend_host *host, const std::string &row, gpuStream_t stream)
      : host_(host), track_(host->trace_track(host->user, row.c_str())), stream_(stream) {}

  const tutti_backend_host *const host_;
  const int32_t track_;
  const gpuStream_t stream_;
  std::vector<Span> spans_{kSpans};
  size_t count_ = 0;          // of finished spans
  gpuEvent_t now_ = nullptr;  // recorded where the host reads its clock
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_DEVICE_TIMES_H_
