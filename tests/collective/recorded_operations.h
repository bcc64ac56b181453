// SPDX-License-Identifier: Apache-2.0
//
// Operations of a rank on memory of its device, in pieces and recorded.
#ifndef TUTTI_TESTS_COLLECTIVE_RECORDED_OPERATIONS_H_
#define TUTTI_TESTS_COLLECTIVE_RECORDED_OPERATIONS_H_

#include <utility>
#include <vector>

#include "backend/backend.h"
#include "conformance/group_conformance.h"

namespace tutti::testing {

/// A buffer of the rank's device.
struct Memory {
  impl::backend::Stream stream;
  impl::backend::Buffer buffer;
  void *pointer = nullptr;

  static Result<Memory> make(impl::backend::Device &device, int64_t bytes) {
    Memory memory;
    TUTTI_ASSIGN(memory.stream, device.create_stream());
    TUTTI_ASSIGN(memory.buffer, device.allocate(bytes));
    memory.pointer = memory.buffer.device_pointer();
    return memory;
  }
  Operation operation(impl::collective::Kind kind, DType dtype, int64_t count) {
    return {.kind = kind, .dtype = dtype, .buffers = &pointer, .count = count, .label = "bucket 7", .stream = &stream};
  }
  template <typename T>
  Status write(const std::vector<T> &values) {
    TUTTI_TRY(buffer.write(0, values.data(), std::ssize(values) * static_cast<int64_t>(sizeof(T)), &stream));
    return stream.synchronize();
  }
  template <typename T>
  Result<std::vector<T>> read(int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    TUTTI_TRY(buffer.read(0, values.data(), count * static_cast<int64_t>(sizeof(T)), &stream));
    TUTTI_TRY(stream.synchronize());
    return values;
  }
};

constexpr int64_t kRecorded = 301;

/// Sums, slices and copies of one step on the memory of a rank; in pieces, or as they are recorded.
inline Status step_of(Group &group, Memory &memory, const std::vector<Slice> &slices) {
  TUTTI_TRY(group.run(memory.operation(impl::collective::Kind::all_reduce, DType::f32, kRecorded)));
  Operation scattered = memory.operation(impl::collective::Kind::reduce_scatter, DType::f32, kRecorded);
  scattered.slices = slices.data();
  scattered.slice_count = static_cast<int32_t>(slices.size());
  TUTTI_TRY(group.run(scattered));
  scattered.kind = impl::collective::Kind::all_gather;
  return group.run(scattered);
}

inline Result<impl::backend::Recording> record_step(Group &group, Memory &memory, const std::vector<Slice> &slices,
                                                    impl::collective::RecordedOperations &operations) {
  TUTTI_TRY(group.begin_recording());
  TUTTI_TRY(memory.stream.begin_recording());
  const Status issued = step_of(group, memory, slices);
  operations = group.end_recording();
  Result<impl::backend::Recording> recording = memory.stream.end_recording();
  TUTTI_TRY(issued);
  return recording;
}

/// What is recorded gives the same bits as in pieces, as often as it is done, on what lies there then; operations in
/// pieces and words of the host go between.
inline Status check_recordings_of(Group &group, impl::backend::Device &device) {
  TUTTI_TRY(group.check_recording());
  impl::backend::Stream unrecorded;
  if (group.record_settle(unrecorded).code() != impl::base::Code::failed_precondition)
    return impl::base::internal_error("a place where nothing is recorded");
  TUTTI_ASSIGN(Memory memory, Memory::make(device, kRecorded * 4));
  std::vector<Slice> slices;
  for (int32_t r = 0; r < group.size(); ++r)
    slices.push_back({kRecorded * r / group.size(), kRecorded * (r + 1) / group.size(), group.size() - 1 - r});
  const auto values_of = [&](int round) {
    std::vector<float> values;
    for (int64_t i = 0; i < kRecorded; ++i)
      values.push_back(1.0f / static_cast<float>(1 + i + group.rank() * 3 + round));
    return values;
  };
  std::vector<std::vector<float>> in_pieces;
  for (int round = 0; round < 4; ++round) {
    TUTTI_TRY(memory.write(values_of(round)));
    TUTTI_TRY(step_of(group, memory, slices));
    TUTTI_TRY(group.settle());
    TUTTI_ASSIGN(std::vector<float> values, memory.read<float>(kRecorded));
    in_pieces.push_back(std::move(values));
  }
  impl::collective::RecordedOperations operations;
  TUTTI_ASSIGN(impl::backend::Recording recording, record_step(group, memory, slices, operations));
  if (operations.operations != 3 || operations.elements != 3 * kRecorded)
    return impl::base::internal_error(operations.operations, " operations were recorded");
  for (int round = 0; round < 2 * impl::collective::max_pending_operations; ++round) {
    TUTTI_TRY(memory.write(values_of(round % 4)));
    TUTTI_ASSIGN(const impl::collective::Ticket ticket, group.replay(operations, recording, memory.stream));
    if (round % 3 == 0) TUTTI_TRY(group.barrier("between"));
    TUTTI_TRY(group.wait(ticket));
    TUTTI_ASSIGN(const std::vector<float> values, memory.read<float>(kRecorded));
    if (values != in_pieces[static_cast<size_t>(round % 4)])
      return impl::base::internal_error("replay ", round, " gives other bits");
    if (round % 5 != 0) continue;
    TUTTI_TRY(step_of(group, memory, slices));
    TUTTI_TRY(group.settle());
  }
  return group.settle();
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_COLLECTIVE_RECORDED_OPERATIONS_H_
