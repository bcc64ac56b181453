// SPDX-License-Identifier: Apache-2.0
//
// A plug-in whose devices the host combines, as a backend that lowers collectives (TUTTI_BACKEND_LOWERS_COLLECTIVES): a
// program of several devices runs on all of them when the last one has been run, and its reductions are done here, in
// between. What PJRT does, for the emulated GPU.
//
//   TUTTI_ASSIGN(BackendRef backend, open_lowering_backend("/.../tutti-emulated_gpu.so", options, host));
//
// Threads: as any backend.
#ifndef TUTTI_TESTS_DISTRIBUTE_LOWERING_BACKEND_H_
#define TUTTI_TESTS_DISTRIBUTE_LOWERING_BACKEND_H_

#include <cstdint>
#include <string>

#include "backend/backend.h"

namespace tutti::testing {

/// Of one plug-in in the life of a process.
impl::base::Result<impl::backend::BackendRef> open_lowering_backend(const std::string &path, const std::string &options,
                                                                    const impl::backend::HostOptions &host);

/// Programs of several devices that have run.
int64_t lowered_runs();

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_LOWERING_BACKEND_H_
