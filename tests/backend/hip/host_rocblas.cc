// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/host_rocblas.h"

#include <cstdint>
#include <cstring>

#include "backend/hip/host_hip.h"
#include "tensor/half.h"

using namespace tutti::impl;
using tutti::testing::host_rocblas;
using tutti::testing::HostRocblas;

// ---- the library ----

namespace {

bool is_query = false;

rocblas_handle handle_of(HostRocblas &host) { return reinterpret_cast<rocblas_handle>(&host); }

rocblas_status create_handle(rocblas_handle *handle) {
  ++host_rocblas().handles;
  *handle = handle_of(host_rocblas());
  return rocblas_status_success;
}
rocblas_status destroy_handle(rocblas_handle) {
  --host_rocblas().handles;
  return rocblas_status_success;
}
rocblas_status set_stream(rocblas_handle, hipStream_t) { return rocblas_status_success; }
rocblas_status set_workspace(rocblas_handle, void *address, size_t bytes) {
  std::memset(address, 0x55, bytes);
  host_rocblas().workspace = bytes;
  return rocblas_status_success;
}
rocblas_status set_atomics_mode(rocblas_handle, rocblas_atomics_mode mode) {
  host_rocblas().adds_atomically = mode == rocblas_atomics_allowed;
  return rocblas_status_success;
}
rocblas_status start_query(rocblas_handle) {
  is_query = true;
  return rocblas_status_success;
}
rocblas_status stop_query(rocblas_handle, size_t *bytes) {
  is_query = false;
  *bytes = host_rocblas().wanted_bytes;
  return rocblas_status_success;
}
const char *status_to_string(rocblas_status) { return "no"; }
rocblas_status get_version_string(char *text, size_t bytes) {
  std::strncpy(text, "0.0.host", bytes);
  return rocblas_status_success;
}

double load(rocblas_datatype type, const void *array, int64_t index) {
  switch (type) {
    case rocblas_datatype_f64_r:
      return static_cast<const double *>(array)[index];
    case rocblas_datatype_f16_r:
      return static_cast<double>(tensor::half_bits_to_float(static_cast<const uint16_t *>(array)[index]));
    case rocblas_datatype_bf16_r:
      return static_cast<double>(tensor::bfloat16_bits_to_float(static_cast<const uint16_t *>(array)[index]));
    default:
      return static_cast<double>(static_cast<const float *>(array)[index]);
  }
}

void store(rocblas_datatype type, void *array, int64_t index, double value) {
  const auto narrow = static_cast<float>(value);
  switch (type) {
    case rocblas_datatype_f64_r:
      static_cast<double *>(array)[index] = value;
      break;
    case rocblas_datatype_f16_r:
      static_cast<uint16_t *>(array)[index] = tensor::float_to_half_bits(narrow);
      break;
    case rocblas_datatype_bf16_r:
      static_cast<uint16_t *>(array)[index] = tensor::float_to_bfloat16_bits(narrow);
      break;
    default:
      static_cast<float *>(array)[index] = narrow;
  }
}

/// One matrix of a batch, as the operation turns it.
struct Matrix {
  const void *data;
  rocblas_datatype type;
  int64_t leading, first;
  bool is_turned;

  double at(int64_t row, int64_t column) const {
    return load(type, data, first + (is_turned ? column + row * leading : row + column * leading));
  }
};

rocblas_status multiply(rocblas_handle, rocblas_operation a_operation, rocblas_operation b_operation, rocblas_int m,
                        rocblas_int n, rocblas_int k, const void *alpha, const void *a, rocblas_datatype a_type,
                        rocblas_int a_leading, rocblas_stride a_step, const void *b, rocblas_datatype b_type,
                        rocblas_int b_leading, rocblas_stride b_step, const void *beta, const void *c,
                        rocblas_datatype c_type, rocblas_int c_leading, rocblas_stride c_step, void *d,
                        rocblas_datatype d_type, rocblas_int d_leading, rocblas_stride d_step, rocblas_int batches,
                        rocblas_datatype compute, rocblas_gemm_algo, int32_t, uint32_t) {
  if (is_query) return host_rocblas().wanted_bytes > 0 ? rocblas_status_size_increased : rocblas_status_size_unchanged;
  ++host_rocblas().calls;
  if (!tutti::testing::host_hip().is_relaxed) ++host_rocblas().strict_calls;
  if (host_rocblas().answer != rocblas_status_success) return host_rocblas().answer;
  const double scale = load(compute, alpha, 0), addend_scale = load(compute, beta, 0);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const Matrix left{a, a_type, a_leading, batch * a_step, a_operation == rocblas_operation_transpose};
    const Matrix right{b, b_type, b_leading, batch * b_step, b_operation == rocblas_operation_transpose};
    const Matrix addend{c, c_type, c_leading, batch * c_step, false};
    for (int64_t column = 0; column < n; ++column) {
      for (int64_t row = 0; row < m; ++row) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += left.at(row, p) * right.at(p, column);
        sum *= scale;
        if (addend_scale != 0) sum += addend_scale * addend.at(row, column);
        store(d_type, d, batch * d_step + column * d_leading + row, sum);
      }
    }
  }
  return rocblas_status_success;
}

}  // namespace

HostRocblas &tutti::testing::host_rocblas() {
  static HostRocblas host = [] {
    HostRocblas made;
    made.functions = {create_handle, destroy_handle, set_stream, set_workspace,    set_atomics_mode,
                      start_query,   stop_query,     multiply,   status_to_string, get_version_string};
    return made;
  }();
  return host;
}

// ---- rocblas.h ----

base::Result<const backend::hip::Rocblas *> backend::hip::rocblas() {
  if (host_rocblas().is_missing) return base::unavailable("librocblas.so is not here");
  return static_cast<const Rocblas *>(&host_rocblas().functions);
}

base::Status backend::hip::status_of(const Rocblas &rocblas, rocblas_status status, std::string_view action) {
  if (status == rocblas_status_success) return base::Status();
  return base::internal_error(action, ": rocBLAS says ", rocblas.status_to_string(status));
}
