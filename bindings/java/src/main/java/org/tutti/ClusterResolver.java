// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/**
 * Which processes ("workers") train a model together, and which of them this one is. All sources give the same object,
 * which {@link Strategy#multiWorker(Context, ClusterResolver, ClusterOptions)} takes.
 *
 * <p>TPUs are used in four calls, each of which throws before the one in front of it was made: {@link #ofTpu} says
 * which machines the TPUs are attached to, {@link #connect} lets the workers meet, {@link #initialize} opens the
 * library for TPUs and finds their devices, and {@link Strategy#tpu} makes a strategy over them, whose context has
 * them.
 */
public final class ClusterResolver extends NativeObject {
    private ClusterResolver(long number) {
        super(new Handle("ClusterResolver", number, Raw::cluster_resolver_unref));
    }

    private interface Create {
        int call(long[] out, long[] failure);
    }

    private static ClusterResolver make(Create create) {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(create.call(out, failure), failure);
        return new ClusterResolver(out[0]);
    }

    /** A cluster of workers with known addresses.
     *
     * @param workers the address of each, "host:port"
     * @param index which of them this process is, from 0 on
     * @return the resolver
     */
    public static ClusterResolver of(List<String> workers, long index) {
        return make((out, failure) ->
            Raw.cluster_resolver_create_list(String.join(",", workers), index, out, failure));
    }

    /** The cluster of a TF_CONFIG variable. Errors name the key.
     *
     * @param text of the variable
     * @return the resolver
     */
    public static ClusterResolver ofTfConfig(String text) {
        return make((out, failure) -> Raw.cluster_resolver_create_tf_config(text, out, failure));
    }

    /** What the first launcher has set in the environment whose variables are there.
     *
     * @return the resolver
     */
    public static ClusterResolver fromEnvironment() {
        return make((out, failure) -> Raw.cluster_resolver_create_from_environment("", out, failure));
    }

    /** What a launcher has set in the environment.
     *
     * @param launcher "TF_CONFIG", "torchrun", "mpirun", "Slurm" or "GKE"
     * @return the resolver
     */
    public static ClusterResolver fromEnvironment(String launcher) {
        return make((out, failure) -> Raw.cluster_resolver_create_from_environment(launcher, out, failure));
    }

    /** The workers of a TPU that needs no metadata.
     *
     * @param tpu "local" for the chips of this machine, or addresses such as "grpc://192.0.2.2:8470"
     * @return the resolver
     */
    public static ClusterResolver ofTpu(String tpu) {
        return ofTpu(tpu, "");
    }

    /** The workers of a TPU. Nothing is requested over the network.
     *
     * @param tpu "local", addresses, or a name whose workers are in the metadata
     * @param metadata of a machine of the TPU; tutti/cluster_resolver.h says what it looks like
     * @return the resolver
     */
    public static ClusterResolver ofTpu(String tpu, String metadata) {
        return make((out, failure) -> Raw.cluster_resolver_create_tpu(tpu, metadata, out, failure));
    }

    /** The number of workers.
     *
     * @return their number
     */
    public long workerCount() {
        try (Use use = new Use()) {
            return Raw.cluster_resolver_get_worker_count(use.of(this));
        }
    }

    /** The number of this process among the workers.
     *
     * @return its number, from 0 on; 0 for an evaluator
     */
    public long workerIndex() {
        try (Use use = new Use()) {
            return Raw.cluster_resolver_get_worker_index(use.of(this));
        }
    }

    /** The address of a worker.
     *
     * @param worker its number
     * @return "host:port"; "" where the launcher tells only that of worker 0
     */
    public String address(long worker) {
        try (Use use = new Use()) {
            String address = Raw.cluster_resolver_get_address(use.of(this), worker);
            if (address == null) {
                throw new IndexOutOfBoundsException("there is no worker " + worker);
            }
            return address;
        }
    }

    /** All that is known, as a JSON object.
     *
     * @return the JSON text
     */
    public String toJson() {
        try (Use use = new Use()) {
            return Raw.cluster_resolver_get_json(use.of(this));
        }
    }

    /** The workers meet: returns when all have called it. An error names the worker that does not come. A worker alone
     * opens no connection.
     *
     * @param options those of a strategy of several workers, without workers and worker
     */
    public void connect(ClusterOptions options) {
        try (Use use = new Use(); Options.Native cluster = new Options.Native(options)) {
            long[] failure = new long[1];
            TuttiException.check(Raw.cluster_resolver_connect(use.of(this), cluster.number, failure), failure);
        }
    }

    /** The same with default options. */
    public void connect() {
        connect(new ClusterOptions());
    }

    /** Opens the library that the option pjrtPlugin names, such as libtpu.so, and finds the devices of this worker.
     * Without a TPU, or its library, the exception has the code UNAVAILABLE and says what there is instead.
     *
     * @param options those of a context
     */
    public void initialize(ContextOptions options) {
        initialize(options, false);
    }

    /** The same with the library that the environment variable TPU_LIBRARY_PATH names, unless options name one.
     *
     * @param options those of a context
     */
    public void initializeFromEnvironment(ContextOptions options) {
        initialize(options, true);
    }

    private void initialize(ContextOptions options, boolean readsEnvironment) {
        try (Use use = new Use(); Options.Native context = new Options.Native(options)) {
            if (readsEnvironment) {
                Raw.options_set_from_environment(context.number);
            }
            long[] failure = new long[1];
            TuttiException.check(Raw.cluster_resolver_initialize(use.of(this), context.number, failure), failure);
        }
    }

    /** The context with the devices of this worker.
     *
     * @return the context
     */
    public Context context() {
        try (Use use = new Use()) {
            long context = Raw.cluster_resolver_get_context(use.of(this));
            if (context == 0) {
                throw new IllegalStateException("the cluster resolver is not initialized");
            }
            return Context.share(context);
        }
    }

    @Override
    String details() {
        return " " + toJson();
    }
}
