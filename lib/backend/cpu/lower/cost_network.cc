// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/cost_network.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tutti::impl::backend::cpu {

void CostNetwork::add_cost(int32_t variable, double if_no, double if_yes) {
  tables_.push_back({{variable}, {if_no, if_yes}});
}

void CostNetwork::add_cost(int32_t a, int32_t b, const std::array<std::array<double, 2>, 2> &cost) {
  if (a == b) return add_cost(a, cost[0][0], cost[1][1]);
  if (a < b) {
    tables_.push_back({{a, b}, {cost[0][0], cost[1][0], cost[0][1], cost[1][1]}});
  } else {
    tables_.push_back({{b, a}, {cost[0][0], cost[0][1], cost[1][0], cost[1][1]}});
  }
}

class Elimination {
 public:
  using Table = CostNetwork::Table;

  explicit Elimination(const CostNetwork &network)
      : tables_(network.tables_),
        values_(static_cast<size_t>(network.variables_), -1),
        near_(static_cast<size_t>(network.variables_)) {
    for (const Table &table : tables_) {
      if (table.variables.size() < 2) continue;
      near_[static_cast<size_t>(table.variables[0])].insert(table.variables[1]);
      near_[static_cast<size_t>(table.variables[1])].insert(table.variables[0]);
    }
  }

  std::vector<char> run() {
    for (size_t left = values_.size(); left > 0; --left) {
      const int32_t next = choose();
      near_[static_cast<size_t>(next)].size() > CostNetwork::kMaximumDegree ? decide(next) : eliminate(next);
    }
    while (!decisions_.empty()) {
      const Decision &decision = decisions_.back();
      values_[static_cast<size_t>(decision.variable)] = decision.best[index_of(decision.near)];
      decisions_.pop_back();
    }
    return {values_.begin(), values_.end()};
  }

 private:
  /// The best value of a variable by the values of those that were its neighbours.
  struct Decision {
    int32_t variable;
    std::vector<int32_t> near;
    std::vector<signed char> best;
  };
  static constexpr signed char kGone = 2;  // eliminated, its value comes last

  static bool contains(const Table &table, int32_t variable) {
    return std::find(table.variables.begin(), table.variables.end(), variable) != table.variables.end();
  }

  int32_t choose() const {
    int32_t best = -1;
    for (size_t v = 0; v < values_.size(); ++v) {
      if (values_[v] < 0 && (best < 0 || near_[v].size() < near_[static_cast<size_t>(best)].size())) {
        best = static_cast<int32_t>(v);
      }
    }
    return best;
  }

  /// Takes a variable out of the graph of neighbours, whom it leaves acquainted or not.
  std::vector<int32_t> take_out(int32_t variable, bool acquainted) {
    const std::set<int32_t> near = std::exchange(near_[static_cast<size_t>(variable)], {});
    for (int32_t one : near) {
      std::set<int32_t> &others = near_[static_cast<size_t>(one)];
      others.erase(variable);
      if (acquainted) others.insert(near.begin(), near.end());
      others.erase(one);
    }
    return {near.begin(), near.end()};
  }

  /// Index into `table` when `variables` have the bits of `bits`, and `variable` has `value`.
  static size_t index_in(const Table &table, const std::vector<int32_t> &variables, size_t bits, int32_t variable,
                         size_t value) {
    size_t index = 0;
    for (size_t i = 0; i < table.variables.size(); ++i) {
      const int32_t v = table.variables[i];
      size_t bit = value;
      if (v != variable) {
        const auto at = std::find(variables.begin(), variables.end(), v) - variables.begin();
        bit = (bits >> at) & 1;
      }
      index |= bit << i;
    }
    return index;
  }

  size_t index_of(const std::vector<int32_t> &variables) const {
    size_t index = 0;
    for (size_t i = 0; i < variables.size(); ++i)
      index |= static_cast<size_t>(values_[static_cast<size_t>(variables[i])]) << i;
    return index;
  }

  void eliminate(int32_t variable) {
    const std::vector<int32_t> near = take_out(variable, true);
    Table joined{near, std::vector<double>(size_t{1} << near.size(), 0.0)};
    Decision decision{variable, near, std::vector<signed char>(joined.costs.size(), 0)};
    for (size_t bits = 0; bits < joined.costs.size(); ++bits) {
      double cost[2] = {0, 0};
      for (const Table &table : tables_) {
        if (!contains(table, variable)) continue;
        for (size_t value : {0, 1})
          cost[value] += table.costs[index_in(table, near, bits, variable, value)];
      }
      decision.best[bits] = cost[1] < cost[0] ? 1 : 0;
      joined.costs[bits] = std::min(cost[0], cost[1]);
    }
    std::erase_if(tables_, [&](const Table &table) { return contains(table, variable); });
    if (!near.empty()) tables_.push_back(std::move(joined));
    decisions_.push_back(std::move(decision));
    values_[static_cast<size_t>(variable)] = kGone;
  }

  /// Fixes a variable now and takes it out of its tables.
  void decide(int32_t variable) {
    take_out(variable, false);
    double cost[2] = {0, 0};
    for (const Table &table : tables_) {
      if (!contains(table, variable)) continue;
      for (size_t value : {0, 1}) {
        const Table rest = restricted(table, variable, value);
        cost[value] += *std::min_element(rest.costs.begin(), rest.costs.end());
      }
    }
    const size_t value = cost[1] < cost[0] ? 1 : 0;
    values_[static_cast<size_t>(variable)] = static_cast<signed char>(value);
    for (Table &table : tables_) {
      if (contains(table, variable)) table = restricted(table, variable, value);
    }
    std::erase_if(tables_, [](const Table &table) { return table.variables.empty(); });
  }

  static Table restricted(const Table &table, int32_t variable, size_t value) {
    Table rest;
    rest.variables = table.variables;
    rest.variables.erase(std::find(rest.variables.begin(), rest.variables.end(), variable));
    for (size_t bits = 0; bits < size_t{1} << rest.variables.size(); ++bits)
      rest.costs.push_back(table.costs[index_in(table, rest.variables, bits, variable, value)]);
    return rest;
  }

  std::vector<Table> tables_;
  std::vector<signed char> values_;  // -1 = to do
  std::vector<std::set<int32_t>> near_;
  std::vector<Decision> decisions_;
};

std::vector<char> CostNetwork::minimize() const { return Elimination(*this).run(); }

}  // namespace tutti::impl::backend::cpu
