// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Makes the dataset of one call of an estimator. */
@FunctionalInterface
public interface InputFunction {
    /** Makes the dataset, which is closed after the call.
     *
     * @param context what the estimator says
     * @return the dataset
     */
    Dataset make(InputContext context);
}
