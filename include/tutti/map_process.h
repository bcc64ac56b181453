/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker processes: maps that are programs of their own. The transform "map_process" (tutti_pipeline_map_process of
 * ops.h) starts several processes of a program, hands each element to one that is free, and gives what comes back in
 * the order of the input. It is for code that cannot run in this process: that of another language, or code that only
 * one thread at a time may run.
 *
 * A program that uses tutti is a worker by tutti_serve_map. Any other program is one that talks as follows.
 *
 * Messages   Both sides write messages to the other: 8 bytes, little-endian, the number of bytes of the header; the
 *            header, a JSON object in UTF-8 of at most 16 MiB; the data of the tensors that it lists, one behind the
 *            other. The worker reads standard input and writes standard output, which are a socket; it reads a message
 *            to its end before it answers, and it must print nothing else to standard output.
 * Beginning  The worker gets {"protocol": 1, "seed": S, "inputs": [...], "outputs": [...]}, the seed of the iterator
 *            and of each component what it gets and has to give: {"name": "x", "role": "feature", "dtype": "f32",
 *            "shape": [28, -1]}; -1 is a dimension that differs between elements, the role is feature, label or weight.
 *            It answers {"ready": 1}, the protocol that it talks.
 * Elements   The worker gets {"element": N, "epoch": E, "tensors": [...]}, the number of the element and of the pass,
 *            and of each tensor {"name": "x", "dtype": "f32", "shape": [28, 3], "bytes": 336}. It answers
 *            {"element": N, "tensors": [...]} with the tensors of "outputs" in that order, which must fit.
 * Data       Elements row-major, as the machine has them in memory: f32, f64, f16, bf16, i8 to i64, u8 to u64, boolean
 *            (one byte, 0 or 1). Of dtype bytes the length of each text, 8 bytes, little-endian, and behind these all
 *            texts; "bytes" counts both.
 * Errors     Instead of tensors the worker answers {"element": N, "error": "text", "code": C}, where the code is one of
 *            status.h and may be missing. That is the error of the element; the next one may go to the same process. In
 *            place of "ready" it is {"error": "text", "code": C}; the process is not asked again then.
 * End        Standard input ends, and then the process ends. If it has not after two seconds it is killed; one that is
 *            at work on an element that nobody waits for any more gets SIGTERM at once.
 *
 * A process that dies is TUTTI_UNAVAILABLE, an answer that is not of this form TUTTI_DATA_LOSS, each the error of the
 * element that was computed; the errors name the command and the process. The next element gets a new process. There is
 * no limit for how long a worker may take; the deadline of tutti_iterator_next ends the wait, not the work, and the
 * next call goes on waiting. A worker in Python with its standard library alone is in lib/data/README.md.
 */
#ifndef TUTTI_MAP_PROCESS_H_
#define TUTTI_MAP_PROCESS_H_

#include <tutti/cancel.h>
#include <tutti/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the main function of a worker program calls: maps elements from standard input by a function in C until there
 * are no more, and writes what it gives to standard output. Both are taken over: from the call on the program reads
 * nothing from standard input, and what it prints goes to standard error. An error of the function is that of its
 * element. Returns TUTTI_OK at the end; TUTTI_FAILED_PRECONDITION when standard input is a terminal, and
 * TUTTI_DATA_LOSS when what comes from there is not of the form above. Once in a process. Compute callback: runs on the
 * calling thread, one call at a time. */
TUTTI_API int32_t tutti_serve_map(tutti_map_to_fn map, void *user, tutti_cancel *cancel, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_MAP_PROCESS_H_ */
