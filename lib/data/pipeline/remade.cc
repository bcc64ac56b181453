// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/remade.h"

#include <algorithm>
#include <utility>

#include "data/graph/graph_plan.h"

namespace tutti::impl::data {

using base::Result;

Result<DatasetRef> remake(const Recipe &recipe, Remake changes) {
  const TransformDefinition *definition = find_transform(recipe.name, recipe.revision);
  if (definition == nullptr) return base::internal_error("there is no transform '", recipe.name, "'");
  Pipeline pipeline(changes.inputs.front());
  graph::Attributes attributes = recipe.attributes;
  for (auto &[key, value] : changes.attributes)
    attributes.insert_or_assign(key, std::move(value));
  TransformArguments arguments = recipe.arguments;
  arguments.others.assign(changes.inputs.begin() + 1, changes.inputs.end());
  arguments.share = changes.share;
  return pipeline.apply(recipe.name, std::move(attributes), std::move(arguments), recipe.revision).build();
}

bool is_one_of(const Recipe &recipe, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, recipe.name) != names.end();
}

Result<bool> may_cut_rows(const Recipe &map) {
  TUTTI_ASSIGN(const GraphPlan plan, plan_graph(map.arguments.graph, map.inputs.front()->spec(), map.arguments.labels,
                                                map.arguments.weights));
  return plan.may_cut_rows;
}

}  // namespace tutti::impl::data
