// SPDX-License-Identifier: Apache-2.0
#include "distribute/device_ports.h"

#include <algorithm>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status DevicePorts::run(backend::Program &program, const std::vector<const void *> &inputs,
                        const std::vector<void *> &outputs, const backend::RunScalars &scalars, backend::Stream &stream,
                        Inputs place, PortRows rows) {
  if (device_->backend().has_host_memory()) {
    TUTTI_TRY(program.run(0, {inputs.data(), outputs.data(), scalars.data()}, stream));
    return stream.synchronize();
  }
  const backend::ExecutableDescription &description = program.executable()->description();
  std::vector<const void *> device_inputs = inputs;
  const bool copies = place == Inputs::in_host_memory;
  if (copies) {
    TUTTI_ASSIGN(const std::vector<void *> room, make_room(description.inputs, inputs_));
    device_inputs.assign(room.begin(), room.end());
  }
  TUTTI_ASSIGN(const std::vector<void *> device_outputs, make_room(description.outputs, outputs_));
  Status status;
  if (copies) status = copy_inputs(description.inputs, inputs, rows, stream);
  if (status.ok()) status = program.run(0, {device_inputs.data(), device_outputs.data(), scalars.data()}, stream);
  for (size_t i = 0; i < outputs.size() && status.ok(); ++i)
    status = outputs_[i].read(0, outputs[i], rows.given_bytes(description.outputs[i].bytes), &stream);
  // Also after an error: the copies read the caller's rows.
  const Status done = stream.synchronize();
  return status.ok() ? done : status;
}

Status DevicePorts::copy_inputs(const std::vector<backend::PortDescription> &ports,
                                const std::vector<const void *> &inputs, PortRows rows, backend::Stream &stream) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t given = rows.given_bytes(ports[i].bytes), more = ports[i].bytes - given;
    TUTTI_TRY(inputs_[i].write(0, inputs[i], given, &stream));
    if (more > 0) TUTTI_TRY(inputs_[i].write(given, inputs[i], more, &stream));
  }
  return Status();
}

Result<std::vector<void *>> DevicePorts::make_room(const std::vector<backend::PortDescription> &ports,
                                                   std::vector<backend::Buffer> &buffers) {
  std::vector<void *> pointers;
  buffers.resize(std::max(buffers.size(), ports.size()));
  for (size_t i = 0; i < ports.size(); ++i) {
    if (buffers[i].empty() || buffers[i].size_bytes() < ports[i].bytes) {
      buffers[i] = backend::Buffer();  // before the larger one, so that both need not fit
      TUTTI_ASSIGN(buffers[i], device_->allocate(std::max<int64_t>(ports[i].bytes, 1)));
    }
    pointers.push_back(buffers[i].device_pointer());
  }
  return pointers;
}

}  // namespace tutti::impl::distribute
