// SPDX-License-Identifier: Apache-2.0
//
// The canonical form behind a Dim: a sum of terms, each a coefficient times a sorted product of atoms. Only dim.cc and
// dim_text.cc see it.
//
// Invariants of an expression: terms are sorted by DimAlgebra::compare_factors, no two have the same factors, no
// coefficient is 0, and it is not a plain constant. The constant term, if any, is the last (it has no factors).
#ifndef TUTTI_GRAPH_DIM_EXPRESSION_H_
#define TUTTI_GRAPH_DIM_EXPRESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/dim.h"

namespace tutti::impl::graph {

struct DimAtom {
  enum class Kind { symbol, floor_divide, ceil_divide, maximum, minimum };
  Kind kind = Kind::symbol;
  std::string symbol;  // for symbol
  Dim left, right;     // for the others
  int depth = 0;
};

using DimAtomPointer = std::shared_ptr<const DimAtom>;

struct DimTerm {
  int64_t coefficient = 0;
  std::vector<DimAtomPointer> factors;
};

struct Dim::Expression {
  std::vector<DimTerm> terms;  // empty = unrepresentable
  int depth = 0;
};

struct DimAlgebra {
  static const std::vector<DimTerm> *terms(const Dim &dim) {
    return dim.expression_ ? &dim.expression_->terms : nullptr;
  }
  /// A copy as terms; a constant other than 0 is one term without factors.
  static std::vector<DimTerm> terms_of(const Dim &dim);
  static int depth(const Dim &dim) { return dim.expression_ ? dim.expression_->depth : 0; }
  /// Sorts, merges, drops zeros.
  static Dim make(std::vector<DimTerm> terms);
  static Dim make_atom(DimAtom::Kind kind, const Dim &left, const Dim &right);
  static Dim make_from(std::shared_ptr<const Dim::Expression> expression) { return Dim(std::move(expression)); }
  static int compare_atoms(const DimAtom &left, const DimAtom &right);
  static int compare_factors(const std::vector<DimAtomPointer> &left, const std::vector<DimAtomPointer> &right);
};

/// Whether text is a legal symbol.
bool is_dim_symbol(std::string_view text);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_DIM_EXPRESSION_H_
