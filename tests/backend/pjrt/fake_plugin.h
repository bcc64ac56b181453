// SPDX-License-Identifier: Apache-2.0
//
// A plug-in with PJRT's C interface that computes nothing: results are zeros, of the types that a module's text says.
// It counts what it has handed out, and misbehaves as the environment's TUTTI_FAKE_PJRT says when something is called:
//
//   version=0.40     says that it has this version of the interface
//   without=20       lacks a function of the table
//   no_devices       finds no device
//   fail=N           the N-th call from now on fails with RESOURCE_EXHAUSTED
//   never            work never ends
//   lies             says nonsense of its memory, and more
//   worker=I         is one of two processes, and asks the other one for a word before it finds devices
//   too_large        no program fits into the devices of its topology, fake:1x2
#ifndef TUTTI_TESTS_BACKEND_PJRT_FAKE_PLUGIN_H_
#define TUTTI_TESTS_BACKEND_PJRT_FAKE_PLUGIN_H_

#include <cstdint>

extern "C" {
/// Objects that somebody still has: clients, buffers, events, executables, errors.
__attribute__((visibility("default"))) int64_t fake_pjrt_live_objects();
/// Calls since the last time that this was asked.
__attribute__((visibility("default"))) int64_t fake_pjrt_take_calls();
__attribute__((visibility("default"))) const void *GetPjrtApi();
}

#endif  // TUTTI_TESTS_BACKEND_PJRT_FAKE_PLUGIN_H_
