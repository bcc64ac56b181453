// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/mesh_proof.h"

#include <string>
#include <vector>

#include "base/text.h"
#include "collective/challenge.h"

namespace tutti::impl::collective::cluster {

using base::Result;
using base::Status;

namespace {

static_assert(kNonceBytes == kProofBytes);

/// Words of one length, one to each other worker and one from each.
class Round {
 public:
  Round(const MeshProof &proof, uint32_t tag)
      : proof_(proof), tag_(tag), sent(static_cast<size_t>(proof.workers)), received(sent.size()) {}

  Status run(Mesh &mesh) {
    std::vector<tutti_message> sends, receives;
    for (int32_t w = 0; w < proof_.workers; ++w) {
      if (w == proof_.worker) continue;
      const auto place = static_cast<size_t>(w);
      received[place].resize(kNonceBytes);
      sends.push_back({w, tag_, sent[place].data(), kNonceBytes});
      receives.push_back({w, tag_, received[place].data(), kNonceBytes});
    }
    return mesh.exchange({.sends = sends, .receives = receives, .timeout_ms = proof_.timeout_ms});
  }

 private:
  const MeshProof &proof_;
  const uint32_t tag_;

 public:
  std::vector<std::string> sent, received;  // by worker
};

std::string role(const MeshProof &proof, int32_t from, int32_t to) {
  return base::concat("mesh ", proof.name, " ", from, " to ", to);
}

}  // namespace

Status prove_over(Mesh &mesh, const MeshProof &proof) {
  Round nonces(proof, 0), proofs(proof, 1);
  for (std::string &nonce : nonces.sent) {
    TUTTI_ASSIGN(nonce, make_nonce());
  }
  TUTTI_TRY(nonces.run(mesh));
  for (int32_t w = 0; w < proof.workers; ++w) {
    const auto place = static_cast<size_t>(w);
    proofs.sent[place] = prove(proof.secret, role(proof, proof.worker, w), nonces.received[place], nonces.sent[place]);
  }
  TUTTI_TRY(proofs.run(mesh));
  for (int32_t w = 0; w < proof.workers; ++w) {
    const auto place = static_cast<size_t>(w);
    if (w == proof.worker || proves(proofs.received[place], proof.secret, role(proof, w, proof.worker),
                                    nonces.sent[place], nonces.received[place]))
      continue;
    return base::permission_denied("the other side does not know the secret of the job")
        .with_detail("rank", std::to_string(w));
  }
  return Status();
}

}  // namespace tutti::impl::collective::cluster
