// SPDX-License-Identifier: Apache-2.0
//
// `tutti predict`: what a trained model says of the examples in files. Where a launcher has started it several times
// (`tutti run`, torchrun, mpirun, srun, TF_CONFIG), the processes share the work, and the first one writes the file.
#ifndef TUTTI_TOOL_PREDICT_DATASET_H_
#define TUTTI_TOOL_PREDICT_DATASET_H_

#include <string>
#include <vector>

#include "tool/arguments.h"

namespace tutti::tool {

/// What follows "predict" on the command line; the exit status. Wrong arguments throw UsageError, failures
/// std::exception.
int predict_dataset(const std::vector<std::string> &words);

/// The lines of its help.
extern const char *const kPredictUsage;

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_PREDICT_DATASET_H_
