// SPDX-License-Identifier: Apache-2.0
#include "distribute/weights/matrix_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "base/text.h"

namespace tutti::impl::distribute {
namespace {

using base::Status;
using graph::VariableSpec;
using tensor::Tensor;

using Vector = std::vector<double>;

double dot(const Vector &a, const Vector &b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// Takes what lies along `unit` away.
void subtract(Vector &vector, const Vector &unit, double share) {
  for (size_t i = 0; i < vector.size(); ++i)
    vector[i] -= share * unit[i];
}

/// By Gram and Schmidt, each vector twice, so that the result is orthogonal to all digits (Giraud et al., 2005).
void orthonormalize(std::vector<Vector> &vectors) {
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (int round = 0; round < 2; ++round) {
      for (size_t j = 0; j < i; ++j)
        subtract(vectors[i], vectors[j], dot(vectors[i], vectors[j]));
    }
    const double norm = std::sqrt(dot(vectors[i], vectors[i]));
    for (double &element : vectors[i])
      element /= norm;
  }
}

Status check_axes(const VariableSpec &variable, bool is_allowed, std::string_view expected) {
  if (is_allowed) return Status();
  return base::invalid_argument("variable '", variable.name, "' has initializer '", variable.initializer.name,
                                "' and shape ", graph::to_string(graph::to_dims(variable.dims)), ", expected ",
                                expected);
}

/// What numbers of a dtype are computed in.
template <typename T>
using Computed = std::conditional_t<std::is_arithmetic_v<T>, double, float>;

/// Calls `visit(row, column, number)` for each element, which becomes what the number is then.
template <typename Visit>
void for_elements(Tensor &value, int64_t columns, const Visit &visit) {
  tensor::visit_dtype(value.dtype(), [&]<typename T>(T) {
    T *const data = value.mutable_data_as<T>();
    for (int64_t i = 0; i < value.elements(); ++i) {
      double number = static_cast<Computed<T>>(data[i]);
      visit(static_cast<size_t>(i / columns), static_cast<size_t>(i % columns), number);
      data[i] = static_cast<T>(static_cast<Computed<T>>(number));
    }
  });
}

}  // namespace

Status make_identity(const VariableSpec &variable, double gain, Tensor &value) {
  TUTTI_TRY(check_axes(variable, variable.dims.size() == 2, "two axes"));
  for_elements(value, variable.dims[1],
               [&](size_t row, size_t column, double &number) { number = row == column ? gain : 0; });
  return Status();
}

Status make_orthogonal(const VariableSpec &variable, double gain, Tensor &value) {
  TUTTI_TRY(check_axes(variable, variable.dims.size() >= 2, "two axes or more"));
  if (value.elements() == 0) return Status();
  const int64_t columns = variable.dims.back(), rows = value.elements() / columns;
  const bool is_wide = rows < columns;
  std::vector<Vector> vectors(static_cast<size_t>(std::min(rows, columns)),
                              Vector(static_cast<size_t>(std::max(rows, columns))));
  const auto at = [&](size_t row, size_t column) -> double & {
    return is_wide ? vectors[row][column] : vectors[column][row];
  };
  for_elements(value, columns, [&](size_t row, size_t column, double &number) { at(row, column) = number; });
  orthonormalize(vectors);
  for_elements(value, columns, [&](size_t row, size_t column, double &number) { number = gain * at(row, column); });
  return Status();
}

}  // namespace tutti::impl::distribute
