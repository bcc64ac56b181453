// SPDX-License-Identifier: Apache-2.0
//
// An input whose batches the caller has: each is given before the step that reads it. Internal to this folder.
//
//   GivenBatches batches(spec);
//   TUTTI_TRY(trainer->attach_input(batches.walk()));
//   TUTTI_TRY(batches.give(tensors));
//   TUTTI_ASSIGN(RunReport report, trainer->run(1, cancel));
//
// Threads: give() while no step runs.
#ifndef TUTTI_DISTRIBUTE_INPUT_GIVEN_BATCHES_H_
#define TUTTI_DISTRIBUTE_INPUT_GIVEN_BATCHES_H_

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/element/element.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

class GivenBatches {
 public:
  /// `spec`: of the batches.
  explicit GivenBatches(const data::ElementSpec &spec);

  /// A walk over the batches given from now on; the end where there is none.
  base::Result<std::unique_ptr<data::Iterator>> walk() const;
  /// The next batch, in place of one that nobody took. INVALID_ARGUMENT naming the component that does not fit.
  base::Status give(std::vector<tensor::Tensor> components);
  /// Lets go of it.
  void clear();

 private:
  const std::shared_ptr<std::optional<data::Element>> batch_;  // the next one
  const data::DatasetRef source_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_GIVEN_BATCHES_H_
