// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What a rule of update gets: see {@link Graph#updateRule}. Weight, gradient and slots are arrays of one axis, or
 * matrices.
 *
 * @param weight the variable
 * @param gradient its gradient, limited as the options say
 * @param learningRate a scalar, of the variable's parameter group
 * @param weightDecay a scalar, of the variable's parameter group
 * @param count the number of the update, an INT64 scalar, from 1
 * @param slots what was kept, as in the options
 */
public record VariableUpdate(Value weight, Value gradient, Value learningRate, Value weightDecay, Value count,
    List<Value> slots) {}
