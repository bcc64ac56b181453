// SPDX-License-Identifier: Apache-2.0
//
// Measures on request, so that a comparison can switch between this program and another one block by block. A request
// is a line of words on standard input, an answer a line with a JSON object on standard output; {"error": text} when it
// cannot be done. The first line out names the program.
//
//   measure FORM MODEL BATCH THREADS CONFIGURATION SECONDS   {"cpu_ms", "wall_ms", "steps", "waits", "gflops",
//                                                            "build_ms", "peak_mb", "workspace_mb",
//                                                            "lower_bound_mb", "state_mb", "issue_us", "device_mb"}
//   calibrate THREADS SECONDS                                {"gflops"}: of multiply-adds, by the wall clock
//   ceiling SECONDS                                          {"gflops", "target"}: of one thread
//   kernels FORM MODEL BATCH                                 {"kernels": [[name, ms], ...]}, the slowest first
//   overhead FORM MODEL BATCH                                {"step_us", "executor_us", "kernel_calls"}
//   dump FORM MODEL BATCH PATH                               {"losses"}: see write_values
//   drop                                                     {}: frees the case that is kept
//
// CONFIGURATION is words with + between them: "bf16" permits factors rounded to bfloat16, "bucketed" keeps gradients in
// memory, "latency" waits for the device after each step, any other means f32. issue_us is what a step
// takes of its thread, device_mb what was allocated on the device. The case of the last request is kept.
#ifndef TUTTI_TESTS_BENCH_STEP_SERVER_H_
#define TUTTI_TESTS_BENCH_STEP_SERVER_H_

#include <string>

namespace tutti::testing {

/// Until the end of standard input.
void serve_steps(const std::string &backend);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BENCH_STEP_SERVER_H_
