// SPDX-License-Identifier: Apache-2.0
//
// The cheapest assignment of yes/no variables whose costs are a sum of terms of one or two of them.
//
//   CostNetwork network;
//   const int32_t a = network.add_variable(), b = network.add_variable();
//   network.add_cost(a, 0.0, 2.0);                          // 2 if a
//   network.add_cost(a, b, {{0.0, 1.0}, {1.0, 0.0}});       // 1 if they differ: cost[a][b]
//   std::vector<char> best = network.minimize();            // {0, 0}
//
// Algorithm: variable elimination (nonserial dynamic programming: U. Bertelè, F. Brioschi, 1972), least degree first:
// exact on chains, trees and whatever else is thin; a chain of n variables takes O(n). A variable with more than
// kMaximumDegree neighbours is decided before its neighbours, by the sum of its terms' minima.
//
// A value; one thread. The same network gives the same assignment; of equal costs the one with more `no` first.
#ifndef TUTTI_BACKEND_CPU_LOWER_COST_NETWORK_H_
#define TUTTI_BACKEND_CPU_LOWER_COST_NETWORK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::impl::backend::cpu {

class CostNetwork {
 public:
  static constexpr size_t kMaximumDegree = 14;

  int32_t add_variable() { return variables_++; }
  void add_cost(int32_t variable, double if_no, double if_yes);
  /// cost[a][b]; `a` and `b` may be the same variable.
  void add_cost(int32_t a, int32_t b, const std::array<std::array<double, 2>, 2> &cost);
  std::vector<char> minimize() const;

 private:
  /// Costs by the values of `variables` (ascending); bit i of the index is variables[i].
  struct Table {
    std::vector<int32_t> variables;
    std::vector<double> costs;
  };
  friend class Elimination;

  int32_t variables_ = 0;
  std::vector<Table> tables_;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_COST_NETWORK_H_
