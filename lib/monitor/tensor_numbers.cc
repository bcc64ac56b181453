// SPDX-License-Identifier: Apache-2.0
#include "monitor/tensor_numbers.h"

#include <type_traits>

namespace tutti::impl::monitor {

base::Result<std::vector<double>> numbers_of(const tensor::Tensor &tensor) {
  std::vector<double> numbers;
  bool has_numbers = false;
  tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T> || std::is_constructible_v<float, T>) {
      using Number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
      has_numbers = true;
      const T *const elements = static_cast<const T *>(tensor.data());
      numbers.reserve(static_cast<size_t>(tensor.elements()));
      for (int64_t i = 0; i < tensor.elements(); ++i)
        numbers.push_back(static_cast<double>(static_cast<Number>(elements[i])));
    }
  });
  if (!has_numbers) return base::invalid_argument("expected numbers, got ", tensor.describe());
  return numbers;
}

}  // namespace tutti::impl::monitor
