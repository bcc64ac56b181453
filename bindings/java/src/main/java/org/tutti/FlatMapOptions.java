// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What flatMap may be told. What is not set has its default. */
public final class FlatMapOptions extends Attributes {
    /** Nothing but defaults. */
    public FlatMapOptions() {}

    /** Has the components of the datasets that the function gives. Default: those of the pipeline.
     *
     * @param dataset its value
     * @return these options
     */
    public FlatMapOptions like(Dataset dataset) {
        set("like", dataset);
        return this;
    }

    /** A thread reads the dataset ahead. Default: false.
     *
     * @param readAhead its value
     * @return these options
     */
    public FlatMapOptions readAhead(boolean readAhead) {
        set("read_ahead", readAhead);
        return this;
    }
}
