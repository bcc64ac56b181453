// SPDX-License-Identifier: Apache-2.0
//
// A group whose buffers lie in memory of devices: each rank copies them to the host, lets a group over host memory do
// the operation there, in its order of additions, and copies the results back. For devices that no library connects:
// several logical devices on one GPU, different GPUs, a backend that is new.
//
//   TUTTI_ASSIGN(auto ranks, LocalGroup::create(2, parts, options));
//   TUTTI_ASSIGN(ranks, stage(std::move(ranks), devices));              // devices[r] is rank r's
//
//   begin       the stream's work so far -> copies to the host            issued, on a stream of the group's own
//   wait        waits for these copies -> the operation on the host -> copies back issued -> the stream waits for them
//
// So the device computes while earlier operations are carried out, if the thread issues work ahead. Operations on host
// memory go through as they are. Staging memory is made when a size first comes, and kept: that of the operations that
// are under way at the same time.
#ifndef TUTTI_COLLECTIVE_STAGED_STAGED_GROUP_H_
#define TUTTI_COLLECTIVE_STAGED_STAGED_GROUP_H_

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "collective/group.h"

namespace tutti::impl::collective::staged {

/// Ranks over host memory -> ranks over memory of devices, one device for each. UNIMPLEMENTED naming the backend when
/// it does not copy by address.
base::Result<std::vector<std::unique_ptr<Group>>> stage(std::vector<std::unique_ptr<Group>> ranks,
                                                        std::span<const backend::DeviceRef> devices);

}  // namespace tutti::impl::collective::staged

#endif  // TUTTI_COLLECTIVE_STAGED_STAGED_GROUP_H_
