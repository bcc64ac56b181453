// SPDX-License-Identifier: Apache-2.0
#include "collective/group.h"

namespace tutti::impl::collective {

const char *name(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::all_gather:
      return "all_gather";
    case Kind::broadcast:
      return "broadcast";
    case Kind::gather:
      return "gather";
    case Kind::barrier:
      return "barrier";
  }
  return "unknown";
}

base::Result<Ticket> Group::announce(const Operation &operation) {
  return base::unimplemented("announcing ", name(operation.kind), " '", operation.label, "' in a group of one process");
}

base::Status Group::check_recording() {
  return base::unimplemented("operations that involve the host cannot be recorded");
}

base::Status Group::begin_recording() { return check_recording(); }

base::Status Group::record_settle(backend::Stream &) { return check_recording(); }

base::Result<Ticket> Group::replay(const RecordedOperations &, backend::Recording &, backend::Stream &) {
  return base::failed_precondition("nothing was recorded");
}

base::Status Group::run(const Operation &operation) {
  TUTTI_ASSIGN(const Ticket ticket, begin(operation));
  return wait(ticket);
}

base::Status Group::all_reduce(std::span<void *const> buffers, int64_t count, tensor::DType dtype, Reduction reduction,
                               const char *label) {
  return run({.kind = Kind::all_reduce,
              .reduction = reduction,
              .dtype = dtype,
              .buffers = buffers.data(),
              .count = count,
              .label = label});
}

base::Status Group::reduce_scatter(std::span<void *const> buffers, std::span<const Slice> slices, int64_t count,
                                   tensor::DType dtype, Reduction reduction, const char *label) {
  return run({.kind = Kind::reduce_scatter,
              .reduction = reduction,
              .dtype = dtype,
              .buffers = buffers.data(),
              .count = count,
              .slices = slices.data(),
              .slice_count = static_cast<int32_t>(slices.size()),
              .label = label});
}

base::Status Group::all_gather(std::span<void *const> buffers, std::span<const Slice> slices, int64_t count,
                               tensor::DType dtype, const char *label) {
  return run({.kind = Kind::all_gather,
              .dtype = dtype,
              .buffers = buffers.data(),
              .count = count,
              .slices = slices.data(),
              .slice_count = static_cast<int32_t>(slices.size()),
              .label = label});
}

base::Status Group::broadcast(std::span<void *const> buffers, int64_t count, tensor::DType dtype, int32_t root,
                              const char *label) {
  return run({.kind = Kind::broadcast,
              .dtype = dtype,
              .buffers = buffers.data(),
              .count = count,
              .root = root,
              .label = label});
}

base::Status Group::gather(std::span<void *const> buffers, int64_t count, tensor::DType dtype, int32_t root,
                           void *gathered, const char *label) {
  return run({.kind = Kind::gather,
              .dtype = dtype,
              .buffers = buffers.data(),
              .count = count,
              .root = root,
              .gathered = gathered,
              .label = label});
}

base::Status Group::barrier(const char *label) { return run({.kind = Kind::barrier, .label = label}); }

}  // namespace tutti::impl::collective
