// SPDX-License-Identifier: Apache-2.0
//
// Gloo's TCP transport, so that nothing that comes in can end the process. Gloo checks what it reads, and who has
// called, with exceptions on its own thread, where nobody catches them; and a call that comes late, where all
// connections come in at one port, is handed to a pair that has gone. Here an exception ends the connection it is
// about, which whoever waits for it is told, and a late call is dropped.
#ifndef TUTTI_COLLECTIVE_GLOO_GUARDED_TRANSPORT_H_
#define TUTTI_COLLECTIVE_GLOO_GUARDED_TRANSPORT_H_

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

namespace tutti::gloo_engine {

/// Who listens at an address of this machine, with a thread of its own. Throws where the address is not one.
std::shared_ptr<gloo::transport::tcp::Device> make_device(const char *host);

/// The connections of one process with the others, each guarded. `device` is one that make_device made.
std::shared_ptr<gloo::transport::Context> make_context(std::shared_ptr<gloo::transport::tcp::Device> device, int rank,
                                                       int size);

}  // namespace tutti::gloo_engine

#endif  // TUTTI_COLLECTIVE_GLOO_GUARDED_TRANSPORT_H_
