// SPDX-License-Identifier: Apache-2.0
//
// Predictors, prediction streams and batches of results behind handles.
#ifndef TUTTI_CAPI_PREDICTOR_C_H_
#define TUTTI_CAPI_PREDICTOR_C_H_

#include <tutti/predictor.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/context_c.h"
#include "capi/guard.h"
#include "estimator/predictor/predictor.h"

namespace tutti::impl::capi {

namespace prediction = estimator::predictor;

class PredictorObject : public base::Object {
 public:
  PredictorObject(std::shared_ptr<ContextCore> core, Ref<prediction::Predictor> predictor);

  const std::shared_ptr<ContextCore> &core() const { return core_; }
  prediction::Predictor &predictor() const { return *predictor_; }
  /// JSON of inputs and outputs.
  const std::string &signature() const { return signature_; }
  /// Keeps the text of the last plan, and lends it.
  const char *keep_plan(std::string text) {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(text);
    return plan_.c_str();
  }

 private:
  const std::shared_ptr<ContextCore> core_;
  const Ref<prediction::Predictor> predictor_;
  const std::string signature_;
  std::mutex mutex_;
  std::string plan_;  // guarded by mutex_
};

class PredictionStreamObject : public base::Object {
 public:
  PredictionStreamObject(Ref<PredictorObject> owner, std::unique_ptr<prediction::ResultStream> stream,
                         Ref<base::CancelToken> token)
      : owner_(std::move(owner)), stream_(std::move(stream)), token_(std::move(token)) {}

  const Ref<base::CancelToken> &token() const { return token_; }
  /// Held by next().
  BusyFlag &busy() { return busy_; }
  /// Held while the stream is used or closed.
  std::mutex &mutex() { return mutex_; }
  /// Null after close.
  std::unique_ptr<prediction::ResultStream> &stream() { return stream_; }

 private:
  const Ref<PredictorObject> owner_;
  BusyFlag busy_;
  std::mutex mutex_;
  std::unique_ptr<prediction::ResultStream> stream_;  // guarded by mutex_
  const Ref<base::CancelToken> token_;
};

/// A batch, whose tensors are lent as handles that live as long as it.
class BatchObject : public base::Object {
 public:
  explicit BatchObject(prediction::ResultBatch batch) : batch_(std::move(batch)) {}
  const prediction::ResultBatch &batch() const { return batch_; }
  Status lend();
  /// Null when there is no such output.
  void *output(std::string_view name) const;

 private:
  const prediction::ResultBatch batch_;
  std::vector<std::unique_ptr<LentHandle>> outputs_;
};

extern constinit HandleType<PredictorObject> predictor_handles;
extern constinit HandleType<PredictionStreamObject> prediction_stream_handles;
extern constinit HandleType<BatchObject> batch_handles;

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_PREDICTOR_C_H_
