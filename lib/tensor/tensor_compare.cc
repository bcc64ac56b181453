// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "tensor/bytes_tensor.h"
#include "tensor/tensor.h"

namespace tutti::impl::tensor {

namespace {

bool same_kind(const Tensor &a, const Tensor &b) {
  return a.empty() == b.empty() && a.dtype() == b.dtype() && a.shape() == b.shape();
}

bool same_texts(const Tensor &a, const Tensor &b) {
  for (int64_t i = 0; i < a.elements(); ++i) {
    if (bytes_at(a, i) != bytes_at(b, i)) return false;
  }
  return true;
}

template <typename T>
double as_double(T value) {
  if constexpr (requires { value.bits; }) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

// The distance of two integers without loss: a double does not know all 64-bit ones.
template <typename T>
double distance(T a, T b) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const uint64_t difference = a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                      : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
    return static_cast<double>(difference);
  } else {
    return std::abs(as_double(a) - as_double(b));
  }
}

template <typename T>
bool is_close(T a, T b, double relative, double absolute) {
  const double x = as_double(a), y = as_double(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  return distance(a, b) <= absolute + relative * std::abs(y);
}

template <typename T>
base::Status compare_elements(const Tensor &a, const Tensor &b, double relative, double absolute) {
  const T *left = a.data_as<T>(), *right = b.data_as<T>();
  for (int64_t i = 0; i < a.elements(); ++i) {
    if (is_close(left[i], right[i], relative, absolute)) continue;
    return base::invalid_argument("element ", i, " of ", a.describe(), " differs: ", as_double(left[i]), " and ",
                                  as_double(right[i]));
  }
  return base::Status();
}

}  // namespace

bool identical(const Tensor &a, const Tensor &b) {
  if (!same_kind(a, b)) return false;
  if (a.elements() == 0) return true;
  if (a.dtype() == DType::bytes) return same_texts(a, b);
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

base::Status compare_close(const Tensor &a, const Tensor &b, double relative, double absolute) {
  if (!same_kind(a, b)) return base::invalid_argument("tensors differ in kind: ", a.describe(), " and ", b.describe());
  if (a.empty()) return base::Status();
  if (a.dtype() == DType::bytes) {
    return same_texts(a, b) ? base::Status() : base::invalid_argument("texts of ", a.describe(), " differ");
  }
  base::Status status;
  visit_dtype(a.dtype(), [&]<typename T>(T) { status = compare_elements<T>(a, b, relative, absolute); });
  return status;
}

}  // namespace tutti::impl::tensor
