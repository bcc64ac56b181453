// SPDX-License-Identifier: Apache-2.0
//
// What steps give for each row, the model's outputs and values that it shows, of one contributor: it lies in memory of
// the device, of the last step alone, until somebody asks (TrainerOptions::keep_outputs, shows_rows). Internal to this
// folder.
//
//   kept.reserve(m, program, device);    // a batch of another shape
//   kept.ran(m, program);                // micro-batch m of a step: results[i] goes to place(m, i)
//   gather_output(parts, 2, "logits")    // the last step had two
//
// Threads: the replica's; reading, while no steps run.
#ifndef TUTTI_DISTRIBUTE_PLAN_KEPT_OUTPUTS_H_
#define TUTTI_DISTRIBUTE_PLAN_KEPT_OUTPUTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// Name of the result of a step's program that is output `name` of the model.
std::string output_result(std::string_view name);

class KeptOutputs {
 public:
  /// Of steps of so many micro-batches at most.
  explicit KeptOutputs(int32_t batches) : batches_(static_cast<size_t>(batches)) {}

  /// Room for all that `program` gives of micro-batch m. Not while devices combine, nor while anything is under way
  /// that writes what is kept.
  base::Status reserve(int32_t m, const backend::ExecutableRef &program, backend::Device &device);
  /// Result i of micro-batch m, whose program had room reserved.
  void *place(int32_t m, size_t i) const { return batches_[static_cast<size_t>(m)].buffers[i].device_pointer(); }
  /// Micro-batch m of the step under way runs this program.
  void ran(int32_t m, const backend::ExecutableRef &program) { batches_[static_cast<size_t>(m)].program = program; }

 private:
  struct Batch {
    backend::ExecutableRef program;
    std::vector<backend::Buffer> buffers;  // by result
  };
  friend base::Result<tensor::Tensor> gather_output(std::span<const KeptOutputs *const> parts, int32_t batches,
                                                    std::string_view name);
  friend base::Result<std::vector<tensor::Tensor>> read_pieces(std::span<const KeptOutputs *const> parts,
                                                               int32_t batches, std::string_view result);

  std::vector<Batch> batches_;
};

/// A result of the last step's programs, a piece from each contributor and micro-batch that had rows, in their order.
/// FAILED_PRECONDITION where the programs do not give it.
base::Result<std::vector<tensor::Tensor>> read_pieces(std::span<const KeptOutputs *const> parts, int32_t batches,
                                                      std::string_view result);
/// The rows of an output in the last step, which had so many micro-batches, one batch behind the other. `parts`: of the
/// contributors, in the order of their rows; empty where they had none.
/// NOT_FOUND when there is no such output, FAILED_PRECONDITION when its rows
/// are not all of one shape.
base::Result<tensor::Tensor> gather_output(std::span<const KeptOutputs *const> parts, int32_t batches,
                                           std::string_view name);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_KEPT_OUTPUTS_H_
