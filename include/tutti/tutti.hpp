// SPDX-License-Identifier: Apache-2.0
//
// The C++17 face of tutti: owning handles and chainable builders over the C interface, header-only. Failures throw
// tutti::Error; callbacks may throw anything, and what they throw comes back as the cause of the call that failed.
//
//   tutti::Pipeline pipeline;
//   pipeline.slices("x", TUTTI_ROLE_FEATURE, x).slices("y", TUTTI_ROLE_LABEL, y);
//   tutti_pipeline_batch(pipeline, 64, nullptr);                  // the C helpers take these objects as they are
//   tutti::Dataset dataset = pipeline.build();
//   tutti::Estimator estimator([](tutti::Graph g, int32_t mode) { ... }, tutti::Options("run").set("seed", 7));
//   tutti::Result result = estimator.train(dataset, tutti::Options("train").set("steps", 100));
//
// Threads, ownership and meaning are those of the C functions. A moved-from object is empty.
#ifndef TUTTI_TUTTI_HPP_
#define TUTTI_TUTTI_HPP_

#include <tutti/cpp/estimator.hpp>
#include <tutti/cpp/predictor.hpp>
#include <tutti/cpp/region.hpp>

#endif  // TUTTI_TUTTI_HPP_
