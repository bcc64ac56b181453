// SPDX-License-Identifier: Apache-2.0
//
// einsum, from left to right: what one operand alone is summed over goes first, then two operands at a time become one,
// by a matrix product of what is summed over and by an element-wise one where nothing is.
#include <algorithm>
#include <map>

#include "nn/functions/einsum_equation.h"
#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

struct Operand {
  ValueId value = kNoValue;
  Labels labels;
};

bool has(const Labels &labels, Label label) { return std::ranges::find(labels, label) != labels.end(); }

size_t place_of(const Labels &labels, Label label) {
  return static_cast<size_t>(std::ranges::find(labels, label) - labels.begin());
}

Labels operator+(Labels a, const Labels &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Einsum {
 public:
  Einsum(Expansion &e, EinsumEquation equation) : e_(e), b_(e.builder()), equation_(std::move(equation)) {}

  ValueId run() {
    std::vector<Operand> operands;
    for (size_t i = 0; i < e_.inputs().size(); ++i)
      operands.push_back({e_.inputs()[i], equation_.operands[i]});
    if (!find_sizes(operands)) return kNoValue;
    for (Operand &operand : operands) {
      drop_broadcast_axes(operand);
      if (!take_diagonals(operand)) return kNoValue;
    }
    Operand made = operands[0];
    for (size_t i = 1; i < operands.size() && b_.ok(); ++i) {
      const Labels later = wanted_behind(operands, i);
      sum_out(made, later + operands[i].labels);
      sum_out(operands[i], later + made.labels);
      made = joined(made, operands[i], later);
    }
    sum_out(made, equation_.result);
    return ordered(made, equation_.result).value;
  }

 private:
  /// The labels of the result, and of the operands behind `i`.
  Labels wanted_behind(const std::vector<Operand> &operands, size_t i) const {
    Labels labels = equation_.result;
    for (size_t k = i + 1; k < operands.size(); ++k)
      labels = labels + operands[k].labels;
    return labels;
  }

  /// One size for each label; 1 gives way to any other.
  bool find_sizes(const std::vector<Operand> &operands) {
    for (const Operand &operand : operands) {
      for (size_t i = 0; i < operand.labels.size(); ++i) {
        const Dim size = b_.dims(operand.value)[i];
        const auto [known, is_new] = sizes_.emplace(operand.labels[i], size);
        if (is_new || known->second == size || size == 1) continue;
        if (known->second != 1) {
          e_.fail(base::concat("'", to_text(operand.labels[i]), "' is an axis of ", known->second, " and one of ", size,
                               " elements"));
          return false;
        }
        known->second = size;
      }
    }
    return true;
  }

  void drop_broadcast_axes(Operand &operand) {
    Dims dims;
    Labels labels;
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      const Dim &size = b_.dims(operand.value)[i];
      if (size == 1 && sizes_.at(operand.labels[i]) != 1) continue;
      dims.push_back(size);
      labels.push_back(operand.labels[i]);
    }
    operand = {b_.reshape(operand.value, dims), labels};
  }

  /// Two axes [n, n] with the same label, moved to the end, are one of n * n elements, of which every (n + 1)th is on
  /// the diagonal.
  bool take_diagonals(Operand &operand) {
    for (size_t i = 0; i < operand.labels.size();) {
      const Label label = operand.labels[i];
      if (std::ranges::count(operand.labels, label) == 1) {
        ++i;
        continue;
      }
      const Dim size = sizes_.at(label);
      if (!size.is_constant()) {
        e_.fail(base::concat("the diagonal of '", to_text(label), "' needs a known length"));
        return false;
      }
      const auto last = static_cast<int64_t>(operand.labels.size()) - 1;
      ValueId x = move_axis(b_, operand.value, static_cast<int64_t>(i), last);
      operand.labels.erase(operand.labels.begin() + static_cast<std::ptrdiff_t>(i));
      const size_t other = place_of(operand.labels, label);
      x = move_axis(b_, x, static_cast<int64_t>(other), last);
      operand.labels.erase(operand.labels.begin() + static_cast<std::ptrdiff_t>(other));
      operand = {diagonal(x, size.constant()), operand.labels + Labels{label}};
      i = 0;
    }
    return true;
  }

  ValueId diagonal(ValueId x, int64_t size) {
    if (x == kNoValue) return kNoValue;
    Dims dims = b_.dims(x);
    dims.pop_back();
    dims.back() = size * size;
    const ValueId flat = b_.reshape(x, dims);
    Axes strides(dims.size(), 1);
    strides.back() = size + 1;
    dims.back() = size;
    return b_.slice(flat, Dims(dims.size(), 0), dims, strides);
  }

  /// Sums over the labels that nobody else has.
  void sum_out(Operand &operand, const Labels &others) {
    Axes axes;
    Labels labels;
    for (size_t i = 0; i < operand.labels.size(); ++i) {
      if (has(others, operand.labels[i])) {
        labels.push_back(operand.labels[i]);
      } else {
        axes.push_back(static_cast<int64_t>(i));
      }
    }
    if (!axes.empty()) operand = {b_.reduce_sum(operand.value, axes), labels};
  }

  Operand ordered(const Operand &operand, const Labels &labels) {
    Axes permutation;
    for (const Label label : labels)
      permutation.push_back(static_cast<int64_t>(place_of(operand.labels, label)));
    if (std::ranges::is_sorted(permutation)) return operand;
    return {b_.transpose(operand.value, permutation), labels};
  }

  Dims sizes(const Labels &labels) const {
    Dims dims;
    for (const Label label : labels)
      dims.push_back(sizes_.at(label));
    return dims;
  }

  Operand joined(const Operand &a, const Operand &b, const Labels &kept) {
    Labels batch, summed, only_a, only_b;
    for (const Label label : a.labels)
      (!has(b.labels, label) ? only_a : has(kept, label) ? batch : summed).push_back(label);
    for (const Label label : b.labels) {
      if (!has(a.labels, label)) only_b.push_back(label);
    }
    return summed.empty() ? multiplied(a, b, batch, only_a, only_b) : product(a, b, batch, summed, only_a, only_b);
  }

  /// Element by element: each has 1 where only the other has an axis.
  Operand multiplied(const Operand &a, const Operand &b, const Labels &batch, const Labels &only_a,
                     const Labels &only_b) {
    Dims left = sizes(batch + only_a);
    left.insert(left.end(), only_b.size(), 1);
    Dims right = sizes(batch);
    right.insert(right.end(), only_a.size(), 1);
    const Dims rest = sizes(only_b);
    right.insert(right.end(), rest.begin(), rest.end());
    const ValueId made =
        b_.mul(b_.reshape(ordered(a, batch + only_a).value, left), b_.reshape(ordered(b, batch + only_b).value, right));
    return {made, batch + only_a + only_b};
  }

  /// Axes of a length that only a run tells stay apart, as rows of a batch must.
  void set_apart(Labels &labels, Labels &apart) const {
    for (const Label label : labels) {
      if (!sizes_.at(label).is_constant()) apart.push_back(label);
    }
    std::erase_if(labels, [&](Label label) { return has(apart, label); });
  }

  /// A matrix product of [batch, rows of a, 1, m, k] and [batch, 1, rows of b, k, n].
  Operand product(const Operand &a, const Operand &b, const Labels &batch, Labels summed, Labels only_a,
                  Labels only_b) {
    Labels rows_a, rows_b, rows_summed;
    set_apart(only_a, rows_a), set_apart(only_b, rows_b), set_apart(summed, rows_summed);
    summed = rows_summed + summed;
    const Dim m = graph::element_count(sizes(only_a)), n = graph::element_count(sizes(only_b)),
              k = graph::element_count(sizes(summed));
    Dims left = sizes(batch + rows_a), right = sizes(batch);
    if (!rows_b.empty()) left.insert(left.end(), rows_b.size(), 1);
    if (!rows_b.empty() || !batch.empty()) right.insert(right.end(), rows_a.size(), 1);
    const Dims own = sizes(rows_b);
    right.insert(right.end(), own.begin(), own.end());
    left.insert(left.end(), {m, k}), right.insert(right.end(), {k, n});
    const ValueId made = b_.matmul(b_.reshape(ordered(a, batch + rows_a + only_a + summed).value, left),
                                   b_.reshape(ordered(b, batch + rows_b + summed + only_b).value, right));
    const Labels labels = batch + rows_a + rows_b + only_a + only_b;
    return {b_.reshape(made, sizes(labels)), labels};
  }

  Expansion &e_;
  GraphBuilder &b_;
  const EinsumEquation equation_;
  std::map<Label, Dim> sizes_;
};

}  // namespace

ValueId expand_function_einsum(Expansion &e) {
  std::vector<size_t> ranks;
  for (const ValueId operand : e.inputs())
    ranks.push_back(e.builder().rank(operand));
  auto equation = parse_equation(e.text("equation"), ranks);
  if (!equation.ok()) return e.fail(equation.status().message());
  return Einsum(e, equation.take()).run();
}

}  // namespace tutti::impl::nn
