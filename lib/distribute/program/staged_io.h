// SPDX-License-Identifier: Apache-2.0
//
// One run of a program over rows in memory of the host, whatever memory the device has: where it cannot reach the
// host's, its inputs are copied to memory of the device, and its outputs back, both by way of page-locked memory where
// there is such (copy_staging.h). All of it grows to the largest need and is kept. For a program of one segment;
// belongs to the device's thread. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PROGRAM_STAGED_IO_H_
#define TUTTI_DISTRIBUTE_PROGRAM_STAGED_IO_H_

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "distribute/input/copy_staging.h"

namespace tutti::impl::distribute {

/// Rows of a program, and what there is of them: at least half as many.
struct PortRows {
  int64_t computed = 1, given = 1;
  /// Of the bytes of a port.
  int64_t given_bytes(int64_t bytes) const { return bytes / computed * given; }
};

class StagedIo {
 public:
  explicit StagedIo(backend::DeviceRef device) : device_(std::move(device)) {}

  /// Where the inputs of a program lie.
  enum class Inputs : uint8_t { in_host_memory, on_device };

  /// Runs and waits. `inputs` and `outputs`: memory of the host, in the order of the program's description. On a device
  /// that copies them, rows that are not given are the first ones once more: zeros might be bad data where those are
  /// not. Of outputs the given ones alone are written.
  base::Status run(backend::Program &program, const std::vector<const void *> &inputs,
                   const std::vector<void *> &outputs, const backend::RunScalars &scalars, backend::Stream &stream,
                   Inputs place = Inputs::in_host_memory, PortRows rows = {});

 private:
  base::Status copy_inputs(const std::vector<backend::PortDescription> &ports, const std::vector<const void *> &inputs,
                           PortRows rows, backend::Stream &stream);
  /// Device pointers of ports that have been given memory.
  base::Result<std::vector<void *>> make_room(const std::vector<backend::PortDescription> &ports,
                                              std::vector<backend::Buffer> &buffers);

  /// For the copies of a run, `copies`: those of its inputs, too.
  void reserve_staging(const backend::ExecutableDescription &description, bool copies);
  /// Issues copies of the outputs, and waits for the stream, also after an error: copies read the caller's rows.
  base::Status copy_outputs(const std::vector<backend::PortDescription> &ports, const std::vector<void *> &outputs,
                            PortRows rows, base::Status status, backend::Stream &stream);

  const backend::DeviceRef device_;
  std::vector<backend::Buffer> inputs_, outputs_;
  CopyStaging staging_;
  std::vector<std::byte *> staged_outputs_;  // null: copied to where they belong
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PROGRAM_STAGED_IO_H_
