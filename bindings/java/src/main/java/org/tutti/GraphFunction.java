// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Writes a map or a filter as a graph. */
@FunctionalInterface
public interface GraphFunction {
    /**
     * Reads components by {@link Graph#feature} and {@link Graph#label}, and gives components by {@link Graph#output}.
     * Called once, at once.
     *
     * @param graph where to write it
     * @throws Exception whatever went wrong
     */
    void build(Graph graph) throws Exception;
}
