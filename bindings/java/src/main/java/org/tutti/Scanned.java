// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What the body of a loop gives, and what the loop gives: see {@link Graph#scan}.
 *
 * @param states the next, or last, states
 * @param results elements of what is stacked, or all of it
 */
public record Scanned(List<Value> states, List<Value> results) {}
