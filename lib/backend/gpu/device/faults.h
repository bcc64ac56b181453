// SPDX-License-Identifier: Apache-2.0
//
// Bad data found on a device (a label outside its range): a kernel writes which fault and where into a record that the
// host reads when the stream is synchronized. The first thread that claims the record wins.
//
//   factory   const int32_t fault = request.add_fault(1, limit, "index");   // input 1: bounded_integers.h
//   kernel    report_fault(sink, fault, position, value);                 // device-inl.h
#ifndef TUTTI_BACKEND_GPU_DEVICE_FAULTS_H_
#define TUTTI_BACKEND_GPU_DEVICE_FAULTS_H_

#include <cstdint>

namespace tutti::impl::backend::gpu {

/// In host memory that the device can write.
struct FaultRecord {
  unsigned claimed;
  int32_t fault;  ///< 1 + number of the fault, 0: none
  int64_t position;
  int64_t value;
  int64_t row_offset;  ///< the run scalar
};

/// Where kernels report; plain data, passed by value.
struct FaultSink {
  FaultRecord *record = nullptr;
  /// Null, or a flag on the device: false = what runs is not taken (the other branch of a cond), do not report.
  const bool *gate = nullptr;
  /// Null, or the run scalars on the device, by TUTTI_RUN_ index: data_faults is set.
  int64_t *scalars = nullptr;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_FAULTS_H_
