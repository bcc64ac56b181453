// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What interleaveMap may be told. What is not set has its default. */
public final class InterleaveMapOptions extends Attributes {
    /** Nothing but defaults. */
    public InterleaveMapOptions() {}

    /** Has the components of the datasets that the function gives. Default: those of the pipeline.
     *
     * @param dataset its value
     * @return these options
     */
    public InterleaveMapOptions like(Dataset dataset) {
        set("like", dataset);
        return this;
    }

    /** Datasets open at a time. Default: 8.
     *
     * @param cycleLength its value
     * @return these options
     */
    public InterleaveMapOptions cycleLength(long cycleLength) {
        set("cycle_length", cycleLength);
        return this;
    }

    /** Elements of a turn. Default: 1.
     *
     * @param blockLength its value
     * @return these options
     */
    public InterleaveMapOptions blockLength(long blockLength) {
        set("block_length", blockLength);
        return this;
    }

    /** Datasets read ahead, each by a thread of its own; 1 = none, 0 = all of the cycle. Default: 1.
     *
     * @param parallelism its value
     * @return these options
     */
    public InterleaveMapOptions parallelism(long parallelism) {
        set("parallelism", parallelism);
        return this;
    }
}
