// SPDX-License-Identifier: Apache-2.0
//
// The other side of a WorkerProcess: what a program does that is one.
#ifndef TUTTI_DATA_PIPELINE_SERVE_MAP_H_
#define TUTTI_DATA_PIPELINE_SERVE_MAP_H_

#include <functional>

#include "base/cancel.h"
#include "base/status.h"
#include "data/element/element.h"
#include "data/pipeline/pipeline.h"

namespace tutti::impl::data {

/// Makes the function, of the components that it is to give.
using MapMaker = std::function<MapFunction(const ElementSpec &outputs)>;

/// Maps what comes from standard input until that ends, and writes to standard output what `make` makes of it. Takes
/// both for itself: from then on the process reads nothing from standard input, and what it prints goes to standard
/// error. The token (null allowed) ends each wait. An error of the function is that of its element. FAILED_PRECONDITION
/// when standard input is a terminal, DATA_LOSS when what comes from there is no talk with a worker process. Once in a
/// process.
base::Status serve_map(const MapMaker &make, const base::CancelToken *token);

/// The same over two descriptors, which stay the caller's.
base::Status serve_map(int input, int output, const MapMaker &make, const base::CancelToken *token);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_SERVE_MAP_H_
