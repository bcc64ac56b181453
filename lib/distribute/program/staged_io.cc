// SPDX-License-Identifier: Apache-2.0
#include "distribute/program/staged_io.h"

#include <algorithm>
#include <cstring>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status StagedIo::run(backend::Program &program, const std::vector<const void *> &inputs,
                     const std::vector<void *> &outputs, const backend::RunScalars &scalars, backend::Stream &stream,
                     Inputs place, PortRows rows) {
  if (device_->backend().has_host_memory()) {
    return stream.finish(program.run(0, {inputs.data(), outputs.data(), scalars.data()}, stream));
  }
  const backend::ExecutableDescription &description = program.executable()->description();
  std::vector<const void *> device_inputs = inputs;
  const bool copies = place == Inputs::in_host_memory;
  if (copies) {
    TUTTI_ASSIGN(const std::vector<void *> room, make_room(description.inputs, inputs_));
    device_inputs.assign(room.begin(), room.end());
  }
  const Result<std::vector<void *>> device_outputs = make_room(description.outputs, outputs_);
  reserve_staging(description, copies);
  Status status = device_outputs.status();
  if (copies && status.ok()) status = copy_inputs(description.inputs, inputs, rows, stream);
  if (status.ok()) status = program.run(0, {device_inputs.data(), device_outputs->data(), scalars.data()}, stream);
  return copy_outputs(description.outputs, outputs, rows, std::move(status), stream);
}

void StagedIo::reserve_staging(const backend::ExecutableDescription &description, bool copies) {
  int64_t bytes = 0;
  for (size_t i = 0; copies && i < description.inputs.size(); ++i)
    bytes += CopyStaging::aligned(description.inputs[i].bytes);
  for (const backend::PortDescription &port : description.outputs)
    bytes += CopyStaging::aligned(port.bytes);
  staging_.reserve(*device_, bytes);
}

Status StagedIo::copy_outputs(const std::vector<backend::PortDescription> &ports, const std::vector<void *> &outputs,
                              PortRows rows, Status status, backend::Stream &stream) {
  staged_outputs_.assign(outputs.size(), nullptr);
  for (size_t i = 0; i < outputs.size() && status.ok(); ++i) {
    const int64_t given = rows.given_bytes(ports[i].bytes);
    staged_outputs_[i] = staging_.take(given);
    void *const to = staged_outputs_[i] != nullptr ? staged_outputs_[i] : outputs[i];
    status = outputs_[i].read(0, to, given, &stream);
  }
  status = stream.finish(std::move(status));
  for (size_t i = 0; i < outputs.size() && status.ok(); ++i) {
    if (staged_outputs_[i] == nullptr) continue;
    std::memcpy(outputs[i], staged_outputs_[i], static_cast<size_t>(rows.given_bytes(ports[i].bytes)));
  }
  return status;
}

Status StagedIo::copy_inputs(const std::vector<backend::PortDescription> &ports,
                             const std::vector<const void *> &inputs, PortRows rows, backend::Stream &stream) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t given = rows.given_bytes(ports[i].bytes), more = ports[i].bytes - given;
    const void *const staged = staging_.stage(inputs[i], given);
    TUTTI_TRY(inputs_[i].write(0, staged, given, &stream));
    if (more > 0) TUTTI_TRY(inputs_[i].write(given, staged, more, &stream));
  }
  return Status();
}

Result<std::vector<void *>> StagedIo::make_room(const std::vector<backend::PortDescription> &ports,
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
