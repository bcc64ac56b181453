// SPDX-License-Identifier: Apache-2.0
#include "graph/dim.h"

#include <algorithm>
#include <numeric>

#include "graph/dim_expression.h"

namespace tutti::impl::graph {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return (a % b != 0 && ((a % b < 0) != (b < 0))) ? quotient - 1 : quotient;
}

// INT64_MIN / -1 is the only constant quotient that overflows.
bool divides_safely(int64_t a, int64_t b) { return b != 0 && !(a == INT64_MIN && b == -1); }

bool is_nonnegative(const Dim &dim);

bool is_nonnegative(const DimAtom &atom) {
  switch (atom.kind) {
    case DimAtom::Kind::symbol:
      return true;
    case DimAtom::Kind::floor_divide:
    case DimAtom::Kind::ceil_divide:
    case DimAtom::Kind::minimum:
      return is_nonnegative(atom.left) && is_nonnegative(atom.right);
    case DimAtom::Kind::maximum:
      return is_nonnegative(atom.left) || is_nonnegative(atom.right);
  }
  return false;
}

// Evidently ≥ 0 for all values of the symbols.
bool is_nonnegative(const Dim &dim) {
  if (dim.is_constant()) return dim.constant() >= 0;
  if (!dim.is_representable()) return false;
  for (const DimTerm &term : *DimAlgebra::terms(dim)) {
    if (term.coefficient < 0) return false;
    for (const DimAtomPointer &factor : term.factors) {
      if (!is_nonnegative(*factor)) return false;
    }
  }
  return true;
}

// The quotient of two terms, if the right one divides the left one.
std::optional<DimTerm> divide_terms(const DimTerm &left, const DimTerm &right) {
  if (!divides_safely(left.coefficient, right.coefficient) || left.coefficient % right.coefficient != 0) return {};
  DimTerm quotient{left.coefficient / right.coefficient, {}};
  size_t matched = 0;
  for (const DimAtomPointer &factor : left.factors) {
    if (matched < right.factors.size() && DimAlgebra::compare_atoms(*factor, *right.factors[matched]) == 0) {
      ++matched;
    } else {
      quotient.factors.push_back(factor);
    }
  }
  if (matched != right.factors.size()) return {};
  return quotient;
}

// The single atom of the given kind that `dim` is, plus a constant: dim = atom + offset.
const DimAtom *as_atom_plus_constant(const Dim &dim, DimAtom::Kind kind, int64_t *offset) {
  const std::vector<DimTerm> *terms = DimAlgebra::terms(dim);
  if (terms == nullptr || terms->empty() || terms->size() > 2) return nullptr;
  const DimTerm &first = terms->front();
  if (first.coefficient != 1 || first.factors.size() != 1 || first.factors[0]->kind != kind) return nullptr;
  *offset = 0;
  if (terms->size() == 2) {
    if (!terms->back().factors.empty()) return nullptr;
    *offset = terms->back().coefficient;
  }
  return first.factors[0].get();
}

// floor(left / divisor) for a symbolic left and a constant divisor > 1. What the divisor divides evenly leaves the
// quotient; the rest, reduced modulo the divisor and by the common factor, stays inside.
Dim floor_divide_by_constant(const Dim &left, int64_t divisor) {
  std::vector<DimTerm> whole, rest;
  for (const DimTerm &term : *DimAlgebra::terms(left)) {
    const int64_t quotient = floor_quotient(term.coefficient, divisor);
    const int64_t remainder = term.coefficient - quotient * divisor;
    if (quotient != 0) whole.push_back({quotient, term.factors});
    if (remainder != 0) rest.push_back({remainder, term.factors});
  }
  int64_t common = divisor;
  for (const DimTerm &term : rest) {
    if (!term.factors.empty()) common = std::gcd(common, term.coefficient);
  }
  for (DimTerm &term : rest)
    term.coefficient = floor_quotient(term.coefficient, common);
  divisor /= common;
  const Dim quotient = DimAlgebra::make(std::move(whole));
  const Dim inside = DimAlgebra::make(std::move(rest));
  if (divisor == 1) return quotient + inside;
  if (inside.is_constant()) return quotient + floor_quotient(inside.constant(), divisor);
  int64_t offset = 0, inner_product = 0, product = 0;
  const DimAtom *inner = as_atom_plus_constant(inside, DimAtom::Kind::floor_divide, &offset);
  if (inner != nullptr && inner->right.is_constant() && inner->right.constant() > 0 &&
      !__builtin_mul_overflow(offset, inner->right.constant(), &inner_product) &&
      !__builtin_mul_overflow(divisor, inner->right.constant(), &product)) {
    return quotient + floor_divide(inner->left + inner_product, product);
  }
  return quotient + DimAlgebra::make_atom(DimAtom::Kind::floor_divide, inside, divisor);
}

base::Result<int64_t> overflow(const Dim &dim) {
  return base::out_of_range("dimension ", dim.to_string(), " overflows");
}

base::Result<int64_t> evaluate_atom(const DimAtom &atom, const SymbolBindings &bindings) {
  if (atom.kind == DimAtom::Kind::symbol) {
    const auto found = bindings.find(atom.symbol);
    if (found == bindings.end()) return base::invalid_argument("symbol '", atom.symbol, "' has no value");
    if (found->second < 0) {
      return base::invalid_argument("symbol '", atom.symbol, "' is ", found->second, ", expected at least 0");
    }
    return found->second;
  }
  TUTTI_ASSIGN(const int64_t left, atom.left.evaluate(bindings));
  TUTTI_ASSIGN(const int64_t right, atom.right.evaluate(bindings));
  if (atom.kind == DimAtom::Kind::maximum) return std::max(left, right);
  if (atom.kind == DimAtom::Kind::minimum) return std::min(left, right);
  if (!divides_safely(left, right)) return base::invalid_argument("cannot divide dimension ", left, " by ", right);
  const int64_t quotient = floor_quotient(left, right);
  return atom.kind == DimAtom::Kind::ceil_divide && left % right != 0 ? quotient + 1 : quotient;
}

}  // namespace

bool is_dim_symbol(std::string_view text) {
  if (text.empty() || text.size() > 512 || !is_letter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '/' || c == '-'; });
}

// ---- canonical form ----

std::vector<DimTerm> DimAlgebra::terms_of(const Dim &dim) {
  if (dim.expression_ != nullptr) return dim.expression_->terms;
  if (dim.constant_ == 0) return {};
  return {DimTerm{dim.constant_, {}}};
}

int DimAlgebra::compare_atoms(const DimAtom &left, const DimAtom &right) {
  if (left.kind != right.kind) return left.kind < right.kind ? -1 : 1;
  if (left.kind == DimAtom::Kind::symbol) return left.symbol.compare(right.symbol);
  const int first = Dim::compare(left.left, right.left);
  return first != 0 ? first : Dim::compare(left.right, right.right);
}

// Higher degrees first, the constant term last.
int DimAlgebra::compare_factors(const std::vector<DimAtomPointer> &left, const std::vector<DimAtomPointer> &right) {
  if (left.size() != right.size()) return left.size() > right.size() ? -1 : 1;
  for (size_t i = 0; i < left.size(); ++i) {
    const int order = compare_atoms(*left[i], *right[i]);
    if (order != 0) return order;
  }
  return 0;
}

Dim DimAlgebra::make(std::vector<DimTerm> terms) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const DimTerm &a, const DimTerm &b) { return compare_factors(a.factors, b.factors) < 0; });
  auto expression = std::make_shared<Dim::Expression>();
  std::vector<DimTerm> &merged = expression->terms;
  for (DimTerm &term : terms) {
    if (!merged.empty() && compare_factors(merged.back().factors, term.factors) == 0) {
      if (__builtin_add_overflow(merged.back().coefficient, term.coefficient, &merged.back().coefficient)) {
        return Dim::unrepresentable();
      }
    } else {
      if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
      merged.push_back(std::move(term));
    }
  }
  if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
  if (merged.empty()) return 0;
  if (merged.size() == 1 && merged[0].factors.empty()) return merged[0].coefficient;
  if (merged.size() > kMaximumDimTerms) return Dim::unrepresentable();
  for (const DimTerm &term : merged) {
    if (term.factors.size() > kMaximumDimTerms) return Dim::unrepresentable();
    for (const DimAtomPointer &factor : term.factors)
      expression->depth = std::max(expression->depth, factor->depth);
  }
  return Dim(std::shared_ptr<const Dim::Expression>(std::move(expression)));
}

Dim DimAlgebra::make_atom(DimAtom::Kind kind, const Dim &left, const Dim &right) {
  auto atom = std::make_shared<DimAtom>();
  atom->kind = kind;
  atom->left = left;
  atom->right = right;
  atom->depth = std::max(depth(left), depth(right)) + 1;
  if (atom->depth > kMaximumDimDepth) return Dim::unrepresentable();
  return make({DimTerm{1, {std::move(atom)}}});
}

Dim Dim::symbol(std::string_view name) {
  if (!is_dim_symbol(name)) return unrepresentable();
  auto atom = std::make_shared<DimAtom>();
  atom->symbol = std::string(name);
  return DimAlgebra::make({DimTerm{1, {std::move(atom)}}});
}

Dim Dim::unrepresentable() {
  static const std::shared_ptr<const Expression> *const empty =
      new std::shared_ptr<const Expression>(std::make_shared<Expression>());
  return Dim(*empty);
}

bool Dim::is_representable() const { return expression_ == nullptr || !expression_->terms.empty(); }

int Dim::compare(const Dim &left, const Dim &right) {
  if (left.expression_ == right.expression_ && left.constant_ == right.constant_) return 0;
  if (left.is_constant() != right.is_constant()) return left.is_constant() ? -1 : 1;
  if (left.is_constant()) return left.constant_ < right.constant_ ? -1 : left.constant_ > right.constant_;
  const std::vector<DimTerm> &a = left.expression_->terms, &b = right.expression_->terms;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const int order = DimAlgebra::compare_factors(a[i].factors, b[i].factors);
    if (order != 0) return order;
    if (a[i].coefficient != b[i].coefficient) return a[i].coefficient < b[i].coefficient ? -1 : 1;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size();
}

// ---- questions ----

bool Dim::mentions(std::string_view symbol) const {
  const std::vector<std::string> all = symbols();
  return std::find(all.begin(), all.end(), symbol) != all.end();
}

std::vector<std::string> Dim::symbols() const {
  std::vector<std::string> names;
  if (expression_ == nullptr) return names;
  for (const DimTerm &term : expression_->terms) {
    for (const DimAtomPointer &factor : term.factors) {
      if (factor->kind == DimAtom::Kind::symbol) {
        names.push_back(factor->symbol);
        continue;
      }
      for (const Dim *side : {&factor->left, &factor->right}) {
        for (std::string &name : side->symbols())
          names.push_back(std::move(name));
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<int64_t> Dim::factor_of(std::string_view symbol) const {
  if (expression_ == nullptr || expression_->terms.size() != 1) return {};
  const DimTerm &term = expression_->terms[0];
  if (term.factors.size() != 1 || term.coefficient < 1) return {};
  if (term.factors[0]->kind != DimAtom::Kind::symbol || term.factors[0]->symbol != symbol) return {};
  return term.coefficient;
}

std::optional<Dim> Dim::divide_exactly(const Dim &divisor) const {
  if (!is_representable() || !divisor.is_representable() || divisor == 0) return {};
  if (*this == 0) return Dim(0);
  const DimTerm leading = DimAlgebra::terms_of(divisor).front();
  Dim remainder = *this, quotient = 0;
  for (int round = 0; round <= kMaximumDimTerms && remainder.is_representable(); ++round) {
    if (remainder == 0) return quotient;
    const std::optional<DimTerm> next = divide_terms(DimAlgebra::terms_of(remainder).front(), leading);
    if (!next) return {};
    const Dim step = DimAlgebra::make({*next});
    quotient = quotient + step;
    remainder = remainder - step * divisor;
  }
  return {};
}

base::Result<int64_t> Dim::evaluate(const SymbolBindings &bindings) const {
  if (expression_ == nullptr) return constant_;
  if (!is_representable()) return base::out_of_range("dimension has no bounded exact form");
  int64_t sum = 0;
  for (const DimTerm &term : expression_->terms) {
    int64_t product = term.coefficient;
    for (const DimAtomPointer &factor : term.factors) {
      TUTTI_ASSIGN(const int64_t value, evaluate_atom(*factor, bindings));
      if (__builtin_mul_overflow(product, value, &product)) return overflow(*this);
    }
    if (__builtin_add_overflow(sum, product, &sum)) return overflow(*this);
  }
  return sum;
}

Dim Dim::substitute(const std::map<std::string, Dim, std::less<>> &replacements) const {
  if (expression_ == nullptr) return *this;
  if (!is_representable()) return *this;
  Dim sum = 0;
  for (const DimTerm &term : expression_->terms) {
    Dim product = term.coefficient;
    for (const DimAtomPointer &factor : term.factors) {
      Dim value;
      if (factor->kind == DimAtom::Kind::symbol) {
        const auto found = replacements.find(factor->symbol);
        value = found != replacements.end() ? found->second : symbol(factor->symbol);
      } else {
        const Dim left = factor->left.substitute(replacements), right = factor->right.substitute(replacements);
        switch (factor->kind) {
          case DimAtom::Kind::floor_divide:
            value = floor_divide(left, right);
            break;
          case DimAtom::Kind::ceil_divide:
            value = ceil_divide(left, right);
            break;
          case DimAtom::Kind::maximum:
            value = maximum(left, right);
            break;
          default:
            value = minimum(left, right);
        }
      }
      product = product * value;
    }
    sum = sum + product;
  }
  return sum;
}

// ---- arithmetic ----

Dim operator+(const Dim &left, const Dim &right) {
  if (!left.is_representable() || !right.is_representable()) return Dim::unrepresentable();
  std::vector<DimTerm> terms = DimAlgebra::terms_of(left);
  for (DimTerm &term : DimAlgebra::terms_of(right))
    terms.push_back(std::move(term));
  return DimAlgebra::make(std::move(terms));
}

Dim operator-(const Dim &left, const Dim &right) { return left + right * Dim(-1); }

Dim operator*(const Dim &left, const Dim &right) {
  if (!left.is_representable() || !right.is_representable()) return Dim::unrepresentable();
  std::vector<DimTerm> terms;
  const std::vector<DimTerm> a = DimAlgebra::terms_of(left), b = DimAlgebra::terms_of(right);
  for (const DimTerm &x : a) {
    for (const DimTerm &y : b) {
      DimTerm product{0, x.factors};
      if (__builtin_mul_overflow(x.coefficient, y.coefficient, &product.coefficient)) return Dim::unrepresentable();
      product.factors.insert(product.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(product.factors.begin(), product.factors.end(),
                [](const DimAtomPointer &p, const DimAtomPointer &q) { return DimAlgebra::compare_atoms(*p, *q) < 0; });
      terms.push_back(std::move(product));
    }
  }
  return DimAlgebra::make(std::move(terms));
}

Dim floor_divide(const Dim &left, const Dim &right) {
  if (!left.is_representable() || !right.is_representable() || right == 0) return Dim::unrepresentable();
  if (left.is_constant() && right.is_constant()) {
    if (!divides_safely(left.constant(), right.constant())) return Dim::unrepresentable();
    return floor_quotient(left.constant(), right.constant());
  }
  if (const std::optional<Dim> exact = left.divide_exactly(right)) return *exact;
  if (right.is_constant() && right.constant() > 1) return floor_divide_by_constant(left, right.constant());
  return DimAlgebra::make_atom(DimAtom::Kind::floor_divide, left, right);
}

Dim ceil_divide(const Dim &left, const Dim &right) {
  if (right.is_constant() && right.constant() > 0) return floor_divide(left + (right - 1), right);
  if (!left.is_representable() || !right.is_representable() || right == 0) return Dim::unrepresentable();
  if (const std::optional<Dim> exact = left.divide_exactly(right)) return *exact;
  if (left.is_constant() && right.is_constant()) {
    if (!divides_safely(left.constant(), right.constant())) return Dim::unrepresentable();
    return floor_quotient(left.constant(), right.constant()) + 1;
  }
  return DimAlgebra::make_atom(DimAtom::Kind::ceil_divide, left, right);
}

Dim maximum(const Dim &left, const Dim &right) {
  if (!left.is_representable() || !right.is_representable()) return Dim::unrepresentable();
  if (is_nonnegative(left - right)) return left;
  if (is_nonnegative(right - left)) return right;
  const bool ordered = Dim::compare(left, right) < 0;
  return DimAlgebra::make_atom(DimAtom::Kind::maximum, ordered ? left : right, ordered ? right : left);
}

Dim minimum(const Dim &left, const Dim &right) {
  if (!left.is_representable() || !right.is_representable()) return Dim::unrepresentable();
  if (is_nonnegative(left - right)) return right;
  if (is_nonnegative(right - left)) return left;
  const bool ordered = Dim::compare(left, right) < 0;
  return DimAlgebra::make_atom(DimAtom::Kind::minimum, ordered ? left : right, ordered ? right : left);
}

// ---- shapes ----

Dim element_count(const Dims &dims) {
  Dim count = 1;
  for (const Dim &dim : dims)
    count = count * dim;
  return count;
}

base::Result<std::vector<int64_t>> evaluate(const Dims &dims, const SymbolBindings &bindings) {
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Dim &dim : dims) {
    TUTTI_ASSIGN(const int64_t value, dim.evaluate(bindings));
    if (value < 0) return base::invalid_argument("dimension ", dim.to_string(), " is ", value, " in ", to_string(dims));
    if (__builtin_mul_overflow(count, std::max<int64_t>(value, 1), &count) || count > (int64_t{1} << 48)) {
      return base::resource_exhausted("shape ", to_string(dims), " has more than 2^48 elements");
    }
    shape.push_back(value);
  }
  return shape;
}

bool begins_with_batch(const Dims &dims) { return !dims.empty() && dims[0] == Dim::symbol(kBatchSymbol); }

std::optional<std::vector<int64_t>> constant_shape(const Dims &dims) {
  std::vector<int64_t> shape;
  for (const Dim &dim : dims) {
    if (!dim.is_constant()) return {};
    shape.push_back(dim.constant());
  }
  return shape;
}

Dims to_dims(const std::vector<int64_t> &shape) { return Dims(shape.begin(), shape.end()); }

Dims substitute(const Dims &dims, const std::map<std::string, Dim, std::less<>> &replacements) {
  Dims result;
  for (const Dim &dim : dims)
    result.push_back(dim.substitute(replacements));
  return result;
}

}  // namespace tutti::impl::graph
