// SPDX-License-Identifier: Apache-2.0
//
// Writers of record files behind handles.
#ifndef TUTTI_CAPI_RECORD_C_H_
#define TUTTI_CAPI_RECORD_C_H_

#include <tutti/record.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "capi/context_c.h"
#include "capi/guard.h"
#include "data/format/encode_example.h"
#include "data/format/record.h"
#include "tensor/tensor.h"

namespace tutti::impl::capi {

/// A writer, and the features and feature lists of its next example.
class RecordWriterObject : public base::Object {
 public:
  RecordWriterObject(std::shared_ptr<ContextCore> core, data::RecordWriter writer)
      : core_(std::move(core)), writer_(std::move(writer)) {}

  BusyFlag &busy() { return busy_; }
  // For whoever holds busy().
  data::RecordWriter &writer() { return writer_; }
  std::map<std::string, tensor::Tensor> &features() { return features_; }
  std::map<std::string, data::FeatureList> &lists() { return lists_; }

 private:
  const std::shared_ptr<ContextCore> core_;
  BusyFlag busy_;
  data::RecordWriter writer_;
  std::map<std::string, tensor::Tensor> features_;
  std::map<std::string, data::FeatureList> lists_;
};

extern constinit HandleType<RecordWriterObject> record_writer_handles;

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_RECORD_C_H_
