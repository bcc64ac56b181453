// SPDX-License-Identifier: Apache-2.0
//
// A dataset made again, as its pipeline made it, over other inputs. Threads: any.
#ifndef TUTTI_DATA_PIPELINE_REMADE_H_
#define TUTTI_DATA_PIPELINE_REMADE_H_

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/pipeline/fingerprint.h"

namespace tutti::impl::data {

/// What may differ from the recipe.
struct Remake {
  std::vector<DatasetRef> inputs;     ///< at least one: the pipeline's own, then the others
  graph::Attributes attributes = {};  ///< that replace those of these names
  std::optional<BlockShare> share = {};
};

/// The transform of this recipe once more.
base::Result<DatasetRef> remake(const Recipe &recipe, Remake changes);

/// Is the recipe's name one of these?
bool is_one_of(const Recipe &recipe, std::initializer_list<std::string_view> names);
/// A map by graph over batches: does it compute each row by itself?
base::Result<bool> may_cut_rows(const Recipe &map);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_REMADE_H_
