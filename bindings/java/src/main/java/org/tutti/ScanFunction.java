// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Maps one element of a dataset together with a state that goes from element to element. */
@FunctionalInterface
public interface ScanFunction {
    /** What a step gives.
     *
     * @param state the new state, one tensor for each of its components
     * @param element the new element
     */
    record Step(Tensor[] state, Tensor... element) {}

    /**
     * Called on threads of Java, one call at a time for each walk. It must be a pure function of what it gets, for a
     * dataset can be gone through again and resumed. One that takes long asks
     * {@link Cancellation#isRequested} whether anybody still waits for it.
     *
     * @param state one tensor for each component of the state; closed when the function has returned
     * @param element one tensor for each component of the element; closed when the function has returned
     * @return the new state and element; closed when the function has returned. They may be those that it got
     * @throws Exception whatever went wrong: it is the cause of what the call that wanted the element throws. The
     *     element is lost for the walk, and the state stays as it was
     */
    Step scan(Tensor[] state, Tensor[] element) throws Exception;
}
