// SPDX-License-Identifier: Apache-2.0
//
// A mesh between the workers of a cluster, whose addresses are in the table that they share. Internal to this folder.
#ifndef TUTTI_COLLECTIVE_CLUSTER_WORKER_MESH_H_
#define TUTTI_COLLECTIVE_CLUSTER_WORKER_MESH_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "collective/cluster/cluster_group.h"
#include "collective/engine.h"

namespace tutti::impl::collective::cluster {

/// All workers call it, in the thread that will use the mesh. `name`: of this mesh among those of the group. Each two
/// of them prove to each other that they belong to the job. Where somebody else has called first at a port, or a
/// connection could not be made for another reason, all make a new mesh, a few times, until the group's timeout. Errors
/// name the worker that could not be reached.
base::Result<std::unique_ptr<Mesh>> connect_mesh(const ClusterGroupOptions &options, const std::string &name);

/// `failure` of an exchange, as what worker `options.worker` says of the other one: that it has gone while this worker
/// was in `what`, or that it was waited for.
base::Status name_peer(const base::Status &failure, std::span<const std::string> names, int32_t worker,
                       int64_t timeout_ms, const std::string &what);

}  // namespace tutti::impl::collective::cluster

#endif  // TUTTI_COLLECTIVE_CLUSTER_WORKER_MESH_H_
