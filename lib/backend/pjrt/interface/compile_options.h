// SPDX-License-Identifier: Apache-2.0
//
// The message xla.CompileOptionsProto, as far as it is needed, in protobuf's wire format.
#ifndef TUTTI_BACKEND_PJRT_INTERFACE_COMPILE_OPTIONS_H_
#define TUTTI_BACKEND_PJRT_INTERFACE_COMPILE_OPTIONS_H_

#include <cstdint>
#include <span>
#include <string>

namespace tutti::impl::backend::pjrt {

/// For one program on as many devices as ids are given: replica r on device devices[r]. Without ids: on the first
/// `replicas` devices.
std::string compile_options(int64_t replicas, std::span<const int64_t> devices);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_INTERFACE_COMPILE_OPTIONS_H_
