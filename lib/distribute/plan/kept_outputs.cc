// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/kept_outputs.h"

#include <algorithm>

#include "base/memory.h"
#include "base/name_suggestions.h"
#include "base/text.h"

namespace tutti::impl::distribute {

using backend::PortDescription;
using base::Result;
using base::Status;
using tensor::Tensor;

std::string output_result(std::string_view name) { return base::concat("output/", name); }

Status KeptOutputs::reserve(int32_t m, const backend::ExecutableRef &program, backend::Device &device) {
  const std::vector<PortDescription> &results = program->description().outputs;
  std::vector<backend::Buffer> &buffers = batches_[static_cast<size_t>(m)].buffers;
  buffers.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t bytes = std::max<int64_t>(results[i].bytes, base::kAlignment);
    if (buffers[i].size_bytes() >= bytes) continue;
    buffers[i] = {};  // before more is taken
    TUTTI_ASSIGN(buffers[i], device.allocate(bytes));
  }
  return Status();
}

namespace {

Status no_output(std::string_view name, const backend::ExecutableDescription &program) {
  const std::string prefix = output_result("");
  std::vector<std::string> names;
  for (const PortDescription &result : program.outputs)
    if (result.name.starts_with(prefix)) names.push_back(result.name.substr(prefix.size()));
  return base::not_found("the model has no output '", name, "' in mode TRAIN", base::but_there_are(name, names));
}

/// The shape of all rows together.
Status add_rows(const PortDescription &port, std::string_view name, PortDescription &whole) {
  if (whole.dims.empty()) {
    whole = port;
    return Status();
  }
  if (!std::ranges::equal(port.dims.begin() + 1, port.dims.end(), whole.dims.begin() + 1, whole.dims.end()))
    return base::failed_precondition("output '", name, "' has rows of several shapes in the last step");
  whole.dims[0] += port.dims[0];
  return Status();
}

}  // namespace

Result<Tensor> gather_output(std::span<const KeptOutputs *const> parts, int32_t batches, std::string_view name) {
  const std::string result = output_result(name);
  struct Piece {
    const backend::Buffer *buffer;
    int64_t bytes;
  };
  std::vector<Piece> pieces;
  PortDescription whole;
  for (size_t m = 0; m < static_cast<size_t>(batches); ++m) {
    for (const KeptOutputs *part : parts) {
      const KeptOutputs::Batch &batch = part->batches_[m];
      const int32_t at = batch.program->description().output_index(result);
      if (at < 0) return no_output(name, batch.program->description());
      const PortDescription &port = batch.program->description().outputs[static_cast<size_t>(at)];
      if (port.dims[0] == 0) continue;  // whose other dims may be anything
      TUTTI_TRY(add_rows(port, name, whole));
      pieces.push_back({&batch.buffers[static_cast<size_t>(at)], port.bytes});
    }
  }
  if (pieces.empty()) return Tensor();
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(whole.dims));
  TUTTI_ASSIGN(Tensor rows, Tensor::allocate(whole.dtype, shape));
  auto *target = static_cast<std::byte *>(rows.mutable_data());
  for (const Piece &piece : pieces) {
    TUTTI_TRY(piece.buffer->read(0, target, piece.bytes));
    target += piece.bytes;
  }
  return rows;
}

Result<std::vector<Tensor>> read_pieces(std::span<const KeptOutputs *const> parts, int32_t batches,
                                        std::string_view result) {
  std::vector<Tensor> pieces;
  for (size_t m = 0; m < static_cast<size_t>(batches); ++m) {
    for (const KeptOutputs *part : parts) {
      const KeptOutputs::Batch &batch = part->batches_[m];
      const int32_t at = batch.program == nullptr ? -1 : batch.program->description().output_index(std::string(result));
      if (at < 0) return base::failed_precondition("the last step has not kept '", result, "'");
      const PortDescription &port = batch.program->description().outputs[static_cast<size_t>(at)];
      if (std::ranges::find(port.dims, 0) != port.dims.end()) continue;
      TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(port.dims));
      TUTTI_ASSIGN(Tensor piece, Tensor::allocate(port.dtype, shape));
      TUTTI_TRY(batch.buffers[static_cast<size_t>(at)].read(0, piece.mutable_data(), port.bytes));
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

}  // namespace tutti::impl::distribute
