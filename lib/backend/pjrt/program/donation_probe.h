// SPDX-License-Identifier: Apache-2.0
//
// Whether a plug-in may be given arrays to work on in place. One public plug-in for processors keeps a rearranged copy
// of a product's factor by its address, and goes on with it when the array at that address has changed: from the second
// step on, a training computes with weights of the first. So a few donated steps with a product large enough for such
// copies are run once, and compared with what they have to give.
#ifndef TUTTI_BACKEND_PJRT_PROGRAM_DONATION_PROBE_H_
#define TUTTI_BACKEND_PJRT_PROGRAM_DONATION_PROBE_H_

#include "backend/pjrt/interface/pjrt_client.h"
#include "base/status.h"

namespace tutti::impl::backend::pjrt {

/// Runs the steps on a device. True where nothing runs, for devices that are not here.
base::Result<bool> donation_works(const ClientRef &client, size_t device);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_PROGRAM_DONATION_PROBE_H_
