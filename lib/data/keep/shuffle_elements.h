// SPDX-License-Identifier: Apache-2.0
//
// A shuffle over elements that cannot be indexed. It holds up to `capacity` elements, but saves none of them: its state
// is the number of draws, from which the positions in the buffer follow, and a state of the input from which the
// elements at these positions can be read again.
//
// Threads: the stage belongs to one.
#ifndef TUTTI_DATA_KEEP_SHUFFLE_ELEMENTS_H_
#define TUTTI_DATA_KEEP_SHUFFLE_ELEMENTS_H_

#include <cstdint>
#include <memory>

#include "base/random/philox.h"
#include "data/dataset/stage.h"

namespace tutti::impl::data {

std::unique_ptr<Stage> open_element_shuffle(std::unique_ptr<Stage> input, base::RandomKey key, int64_t capacity,
                                            base::Ref<base::CancelToken> cancel);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_SHUFFLE_ELEMENTS_H_
