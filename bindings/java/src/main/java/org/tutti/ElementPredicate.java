// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Says yes or no to an element of a dataset. */
@FunctionalInterface
public interface ElementPredicate {
    /**
     * Called on threads of Java, one call at a time for each walk. It must be a pure function of its element, for a
     * dataset can be gone through again and resumed. One that takes long asks
     * {@link Cancellation#isRequested} whether anybody still waits for it.
     *
     * @param element one tensor for each component; closed when the function has returned
     * @return the answer
     * @throws Exception whatever went wrong: it is the cause of what the call that wanted the element throws
     */
    boolean test(Tensor[] element) throws Exception;
}
