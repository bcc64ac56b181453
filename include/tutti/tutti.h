/* SPDX-License-Identifier: Apache-2.0
 *
 * tutti: trains neural networks on every device you have, and predicts on all of them. This header brings the whole C
 * interface; status.h states its conventions.
 */
#ifndef TUTTI_TUTTI_H_
#define TUTTI_TUTTI_H_

#include <tutti/cancel.h>
#include <tutti/cluster_resolver.h>
#include <tutti/context.h>
#include <tutti/dataset.h>
#include <tutti/estimator.h>
#include <tutti/file_system.h>
#include <tutti/graph.h>
#include <tutti/hook.h>
#include <tutti/map_process.h>
#include <tutti/ops.h>
#include <tutti/options.h>
#include <tutti/predictor.h>
#include <tutti/record.h>
#include <tutti/region.h>
#include <tutti/status.h>
#include <tutti/step_function.h>
#include <tutti/strategy.h>
#include <tutti/summary.h>
#include <tutti/tensor.h>
#include <tutti/version.h>

#endif /* TUTTI_TUTTI_H_ */
