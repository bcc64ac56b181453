// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Maps one element of a dataset. */
@FunctionalInterface
public interface MapFunction {
    /**
     * Called on threads of Java, several at a time. It must be a pure function of its element, for a dataset can be
     * gone through again and resumed. One that takes long asks
     * {@link Cancellation#isRequested} whether anybody still waits for it.
     *
     * @param element one tensor for each component; closed when the function has returned
     * @return as many tensors, of the same types and shapes; closed when the function has returned. They may be those
     *     that it got
     * @throws Exception whatever went wrong: it is the cause of what the call that wanted the element throws
     */
    Tensor[] map(Tensor[] element) throws Exception;
}
