// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;

/** What a step function gave in one step: its loss and metrics, and for each of its outputs the rows of each replica's
 * piece of the batch. It does not change with later steps. */
public final class ReplicaValues extends NativeObject {
    private static final long ACROSS_REPLICAS = Raw.ACROSS_REPLICAS;

    private final Result result;

    ReplicaValues(long number, Result result) {
        super(new Handle("ReplicaValues", number, Raw::replica_values_unref));
        this.result = result;
    }

    /** Loss, metrics, and the rows of the step.
     *
     * @return of all replicas
     */
    public Result result() {
        return result;
    }

    /** The number of replicas of this process.
     *
     * @return how many
     */
    public long replicaCount() {
        try (Use use = new Use()) {
            return Raw.replica_values_get_replica_count(use.of(this));
        }
    }

    /** The names of the outputs.
     *
     * @return a new list
     */
    public List<String> names() {
        try (Use use = new Use()) {
            long number = use.of(this);
            List<String> names = new ArrayList<>();
            for (long i = 0; i < Raw.replica_values_get_output_count(number); i++) {
                names.add(Raw.replica_values_get_output_name(number, i));
            }
            return names;
        }
    }

    /** The rows of an output that one replica of this process had, without a copy.
     *
     * @param output which one
     * @param replica which one, counted from 0
     * @return its rows, to be closed; null when it had none, and when there is no such output or replica
     */
    public @Nullable Tensor local(String output, long replica) {
        try (Use use = new Use()) {
            return Tensor.share(Raw.replica_values_get_local(use.of(this), output, replica));
        }
    }

    /** An output of all replicas of all workers, one behind the other along an axis, in the order of the batch. With
     * several workers all of them make this call at the same point, as they do the sums and means.
     *
     * @param output which one
     * @param axis which dimension, counted from 0
     * @return the whole, to be closed
     */
    public Tensor gather(String output, long axis) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.replica_values_gather(use.of(this), output, axis, out, failure), failure);
            return Tensor.wrap(out[0]);
        }
    }

    /** The sum of an output over an axis and over all replicas.
     *
     * @param output which one
     * @param axis the dimension that the sum does not have any more
     * @return the sum, to be closed
     */
    public Tensor sum(String output, long axis) {
        return reduce(output, Raw.REDUCE_SUM, axis);
    }

    /** The mean of an output over an axis and over all replicas: over axis 0 every row counts once. That of integers is
     * of type FLOAT64.
     *
     * @param output which one
     * @param axis the dimension that the mean does not have any more
     * @return the mean, to be closed
     */
    public Tensor mean(String output, long axis) {
        return reduce(output, Raw.REDUCE_MEAN, axis);
    }

    /** The sum of what the replicas have, element by element; their pieces must have equal shapes.
     *
     * @param output which one
     * @return the sum, to be closed
     */
    public Tensor sumAcrossReplicas(String output) {
        return reduce(output, Raw.REDUCE_SUM, ACROSS_REPLICAS);
    }

    /** The mean of what the replicas have, element by element; their pieces must have equal shapes.
     *
     * @param output which one
     * @return the mean, to be closed
     */
    public Tensor meanAcrossReplicas(String output) {
        return reduce(output, Raw.REDUCE_MEAN, ACROSS_REPLICAS);
    }

    private Tensor reduce(String output, int reduction, long axis) {
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.replica_values_reduce(use.of(this), output, reduction, axis, out, failure),
                failure);
            return Tensor.wrap(out[0]);
        }
    }
}
