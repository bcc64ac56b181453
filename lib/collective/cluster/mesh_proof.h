// SPDX-License-Identifier: Apache-2.0
//
// A mesh that has just been connected may have somebody else at the end of a connection, who called first at the port
// that was opened for a worker. Internal to this folder.
#ifndef TUTTI_COLLECTIVE_CLUSTER_MESH_PROOF_H_
#define TUTTI_COLLECTIVE_CLUSTER_MESH_PROOF_H_

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "collective/engine.h"

namespace tutti::impl::collective::cluster {

struct MeshProof {
  std::string_view secret;  ///< of the job
  std::string_view name;    ///< of the mesh; no other has it
  int32_t worker = 0, workers = 2;
  int64_t timeout_ms = 0;
};

/// Each two workers prove to each other over the mesh that they have the secret. All call it. The error has the detail
/// "rank": UNAVAILABLE where a connection has ended, DEADLINE_EXCEEDED for who says nothing, PERMISSION_DENIED for who
/// does not know the secret.
base::Status prove_over(Mesh &mesh, const MeshProof &proof);

}  // namespace tutti::impl::collective::cluster

#endif  // TUTTI_COLLECTIVE_CLUSTER_MESH_PROOF_H_
