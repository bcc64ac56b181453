// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Gives the elements of a dataset by their numbers. */
@FunctionalInterface
public interface GeneratorFunction {
    /**
     * Called on threads of Java, one call at a time for each walk: for 0, 1, 2, ..., in each pass anew. A walk that was
     * restored begins with the number that comes next. One that takes long asks
     * {@link Cancellation#isRequested} whether anybody still waits for it.
     *
     * @param pass the number of the pass, from 0 on
     * @param index the number of the element in the pass
     * @return one tensor for each component, closed when the function has returned; null behind the last element
     * @throws Exception whatever went wrong: it is the cause of what the call that wanted the element throws
     */
    Tensor @Nullable [] next(long pass, long index) throws Exception;
}
