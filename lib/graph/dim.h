// SPDX-License-Identifier: Apache-2.0
//
// Dim: one dimension of a shape: a constant, a named symbol ("batch"), or an integer expression over symbols.
//
// Every Dim is kept in one canonical form, a sum of products of atoms (symbols and floordiv, ceildiv, max, min of
// canonical Dims), so two dimensions are equal exactly when their forms are equal; there is no solver behind it.
// Symbols stand for non-negative integers. The symbol "batch" is the number of rows of the batch (§ batch.h).
//
//   Dim rows = Dim::symbol("batch");
//   (rows * 28) * 28 == rows * 784                      // true
//   floor_divide(rows * 784, 784) == rows               // true
//   ceil_divide(rows, 2).to_string()                    // "floor((batch + 1) / 2)"
//
// Threads: a Dim is an immutable value; copies share the expression. Arithmetic never fails: a result that overflows or
// whose expression grows beyond the bounds below becomes Dim::unrepresentable(), which shape inference refuses.
#ifndef TUTTI_GRAPH_DIM_H_
#define TUTTI_GRAPH_DIM_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tutti::impl::graph {

/// What the symbols of a graph are bound to when it is specialised, for example {"batch": 32}.
using SymbolBindings = std::map<std::string, int64_t, std::less<>>;

/// Name of the symbol that counts the rows of the batch.
inline constexpr std::string_view kBatchSymbol = "batch";

/// Bounds of one expression; text beyond them is refused, arithmetic beyond them is unrepresentable.
inline constexpr int kMaximumDimTerms = 64;
inline constexpr int kMaximumDimDepth = 16;
inline constexpr size_t kMaximumDimText = 4096;

class Dim {
 public:
  /// A constant. Implicit on purpose: Dims{batch, 28, 28}.
  Dim(int64_t value = 0) : constant_(value) {}  // NOLINT

  /// A symbol: letters, digits, '_', '.', '/', '-', not beginning with a digit or '-'. Any other name is
  /// unrepresentable.
  static Dim symbol(std::string_view name);
  /// What arithmetic yields that has no bounded exact value. Unequal to everything but itself.
  static Dim unrepresentable();
  /// The inverse of to_string(); also accepts forms that are not canonical.
  static base::Result<Dim> parse(std::string_view text);

  bool is_constant() const { return expression_ == nullptr; }
  bool is_representable() const;
  /// Value of a constant; 0 for anything else.
  int64_t constant() const { return is_constant() ? constant_ : 0; }

  /// Whether `symbol` occurs anywhere in the expression.
  bool mentions(std::string_view symbol) const;
  /// All symbols, sorted, each once.
  std::vector<std::string> symbols() const;
  /// c when this is exactly c × symbol with a constant c ≥ 1.
  std::optional<int64_t> factor_of(std::string_view symbol) const;
  /// The quotient when the division is exact for every value of the symbols; nothing when that is not evident.
  std::optional<Dim> divide_exactly(const Dim &divisor) const;

  /// The value under `bindings`; an error for an unbound symbol, an overflow or a division by zero.
  base::Result<int64_t> evaluate(const SymbolBindings &bindings) const;
  /// The same dimension with some symbols replaced by other dimensions.
  Dim substitute(const std::map<std::string, Dim, std::less<>> &replacements) const;

  /// The form of files, which parse() reads: "28", "batch", "(mul 28 batch)", "(add (mul 2 batch) height 3)".
  std::string to_code() const;
  /// The form of messages: "28", "batch", "28*batch", "2*batch + height + 3", "max(batch, 1)", "floor(batch / 2)".
  std::string to_string() const;

  /// A total order over forms (constants first); used to keep forms canonical.
  static int compare(const Dim &left, const Dim &right);

  friend bool operator==(const Dim &left, const Dim &right) { return compare(left, right) == 0; }
  friend Dim operator+(const Dim &left, const Dim &right);
  friend Dim operator-(const Dim &left, const Dim &right);
  friend Dim operator*(const Dim &left, const Dim &right);
  /// Division rounding towards negative and positive infinity.
  friend Dim floor_divide(const Dim &left, const Dim &right);
  friend Dim ceil_divide(const Dim &left, const Dim &right);
  friend Dim maximum(const Dim &left, const Dim &right);
  friend Dim minimum(const Dim &left, const Dim &right);

  struct Expression;  // canonical sum of products, private to dim.cc

 private:
  friend struct DimAlgebra;
  explicit Dim(std::shared_ptr<const Expression> expression) : expression_(std::move(expression)) {}

  int64_t constant_ = 0;
  std::shared_ptr<const Expression> expression_;  // null for constants
};

// Declared again at namespace scope so that they are found without an argument of this type.
Dim operator+(const Dim &left, const Dim &right);
Dim operator-(const Dim &left, const Dim &right);
Dim operator*(const Dim &left, const Dim &right);
Dim floor_divide(const Dim &left, const Dim &right);
Dim ceil_divide(const Dim &left, const Dim &right);
Dim maximum(const Dim &left, const Dim &right);
Dim minimum(const Dim &left, const Dim &right);

using Dims = std::vector<Dim>;

/// The form of messages: "[batch, 28, 28]", "[28*batch]".
std::string to_string(const Dims &dims);
/// Axis 0 counts the rows of the batch.
bool begins_with_batch(const Dims &dims);
/// Product of all dimensions; 1 for a scalar.
Dim element_count(const Dims &dims);
/// The concrete shape under `bindings`; also refuses negative dimensions and element counts beyond 2^48.
base::Result<std::vector<int64_t>> evaluate(const Dims &dims, const SymbolBindings &bindings);
/// The shape as constants, when all dimensions are.
std::optional<std::vector<int64_t>> constant_shape(const Dims &dims);
/// Constants as dimensions.
Dims to_dims(const std::vector<int64_t> &shape);
Dims substitute(const Dims &dims, const std::map<std::string, Dim, std::less<>> &replacements);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_DIM_H_
