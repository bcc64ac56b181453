// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Makes a dataset of an element of another one. */
@FunctionalInterface
public interface ExpandFunction {
    /**
     * Called on threads of Java, one call at a time for each walk, and again for the same element when a walk is
     * resumed. It must be a pure function of its element. One that takes long asks
     * {@link Cancellation#isRequested} whether anybody still waits for it.
     *
     * @param element one tensor for each component; closed when the function has returned
     * @return the dataset, not one that reads a feed. It stays the program's: what nobody closes the collector closes
     * @throws Exception whatever went wrong: it is the cause of what the call that wanted the element throws
     */
    Dataset expand(Tensor[] element) throws Exception;
}
