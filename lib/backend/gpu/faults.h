// SPDX-License-Identifier: Apache-2.0
//
// Bad data found on a device (a label outside its range): a kernel writes which fault and where into a record that the
// host reads when the stream is synchronized. The first thread that claims the record wins.
//
//   factory   const int32_t fault = request.add_fault([=](int64_t position, int64_t value) { return Status...; });
//   kernel    report_fault(sink, fault, position, value);                 // device-inl.h
#ifndef TUTTI_BACKEND_GPU_FAULTS_H_
#define TUTTI_BACKEND_GPU_FAULTS_H_

#include <cstdint>
#include <functional>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// In host memory that the device can write.
struct FaultRecord {
  unsigned claimed;
  int32_t fault;  ///< 1 + number of the fault, 0: none
  int64_t position;
  int64_t value;
};

/// Where kernels report; plain data, passed by value.
struct FaultSink {
  FaultRecord *record = nullptr;
  /// Null, or a flag on the device: false = what runs is not taken (the other branch of a cond), do not report.
  const bool *gate = nullptr;
  /// Null, or the run scalar data_faults on the device.
  int64_t *flag = nullptr;
};

/// The status of a fault: INVALID_ARGUMENT naming node, position and value.
using FaultText = std::function<base::Status(int64_t position, int64_t value)>;

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_FAULTS_H_
