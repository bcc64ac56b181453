// SPDX-License-Identifier: Apache-2.0
//
// What step functions gave, behind handles.
#ifndef TUTTI_CAPI_STEP_FUNCTION_C_H_
#define TUTTI_CAPI_STEP_FUNCTION_C_H_

#include <tutti/step_function.h>

#include <memory>
#include <string>
#include <vector>

#include "capi/estimator_c.h"
#include "capi/handles.h"
#include "tensor/tensor.h"

namespace tutti::impl::capi {

class ReplicaValuesObject : public base::Object {
 public:
  struct Output {
    std::string name;
    std::vector<tensor::Tensor> pieces;                  ///< of each replica; empty tensors where it had no rows
    std::vector<std::unique_ptr<LentHandle>> handles{};  ///< of these; null where there are none
  };

  ReplicaValuesObject(Ref<SessionObject> session, int32_t replicas)
      : session_(std::move(session)), replicas_(replicas) {}

  Status add(std::string name, std::vector<tensor::Tensor> pieces);
  int32_t replicas() const { return replicas_; }
  const std::vector<Output> &outputs() const { return outputs_; }
  /// Null when there is none of that name.
  const Output *find(std::string_view name) const;
  /// The pieces of all workers.
  Result<std::vector<tensor::Tensor>> pieces_of_all(std::string_view name) const;

 private:
  const Ref<SessionObject> session_;
  const int32_t replicas_;
  std::vector<Output> outputs_;
};

extern constinit HandleType<ReplicaValuesObject> replica_values_handles;

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_STEP_FUNCTION_C_H_
