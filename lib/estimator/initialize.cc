// SPDX-License-Identifier: Apache-2.0
//
// Variables before the first step, and weights that others trained.
#include <map>
#include <string>
#include <utility>

#include "base/file.h"
#include "checkpoint/reader.h"
#include "checkpoint/safetensors.h"
#include "estimator/estimator.h"
#include "estimator/variables.h"

namespace tutti::impl::estimator {

using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

using NamedWeights = std::map<std::string, Tensor, std::less<>>;

Result<NamedWeights> read_checkpoint_weights(const std::string &path, const base::Logger &logger) {
  TUTTI_ASSIGN(const checkpoint::Checkpoint read,
               checkpoint::read_checkpoint_or_newest(path, {.slots = false}, logger));
  NamedWeights weights;
  const std::vector<checkpoint::StateEntry> &entries = read.state->entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].role != checkpoint::StateRole::weight) continue;
    TUTTI_ASSIGN(Tensor value, read.state->read(i));
    weights.insert_or_assign(entries[i].name, std::move(value));
  }
  return weights;
}

Result<NamedWeights> read_weights(const std::string &path, const base::Logger &logger) {
  if (base::is_directory(path)) return read_checkpoint_weights(path, logger);
  TUTTI_ASSIGN(checkpoint::SafetensorsContent content, checkpoint::read_safetensors(path, std::nullopt));
  NamedWeights weights;
  for (size_t i = 0; i < content.tensors.size(); ++i)
    weights.insert_or_assign(content.header.entries[i].name, std::move(content.tensors[i]));
  return weights;
}

}  // namespace

Status Estimator::initialize(data::DatasetRef dataset, const std::string &weights_path,
                             base::Ref<base::CancelToken> cancel) {
  NamedWeights weights;
  if (!weights_path.empty()) {
    TUTTI_ASSIGN(weights, read_weights(weights_path, state_->logger()));
  }
  TrainRequest request;
  request.dataset = std::move(dataset);
  request.cancel = std::move(cancel);
  request.variables_only = true;
  TUTTI_ASSIGN(const std::unique_ptr<TrainSession> session, open_session(std::move(request)));
  if (!weights_path.empty()) {
    const Status written = write_variables(*state_, weights);
    if (!written.ok()) return session->fail(written.wrap(base::concat("weights of '", weights_path, "'")));
  }
  return session->close_variables(!weights_path.empty());
}

}  // namespace tutti::impl::estimator
