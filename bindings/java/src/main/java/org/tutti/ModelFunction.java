// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Writes a model for one mode. */
@FunctionalInterface
public interface ModelFunction {
    /**
     * Called once per mode, on the thread whose call needs it. The variables of EVAL and PREDICT must be among those of
     * TRAIN. What it throws is the cause of what that call throws.
     *
     * @param graph where to write it
     * @param mode what it is built for
     * @throws Exception whatever went wrong
     */
    void build(Graph graph, Mode mode) throws Exception;
}
