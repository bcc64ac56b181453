// SPDX-License-Identifier: Apache-2.0
#include "distribute/weights/matrix_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "graph/initializer.h"

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

namespace {

/// A matrix by its rows.
struct Matrix {
  std::vector<Vector> rows;
  size_t columns = 0;

  explicit Matrix(const Tensor &tensor) {
    const tensor::Shape &shape = tensor.shape();
    const int64_t width = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
    columns = static_cast<size_t>(width);
    rows.assign(static_cast<size_t>(width == 0 ? 0 : tensor.elements() / width), Vector(columns));
    tensor::visit_dtype(tensor.dtype(), [&]<typename T>(T) {
      const T *const data = tensor.data_as<T>();
      for (size_t i = 0; i < rows.size() * columns; ++i)
        rows[i / columns][i % columns] = static_cast<Computed<T>>(data[i]);
    });
  }

  Vector column_norms() const {
    Vector norms(columns);
    for (const Vector &row : rows)
      for (size_t c = 0; c < columns; ++c)
        norms[c] += row[c] * row[c];
    for (double &norm : norms)
      norm = std::sqrt(norm);
    return norms;
  }
  Vector times(const Vector &vector) const {
    Vector product;
    for (const Vector &row : rows)
      product.push_back(dot(row, vector));
    return product;
  }
  Vector transposed_times(const Vector &vector) const {
    Vector product(columns);
    for (size_t r = 0; r < rows.size(); ++r)
      subtract(product, rows[r], -vector[r]);
    return product;
  }
};

/// The vector itself where it is one of zeros.
void normalize(Vector &vector) {
  const double norm = std::sqrt(dot(vector, vector));
  for (double &element : vector)
    element /= norm > 0 ? norm : 1;
}

/// The vectors of the largest singular value, for columns and for rows, by so many rounds of power iteration that
/// training can go on from there; PyTorch begins with 15.
std::pair<Vector, Vector> singular_vectors(const Matrix &matrix) {
  constexpr int kRounds = 100;
  Vector of_rows(matrix.rows.size()), of_columns;
  for (size_t i = 0; i < of_rows.size(); ++i)  // no two alike
    of_rows[i] = 1 + 0.5 * std::sin(static_cast<double>(i + 1));
  normalize(of_rows);
  for (int round = 0; round < kRounds; ++round) {
    of_columns = matrix.transposed_times(of_rows);
    normalize(of_columns);
    of_rows = matrix.times(of_columns);
    normalize(of_rows);
  }
  return {of_columns, of_rows};
}

}  // namespace

Status make_derived(const VariableSpec &variable, const Tensor &source, Tensor &value) {
  const Matrix matrix(source);
  const std::string &kind = variable.initializer.name;
  Vector numbers;
  if (kind == graph::kColumnNorms) {
    numbers = matrix.column_norms();
  } else {
    auto [of_columns, of_rows] = singular_vectors(matrix);
    numbers = kind == graph::kLeftVector ? std::move(of_columns) : std::move(of_rows);
  }
  TUTTI_TRY(check_axes(variable, value.elements() == static_cast<int64_t>(numbers.size()),
                       base::concat(numbers.size(), " elements")));
  for_elements(value, 1, [&](size_t i, size_t, double &number) { number = numbers[i]; });
  return Status();
}

}  // namespace tutti::impl::distribute
