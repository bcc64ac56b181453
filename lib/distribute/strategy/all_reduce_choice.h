// SPDX-License-Identifier: Apache-2.0
//
// How gradients are added up over devices: what a run may ask for, and what the devices' topology offers.
//
//   automatic      devices with one memory update weights that they share, and add up as they do; devices that a
//                  library connects leave it to that; others combine copies on the host
//   device         the library that connects the devices (NCCL, RCCL), in its order
//   host           in the host's memory: each replica adds up an equal share of the elements
//   ring           in the host's memory: each takes the sum so far from its neighbour
//   hierarchical   in the host's memory: within nodes (nodes_of), then between these
//   reduce_to_one  in the host's memory: the first replica adds up everything, the others copy that
//
// Devices without memory of the host copy there and back for all but the first two. Other sums than automatic's need a
// copy of the weights for each device. Internal to this folder; pure functions.
#ifndef TUTTI_DISTRIBUTE_STRATEGY_ALL_REDUCE_CHOICE_H_
#define TUTTI_DISTRIBUTE_STRATEGY_ALL_REDUCE_CHOICE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/status.h"
#include "collective/local/local_group.h"

namespace tutti::impl::distribute {

enum class AllReduceChoice : int32_t { automatic = 0, device, host, ring, hierarchical, reduce_to_one };

/// "automatic", ...
std::string_view name(AllReduceChoice choice);
/// INVALID_ARGUMENT listing the names for another text.
base::Result<AllReduceChoice> all_reduce_choice(std::string_view text);

/// INVALID_ARGUMENT where a choice adds up in an order that depends on the number of devices, which the level forbids.
base::Status check_all_reduce(AllReduceChoice choice, backend::Level level);

/// What is wanted of devices whose memory the host does not reach: connected where that can be, or copies on the host.
struct ConnectionWish {
  base::Status may;  ///< ok, or why they are not to be connected
  bool is_demanded = false;
  std::string_view whose;  ///< "all_reduce", or what else demands it
};
/// The environment's TUTTI_GROUP (<tutti/strategy.h>): "staged", "device", or "" where it is not set.
base::Result<std::string> group_from_environment();
/// By all_reduce and, where that leaves it open, by group_from_environment().
base::Result<ConnectionWish> connection_wish(AllReduceChoice choice, backend::Level level);

/// The node of each device, counted from 0: devices that share a memory, or of which one reads the other's without the
/// host, directly or by way of others. Where that makes one node of all or one of each, neighbours in groups of about
/// the square root of their number.
std::vector<int32_t> nodes_of(std::span<const backend::DeviceDescription> devices);

/// A group's options for what is added up in the host's memory. `text` becomes how, such as "hierarchical, nodes gpu:0
/// gpu:1 | gpu:2 gpu:3".
base::Result<collective::local::LocalGroupOptions> on_host(AllReduceChoice choice,
                                                           std::span<const backend::DeviceRef> devices,
                                                           std::string &text);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_ALL_REDUCE_CHOICE_H_
