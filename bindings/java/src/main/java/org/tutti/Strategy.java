// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;

/** On which devices a model runs. The model that training gives does not depend on it, only the time. Immutable. */
public final class Strategy extends NativeObject {
    private Strategy(long number) {
        super(new Handle("Strategy", number, Raw::strategy_unref));
    }

    /** Everything on the first device of the default context.
     *
     * @return the strategy
     */
    public static Strategy oneDevice() {
        return oneDeviceOf(null, null);
    }

    /** Everything on one device of the default context.
     *
     * @param device such as "cpu:0"
     * @return the strategy
     */
    public static Strategy oneDevice(String device) {
        return oneDeviceOf(null, device);
    }

    /** Everything on the first device of a context.
     *
     * @param context whose device
     * @return the strategy
     */
    public static Strategy oneDevice(Context context) {
        return oneDeviceOf(context, null);
    }

    /** Everything on one device of a context.
     *
     * @param context whose device
     * @param device such as "cpu:0"
     * @return the strategy
     */
    public static Strategy oneDevice(Context context, String device) {
        return oneDeviceOf(context, device);
    }

    private static Strategy oneDeviceOf(@Nullable Context context, @Nullable String device) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_one_device(use.of(context), device, out, failure), failure);
            return new Strategy(out[0]);
        }
    }

    /** The devices of the default context that train fastest, as far as the library can tell.
     *
     * @return the strategy
     */
    public static Strategy auto() {
        return autoOf(null, 0);
    }

    /** The devices of a context that train fastest, as far as the library can tell: one replica on each GPU or other
     * device with memory of its own; without such devices one with one thread on each processor core, or, if a batch
     * has fewer than 32 rows for each of them, fewer replicas with more threads each. The choice is logged with its
     * reason.
     *
     * @param context whose devices
     * @param batchSize the number of rows of a global batch; 0 = not known
     * @return the strategy
     */
    public static Strategy auto(Context context, long batchSize) {
        return autoOf(context, batchSize);
    }

    private static Strategy autoOf(@Nullable Context context, long batchSize) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_auto(use.of(context), batchSize, out, failure), failure);
            return new Strategy(out[0]);
        }
    }

    /** One replica on each device of the default context, kept equal, or on some of them.
     *
     * @param devices such as "cpu:0"; none = all
     * @return the strategy
     */
    public static Strategy mirrored(String... devices) {
        return mirroredOn(null, devices);
    }

    /** One replica on each device of a context, kept equal, or on some of them. Devices of several backends, such as
     * those of a context whose backend is "cuda,cpu", predict and evaluate together, however much their speeds differ;
     * they do not train.
     *
     * @param context whose devices
     * @param devices such as "cpu:0"; none = all
     * @return the strategy
     */
    public static Strategy mirrored(Context context, String... devices) {
        return mirroredOn(context, devices);
    }

    private static Strategy mirroredOn(@Nullable Context context, String... devices) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_mirrored(use.of(context), Text.list(List.of(devices)),
                devices.length, out, failure), failure);
            return new Strategy(out[0]);
        }
    }

    /** Central storage on devices of the default context; see {@link #centralStorage(Context, String, String...)}.
     *
     * @param storage such as "cpu:0"; "" = the first of the devices
     * @param devices that compute, such as "gpu:0"; none = every GPU, or every device if there are none
     * @return the strategy
     */
    public static Strategy centralStorage(String storage, String... devices) {
        return centralStorageOn(null, storage, devices);
    }

    /** One replica on each device, as mirrored; but variables, optimizer slots and averages are stored in one place,
     * and updated there once per step. It needs less memory on the other devices, and more time; see tutti/strategy.h.
     *
     * @param context whose devices
     * @param storage such as "cpu:0"; "" = the first of the devices
     * @param devices that compute, such as "gpu:0"; none = every GPU, or every device if there are none
     * @return the strategy
     */
    public static Strategy centralStorage(Context context, String storage, String... devices) {
        return centralStorageOn(context, storage, devices);
    }

    private static Strategy centralStorageOn(@Nullable Context context, String storage, String... devices) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_central_storage(use.of(context),
                storage.isEmpty() ? null : storage, Text.list(List.of(devices)), devices.length, out, failure),
                failure);
            return new Strategy(out[0]);
        }
    }

    /** Several processes, each with the same strategy but for its number, on the devices of the default context; see
     * {@link #multiWorker(Context, ClusterOptions)}.
     *
     * @param options who the workers are
     * @return the strategy
     */
    public static Strategy multiWorker(ClusterOptions options) {
        return multiWorkerOf(null, options);
    }

    /** Several processes, each with the same strategy but for its number: P workers with k devices each give the
     * weights that one process gives with P * k. See tutti/strategy.h for what all must have in common. Workers may
     * have devices of several backends, and others than each other; these predict and evaluate, and do not train.
     *
     * @param context whose devices
     * @param options who the workers are
     * @return the strategy
     */
    public static Strategy multiWorker(Context context, ClusterOptions options) {
        return multiWorkerOf(context, options);
    }

    private static Strategy multiWorkerOf(@Nullable Context context, ClusterOptions options) {
        try (Use use = new Use(); Options.Native cluster = new Options.Native(options)) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_multi_worker(use.of(context), cluster.number, out, failure),
                failure);
            return new Strategy(out[0]);
        }
    }

    /** Several processes of which the launcher (TF_CONFIG, torchrun, mpirun, srun) says who they are, on the devices of
     * the default context.
     *
     * @return the strategy
     */
    public static Strategy multiWorkerFromEnvironment() {
        return multiWorkerFromLauncher(null, new ClusterOptions());
    }

    /** Several processes of which the launcher says who they are, on the devices of a context.
     *
     * @param context whose devices
     * @param options what the launcher does not say
     * @return the strategy
     */
    public static Strategy multiWorkerFromEnvironment(Context context, ClusterOptions options) {
        return multiWorkerFromLauncher(context, options);
    }

    private static Strategy multiWorkerFromLauncher(@Nullable Context context, ClusterOptions options) {
        try (Use use = new Use(); Options.Native cluster = new Options.Native(options)) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_multi_worker_from_environment(use.of(context), cluster.number, out,
                failure), failure);
            return new Strategy(out[0]);
        }
    }

    /** Several processes of which a resolver says who they are, on the devices of the default context.
     *
     * @param resolver who the workers are
     * @return the strategy
     */
    public static Strategy multiWorker(ClusterResolver resolver) {
        return multiWorkerOf(null, resolver, new ClusterOptions());
    }

    /** Several processes of which a resolver says who they are, on the devices of a context.
     *
     * @param context whose devices
     * @param resolver who the workers are
     * @param options without workers and worker
     * @return the strategy
     */
    public static Strategy multiWorker(Context context, ClusterResolver resolver, ClusterOptions options) {
        return multiWorkerOf(context, resolver, options);
    }

    private static Strategy multiWorkerOf(@Nullable Context context, ClusterResolver resolver, ClusterOptions options) {
        try (Use use = new Use(); Options.Native cluster = new Options.Native(options)) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_multi_worker_from_resolver(use.of(context), use.of(resolver),
                cluster.number, out, failure), failure);
            return new Strategy(out[0]);
        }
    }

    /** TPUs, or other devices with a PJRT plug-in: mirrored over the devices of this worker, and over the workers of a
     * resolver that was connected and initialized. Its {@link #context} has the devices.
     *
     * @param resolver who the workers are
     * @return the strategy
     */
    public static Strategy tpu(ClusterResolver resolver) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_create_tpu(use.of(resolver), out, failure), failure);
            return new Strategy(out[0]);
        }
    }

    @Override
    String details() {
        return " of " + replicaCount() + " replicas on " + devices();
    }

    /** The number of replicas of all workers.
     *
     * @return their number
     */
    public long replicaCount() {
        try (Use use = new Use()) {
            return Raw.strategy_get_replica_count(use.of(this));
        }
    }

    /** The most rows of a batch that a replica gets.
     *
     * @param globalBatchSize rows of the batch
     * @return rows of the replica
     */
    public long perReplicaBatchSize(long globalBatchSize) {
        try (Use use = new Use()) {
            return Raw.strategy_get_per_replica_batch_size(use.of(this), globalBatchSize);
        }
    }

    /** A dataset of batches for the replicas of this strategy. Estimators of the strategy take it like the dataset, and
     * do not distribute it twice; its iterators also give the pieces of the replicas. If the strategy divides datasets
     * among workers ({@link ClusterOptions#workerInput}), it is the part of this one.
     *
     * @param dataset whose batches
     * @return the dataset, to be closed
     */
    public Dataset distribute(Dataset dataset) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.strategy_distribute_dataset(use.of(this), use.of(dataset), out, failure), failure);
            return new Dataset(out[0], dataset);
        }
    }

    /** The number of processes that train together.
     *
     * @return their number, 1 unless the strategy is one of several
     */
    public long workerCount() {
        try (Use use = new Use()) {
            return Raw.strategy_get_worker_count(use.of(this));
        }
    }

    /** The number of this process among the workers.
     *
     * @return its number, from 0 on
     */
    public long workerIndex() {
        try (Use use = new Use()) {
            return Raw.strategy_get_worker_index(use.of(this));
        }
    }

    /** The devices of the replicas of this process.
     *
     * @return their names
     */
    public List<String> devices() {
        try (Use use = new Use()) {
            long number = use.of(this);
            List<String> devices = new ArrayList<>();
            long count = Raw.strategy_get_replica_count(number) / Raw.strategy_get_worker_count(number);
            for (long i = 0; i < count; i++) {
                devices.add(Raw.strategy_get_device(number, i));
            }
            return devices;
        }
    }

    /** How many inputs the run reads. What a process reads is shared among all of its replicas: {@link Pipeline#shard}
     * by this number and {@link #inputPipelineId}, before shuffle and batch, gives each element to exactly one process.
     * Sharding by the number of replicas would lose elements.
     *
     * @return their number, 1 unless workers have input of their own
     */
    public long inputPipelineCount() {
        try (Use use = new Use()) {
            return Raw.strategy_get_input_pipeline_count(use.of(this));
        }
    }

    /** Which of the inputs this process reads; see {@link #inputPipelineCount}.
     *
     * @return its number, from 0 on
     */
    public long inputPipelineId() {
        try (Use use = new Use()) {
            return Raw.strategy_get_input_pipeline_id(use.of(this));
        }
    }

    /** A context whose default strategy is this one: what is made from it uses the strategy without being told.
     *
     * @return the context
     */
    public Context context() {
        try (Use use = new Use()) {
            return Context.share(Raw.strategy_get_context(use.of(this)));
        }
    }
}
