// SPDX-License-Identifier: Apache-2.0
//
// The backend that benchmarks run on: the best one of the build, chosen by the build files.
#ifndef TUTTI_TESTS_BENCH_BENCH_BACKEND_H_
#define TUTTI_TESTS_BENCH_BENCH_BACKEND_H_

#include <tutti/plugin/backend.h>

#include <cstdint>

namespace tutti::testing {

/// Its entry, for backend::Backend::create().
const tutti_backend_api *bench_backend(uint32_t host_abi_version);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BENCH_BENCH_BACKEND_H_
