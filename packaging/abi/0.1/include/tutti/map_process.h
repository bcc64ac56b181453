/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker processes: maps that run as separate programs. The transform "map_process" (tutti_pipeline_map_process of
 * ops.h) starts several processes of a program, passes each element to a free process, and returns the results in the
 * order of the input. It is for code that cannot run in this process: code in another language, or code that only one
 * thread at a time may run.
 *
 * A program that uses tutti becomes a worker by tutti_serve_map. Any other program must use the following protocol.
 *
 * Messages   Each side sends messages: the number of bytes of the header (8 bytes, little-endian); the header, a JSON
 *            object in UTF-8 of at most 16 MiB; the data of the tensors that the header lists, one after the other. The
 *            worker reads standard input and writes standard output, which are a socket. It must read a message to its
 *            end before it answers, and must not print anything else to standard output.
 * Start      The worker gets {"protocol": 1, "seed": S, "inputs": [...], "outputs": [...]}: the seed of the iterator,
 *            and the components of its inputs and outputs, each as {"name": "x", "role": "feature", "dtype": "f32",
 *            "shape": [28, -1]}; -1 is a dimension that differs between elements, the role is feature, label or weight.
 *            It answers {"ready": 1}, the protocol that it uses.
 * Elements   The worker gets {"element": N, "epoch": E, "tensors": [...]}: the number of the element and of the pass,
 *            and each tensor as {"name": "x", "dtype": "f32", "shape": [28, 3], "bytes": 336}. It answers
 *            {"element": N, "tensors": [...]} with the tensors of "outputs" in that order, which must fit.
 * Data       Row-major elements in the memory format of the machine: f32, f64, f16, bf16, i8 to i64, u8 to u64, boolean
 *            (one byte, 0 or 1). For dtype bytes: the length of each text (8 bytes, little-endian), followed by all
 *            texts; "bytes" counts both.
 * Errors     Instead of tensors the worker answers {"element": N, "error": "text", "code": C}; the code is one of
 *            status.h and is optional. That is the error of the element; the process may get further elements. Instead
 *            of "ready" the answer is {"error": "text", "code": C}; the process then gets no elements.
 * End        When standard input ends, the process must exit. If it has not exited after two seconds it is killed. A
 *            process that computes an element that is no longer needed gets SIGTERM immediately.
 *
 * A process that dies is TUTTI_UNAVAILABLE, an answer in another format TUTTI_DATA_LOSS; each is the error of the
 * element that was computed, and names the command and the process. The next element gets a new process. There is no
 * time limit for a worker; the deadline of tutti_iterator_next ends the wait, not the computation, and the next call
 * continues to wait. lib/data/README.md has a worker in Python that needs only the standard library.
 */
#ifndef TUTTI_MAP_PROCESS_H_
#define TUTTI_MAP_PROCESS_H_

#include <tutti/cancel.h>
#include <tutti/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* To be called by the main function of a worker program: maps elements from standard input by a function in C until
 * there are no more, and writes the results to standard output. Both streams are taken over: from this call on the
 * program must not use standard input, and what it prints goes to standard error. An error of the function is the error
 * of its element. Returns TUTTI_OK at the end; TUTTI_FAILED_PRECONDITION if standard input is a terminal, and
 * TUTTI_DATA_LOSS if the data from standard input is not in the format above. Once per process. Compute callback: runs
 * on the calling thread, one call at a time. */
TUTTI_API int32_t tutti_serve_map(tutti_map_to_fn map, void *user, tutti_cancel *cancel, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_MAP_PROCESS_H_ */
