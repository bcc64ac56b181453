/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks of tests/backend/cpu/step_networks.h as a user of the library writes them, with layers. Their shapes and
 * numbers of operations are the same; strided convolutions are padded as the layers do. Threads: any.
 */
#ifndef TUTTI_TESTS_BENCH_REPLICA_NETWORKS_H_
#define TUTTI_TESTS_BENCH_REPLICA_NETWORKS_H_

#include <tutti/tutti.h>

struct replica_network {
  const char *name;
  int64_t image[3]; /* height, width, channels; perceptrons: elements, 0, 0 */
  int64_t classes;
  tutti_value (*logits)(tutti_graph *g, tutti_value x);
};

/* By name; NULL when there is none. */
const struct replica_network *replica_network_find(const char *name);

/* A model function (tutti_model_fn) of the network that `user` points to: cross entropy of whole labels, Adam. */
int32_t replica_network_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err);

#endif /* TUTTI_TESTS_BENCH_REPLICA_NETWORKS_H_ */
