// SPDX-License-Identifier: Apache-2.0
//
// A stream of predictions that keeps several calls under way. Internal to this folder.
//
//   auto stream = read_ahead(engine, version, std::move(iterator), input, cancel, 6);
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_STREAM_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_STREAM_H_

#include <cstddef>
#include <memory>

#include "base/cancel.h"
#include "data/dataset/dataset.h"
#include "distribute/predict/predict_call.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/predict/predict_weights.h"

namespace tutti::impl::distribute {

/// A stream with up to `depth` calls under way or waiting to be taken. It reads ahead on the consumer's thread; results
/// are handed out in order. As soon as the next one is there, reading waits for nothing more: a call that is done
/// interrupts it. `cancel`, nullable, interrupts next().
std::unique_ptr<PredictStream> read_ahead(std::shared_ptr<PredictCalls> calls,
                                          std::shared_ptr<const LoadedVersion> version,
                                          std::unique_ptr<data::Iterator> iterator, PredictInput input,
                                          base::Ref<base::CancelToken> cancel, size_t depth);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_STREAM_H_
