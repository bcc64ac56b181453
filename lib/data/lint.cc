// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "data/dataset.h"

namespace tutti::impl::data {

using base::Result;

namespace {

// Random choices that should be made anew in every pass.
bool is_random(const Dataset &dataset) {
  return dataset.kind() == "shuffle" || dataset.kind() == "sample_from" || dataset.kind() == "resample";
}

bool is_batch(const Dataset &dataset) {
  return dataset.kind() == "batch" || dataset.kind() == "padded_batch" || dataset.kind() == "bucket_by_length";
}

bool is_map(const Dataset &dataset) { return dataset.kind() == "map" || dataset.kind() == "map_callback"; }

bool is_cache(const Dataset &dataset) {
  return dataset.kind() == "cache" || dataset.kind() == "file_cache" || dataset.kind() == "snapshot";
}

// What the walk from the end towards the sources has passed.
struct Passed {
  bool cache = false;
  const Dataset *map = nullptr;  // not separated from here by anything but other maps
};

void walk(const Dataset &dataset, Passed passed, std::vector<std::string> &warnings) {
  if (is_random(dataset) && passed.cache) {
    warnings.push_back(base::concat("cache after ", dataset.kind(),
                                    ": every epoch repeats the order of the first one; put cache before ",
                                    dataset.kind()));
  }
  if (dataset.kind() == "shuffle" && is_batch(*dataset.inputs()[0])) {
    warnings.push_back("shuffle after batch: whole batches change places, their rows stay together; put it before");
  }
  if (is_batch(dataset) && passed.map != nullptr && passed.map->kind() == "map_callback") {
    warnings.push_back(
        "batch before map_callback: the function sees whole batches one after the other; put it before batch, with "
        "parallelism, or make it a graph");
  }
  if (dataset.kind() == "repeat" && passed.cache) {
    warnings.push_back("cache after repeat: all passes are kept as one; put cache before repeat");
  }
  passed.cache = passed.cache || is_cache(dataset);
  if (is_map(dataset)) {
    if (passed.map == nullptr) passed.map = &dataset;
  } else {
    passed.map = nullptr;
  }
  for (const DatasetRef &input : dataset.inputs())
    walk(*input, passed, warnings);
}

}  // namespace

Result<std::vector<std::string>> lint(const Dataset &dataset) {
  std::vector<std::string> warnings;
  // Behind the prefetch only what costs nothing may stand.
  const Dataset *last = &dataset;
  while (last->inputs().size() == 1 && (last->kind() == "take" || last->kind() == "skip" || last->kind() == "repeat")) {
    last = last->inputs()[0].get();
  }
  if (last->kind() != "prefetch") {
    warnings.push_back("no prefetch at the end: the consumer waits while elements are made; add prefetch as the last");
  }
  walk(dataset, {}, warnings);
  return warnings;
}

}  // namespace tutti::impl::data
