// SPDX-License-Identifier: Apache-2.0
#include "monitor/tensor_numbers.h"

#include <type_traits>

namespace tutti::impl::monitor {

base::Status for_numbers(const tensor::Tensor &tensor, base::FunctionRef<void(double)> take) {
  bool has_numbers = false;
  tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T> || std::is_constructible_v<float, T>) {
      using Number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
      has_numbers = true;
      const T *const elements = static_cast<const T *>(tensor.data());
      for (int64_t i = 0; i < tensor.elements(); ++i)
        take(static_cast<double>(static_cast<Number>(elements[i])));
    }
  });
  return has_numbers ? base::Status() : base::invalid_argument("expected numbers, got ", tensor.describe());
}

base::Result<std::vector<double>> numbers_of(const tensor::Tensor &tensor) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<size_t>(tensor.elements()));
  TUTTI_TRY(for_numbers(tensor, [&](double number) { numbers.push_back(number); }));
  return numbers;
}

}  // namespace tutti::impl::monitor
