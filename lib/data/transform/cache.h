// SPDX-License-Identifier: Apache-2.0
//
// The dataset behind cache and snapshot: gives what is kept (cache_contents.h), or what its input gives and keeps that.
//
// Threads: as Dataset.
#ifndef TUTTI_DATA_TRANSFORM_CACHE_H_
#define TUTTI_DATA_TRANSFORM_CACHE_H_

#include <memory>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/keep/cache_contents.h"

namespace tutti::impl::data {

/// `kind` is a literal. INVALID_ARGUMENT when the input never ends.
base::Result<DatasetRef> make_cache(const char *kind, const DatasetRef &input, std::unique_ptr<CacheContents> contents);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_TRANSFORM_CACHE_H_
