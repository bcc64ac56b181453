// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/interface/compile_options.h"

#include <string_view>

namespace tutti::impl::backend::pjrt {

namespace {

// Fields of CompileOptionsProto, ExecutableBuildOptionsProto, DeviceAssignmentProto and its ComputationDevice.
constexpr int kBuildOptions = 3;
constexpr int kReplicas = 4, kPartitions = 5, kAssignment = 9;
constexpr int kReplicaCount = 1, kComputationCount = 2, kComputationDevices = 3;
constexpr int kDeviceIds = 1;

/// Groups of 7 bits, lowest first.
void append_number(std::string &out, uint64_t value) {
  for (; value >= 128; value >>= 7)
    out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

void append_integer(std::string &out, int field, int64_t value) {
  append_number(out, static_cast<uint64_t>(field) << 3);
  append_number(out, static_cast<uint64_t>(value));
}

void append_message(std::string &out, int field, std::string_view bytes) {
  append_number(out, static_cast<uint64_t>(field) << 3 | 2);
  append_number(out, bytes.size());
  out.append(bytes);
}

}  // namespace

std::string compile_options(int64_t replicas, std::span<const int64_t> devices) {
  std::string build;
  append_integer(build, kReplicas, replicas);
  append_integer(build, kPartitions, 1);
  if (!devices.empty()) {
    std::string ids, computation, assignment;
    for (const int64_t id : devices)
      append_number(ids, static_cast<uint64_t>(id));
    append_message(computation, kDeviceIds, ids);
    append_integer(assignment, kReplicaCount, replicas);
    append_integer(assignment, kComputationCount, 1);
    append_message(assignment, kComputationDevices, computation);
    append_message(build, kAssignment, assignment);
  }
  std::string options;
  append_message(options, kBuildOptions, build);
  return options;
}

}  // namespace tutti::impl::backend::pjrt
