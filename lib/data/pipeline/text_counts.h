// SPDX-License-Identifier: Apache-2.0
//
// How often each text of a component comes, in one pass over a dataset: what a vocabulary is made from.
//
//   TextCountLimits limits{.most_texts = 10000};
//   TUTTI_ASSIGN(const TextCounts words, count_texts(*dataset, "words", limits, context));
//   bytes_at(words.texts, 0);                    // the most frequent word
//   words.counts.data_as<int64_t>()[0];          // how often it came
//
// Cost: for each text a look into a hash table, whose key is secret; then a sort of the different texts. Memory grows
// with these alone.
#ifndef TUTTI_DATA_PIPELINE_TEXT_COUNTS_H_
#define TUTTI_DATA_PIPELINE_TEXT_COUNTS_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

struct TextCountLimits {
  /// What each different text takes of memory_bytes beside its own bytes.
  static constexpr int64_t kBytesBeside = 64;
  static constexpr int64_t kDefaultMemoryBytes = int64_t{1} << 30;

  int64_t most_texts = 0;  ///< so many of the most frequent ones; 0 = all
  int64_t least_count = 1;
  int64_t memory_bytes = kDefaultMemoryBytes;  ///< of all different texts together, those that are left out too
};

/// bytes[n] and i64[n]: by count, the largest first; texts of one count by their bytes.
struct TextCounts {
  tensor::Tensor texts;
  tensor::Tensor counts;
};

/// Counts the texts of a component of dtype bytes and any shape. Depends on the elements alone, not on their order.
/// INVALID_ARGUMENT for another component and a dataset that is known to have no end; RESOURCE_EXHAUSTED names the
/// element whose texts went beyond memory_bytes.
base::Result<TextCounts> count_texts(const Dataset &dataset, std::string_view component, const TextCountLimits &limits,
                                     const IteratorContext &context);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_TEXT_COUNTS_H_
