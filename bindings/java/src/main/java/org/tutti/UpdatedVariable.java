// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What a rule of update gives: see {@link Graph#updateRule}.
 *
 * @param weight the variable's new value
 * @param slots the new value of each slot
 */
public record UpdatedVariable(Value weight, List<Value> slots) {
    /** What a rule gives.
     *
     * @param weight the variable's new value
     * @param slots the new value of each slot
     */
    public UpdatedVariable(Value weight, Value... slots) {
        this(weight, List.of(slots));
    }
}
