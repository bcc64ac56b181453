// SPDX-License-Identifier: Apache-2.0
//
// Cluster resolvers behind handles: a cluster, where its workers have met, and the context of their devices.
#ifndef TUTTI_CAPI_CLUSTER_RESOLVER_C_H_
#define TUTTI_CAPI_CLUSTER_RESOLVER_C_H_

#include <tutti/cluster_resolver.h>

#include <memory>
#include <mutex>
#include <string>

#include "capi/context_c.h"
#include "distribute/strategy/cluster.h"
#include "distribute/strategy/meeting_point.h"

namespace tutti::impl::capi {

/// What tutti_cluster_resolver_connect has been told, and where the workers met.
struct Connection {
  ResolvedOptions options;
  std::shared_ptr<distribute::MeetingPoint> place;
  distribute::GatheredWorkers workers;  ///< empty for a worker alone

  bool is_alone() const { return workers.table == nullptr; }
};

class ClusterResolverObject : public base::Object {
 public:
  explicit ClusterResolverObject(distribute::Cluster cluster)
      : cluster_(std::move(cluster)), json_(cluster_.describe().dump()) {}

  const distribute::Cluster &cluster() const { return cluster_; }
  const std::string &json() const { return json_; }
  Status connect(ResolvedOptions options);
  Status initialize(ResolvedOptions options);
  /// Null before.
  std::shared_ptr<const Connection> connection() const;
  Ref<ContextObject> context() const;
  /// The lent handle of the context; null before there is one.
  Result<void *> context_handle();

 private:
  const distribute::Cluster cluster_;
  const std::string json_;
  std::mutex turn_;       // one call connects or initializes at a time
  int64_t attempts_ = 0;  // to initialize; guarded by turn_
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::shared_ptr<const Connection> connection_;
  Ref<ContextObject> context_;
  LentHandle context_handle_;
};

extern constinit HandleType<ClusterResolverObject> cluster_resolver_handles;

/// "host:port,host:port", and which of them this worker is.
Result<distribute::Cluster> cluster_of_list(std::string_view workers, int64_t worker);

/// How workers meet by options of the schema "cluster".
distribute::MeetingOptions meeting_options(const ResolvedOptions &options, const Ref<base::Logger> &logger);

/// INVALID_ARGUMENT where these options say who the workers are, which the resolver does.
Status check_no_workers(const ResolvedOptions &options, std::string_view who);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_CLUSTER_RESOLVER_C_H_
