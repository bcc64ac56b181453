// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What map may be told. What is not set has its default. */
public final class MapOptions extends Attributes {
    /** Nothing but defaults. */
    public MapOptions() {}

    /** How many elements are computed at a time. Default: automatic.
     *
     * @param parallelism how many; 0 = automatic
     * @return these options
     */
    public MapOptions parallelism(long parallelism) {
        set("parallelism", parallelism);
        return this;
    }

    /** Has the components that the function gives. Default: they are as those that it gets.
     *
     * @param dataset its value
     * @return these options
     */
    public MapOptions like(Dataset dataset) {
        set("like", dataset);
        return this;
    }
}
