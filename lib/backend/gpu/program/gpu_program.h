// SPDX-License-Identifier: Apache-2.0
//
// Programs of a GPU backend: an executable bound to memory, captured as one graph per segment.
//
// run() writes the run block with one small launch (segment 0) and launches the segment's graph. On a stream that
// records (gpu_recording.h) it puts the kernels there instead, and set_arguments() writes the run block for a replay:
// each pass of a recording has its own, outside of the workspace, which other programs may use before.
// With the option "launch": "kernels", or for a program with a trace, which has times of the device (device_times.h),
// the kernels are issued one by one instead.
#ifndef TUTTI_BACKEND_GPU_PROGRAM_GPU_PROGRAM_H_
#define TUTTI_BACKEND_GPU_PROGRAM_GPU_PROGRAM_H_

#include <tutti/plugin/backend.h>

#include <memory>
#include <vector>

#include "backend/gpu/device/device_program_io.h"
#include "backend/gpu/program/gpu_executable.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

class GpuProgram {
 public:
  static base::Result<std::unique_ptr<GpuProgram>> bind(const GpuExecutable &executable,
                                                        const tutti_bind_request &request);
  ~GpuProgram();
  GpuProgram(const GpuProgram &) = delete;
  GpuProgram &operator=(const GpuProgram &) = delete;

  base::Status run(int32_t segment, const tutti_run_arguments &arguments, GpuStream &stream);
  /// For runs that were recorded.
  base::Status set_arguments(int32_t pass, const tutti_run_arguments &arguments, GpuStream &stream);
  const tutti_backend_host *host() const { return executable_.host_; }

 private:
  GpuProgram(const GpuExecutable &executable, GpuDevice &device) : executable_(executable), device_(device) {}
  base::Status upload_constants();
  base::Status issue_constants(gpuStream_t stream);
  base::Status place(const tutti_bind_request &request);
  /// Writes the tables of joined calls.
  base::Status upload_rows();
  base::Status load_run_block_kernel();
  base::Result<void *> address(const Location &location, const tutti_bind_request &request) const;
  base::Status capture();
  base::Status capture_segment(int32_t segment, gpuStream_t stream);
  /// Puts a segment's work on a stream: its kernels, before the first the inputs, after the last the outputs. `times`
  /// (nullable) measures each.
  base::Status issue(int32_t segment, uint64_t *block, gpuStream_t stream, DeviceTimes *times) const;
  base::Status issue_call(const KernelCall &call, const IssueContext &context, DeviceTimes *times) const;
  base::Status issue_ports(bool is_input, const uint64_t *block, gpuStream_t stream, DeviceTimes *times) const;
  /// A run on a stream that records: its kernels, but not the run block.
  base::Status record(int32_t segment, GpuStream &stream);
  /// Makes the run block of the pass that begins.
  base::Status begin_pass(const GpuStream &stream);
  base::Status write_run_block(uint64_t *block, const tutti_run_arguments &arguments, gpuStream_t stream);

  const GpuExecutable &executable_;
  GpuDevice &device_;
  char *workspace_ = nullptr;
  void *constants_ = nullptr;
  void *rows_ = nullptr;
  std::vector<void *> constant_at_;  // by node
  std::vector<void *> table_;
  std::shared_ptr<FaultState> faults_;   // null: the executable has no faults to report
  std::vector<gpuGraphExec_t> graphs_;   // by segment; empty: kernels one by one
  uint64_t *block_ = nullptr;            // in the workspace, of runs that are not recorded
  std::vector<uint64_t *> pass_blocks_;  // of passes of recordings
  int64_t recording_ = 0;                // the last that it ran in,
  size_t pass_ = 0;                      // and which pass there
  RunWords words_{};
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_PROGRAM_GPU_PROGRAM_H_
