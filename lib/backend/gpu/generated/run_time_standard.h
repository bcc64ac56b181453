// SPDX-License-Identifier: Apache-2.0
//
// What kernels that are compiled at run time use of the standard library, whose headers the compiler does not have.
// Included by a platform's <tutti_gpu.h> for them, behind its types of fixed widths.
#ifndef TUTTI_BACKEND_GPU_GENERATED_RUN_TIME_STANDARD_H_
#define TUTTI_BACKEND_GPU_GENERATED_RUN_TIME_STANDARD_H_

static_assert(sizeof(int64_t) == 8 && sizeof(void *) == 8);

#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32767 - 1)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-INT64_MAX - 1)
#define INT64_MAX static_cast<int64_t>(9223372036854775807)
#define UINT64_MAX static_cast<uint64_t>(18446744073709551615U)

namespace std {
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::ceil;
using ::cos;
using ::erf;
using ::exp;
using ::expm1;
using ::fabs;
using ::floor;
using ::fmod;
using ::log;
using ::log1p;
using ::pow;
using ::rint;
using ::sin;
using ::sqrt;
using ::tan;
using ::tanh;
}  // namespace std

inline constexpr int kBlockThreads = 256;

/// In front of a loop of a fixed count.
#define TUTTI_UNROLL _Pragma("unroll")

#endif  // TUTTI_BACKEND_GPU_GENERATED_RUN_TIME_STANDARD_H_
