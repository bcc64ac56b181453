// SPDX-License-Identifier: Apache-2.0
//
// What was issued on streams as a graph that can be launched: one captured, instantiated and ready.
//
//   TUTTI_TRY(begin_capture(stream));
//   ...                                                     // work, also on streams that wait for events of this one
//   TUTTI_ASSIGN(const gpuGraphExec_t graph, end_capture(stream));
//
// And recordings of tutti_stream_table, over these.
//
// Threads: one captures; its thread may allocate and load code meanwhile, which is no part of the work, and so may all
// others.
#ifndef TUTTI_BACKEND_GPU_PROGRAM_GPU_RECORDING_H_
#define TUTTI_BACKEND_GPU_PROGRAM_GPU_RECORDING_H_

#include <tutti/plugin/backend.h>

#include "backend/gpu/runtime/runtime.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

base::Status begin_capture(gpuStream_t stream);
/// Ends it also where there is an error. The caller destroys the graph.
base::Result<gpuGraphExec_t> end_capture(gpuStream_t stream);

// Of tutti_stream_table.
int32_t record_begin(tutti_stream *stream, tutti_error_sink *sink);
int32_t record_end(tutti_stream *stream, tutti_recording **recording, tutti_error_sink *sink);
int32_t replay(tutti_recording *recording, tutti_stream *stream, tutti_error_sink *sink);
void recording_release(tutti_recording *recording);
int32_t hold(tutti_stream *stream, void *words, void *verdict, tutti_error_sink *sink);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_PROGRAM_GPU_RECORDING_H_
