// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** A component of what a scan carries from element to element. Numbers of a fixed shape, at most 64 KiB in all, for the
 * state is saved with every position of an iterator.
 *
 * @param name its name
 * @param initial its value before the first element of each pass; it is shared, not copied, and may be closed behind
 *     the call
 */
public record ScanState(String name, Tensor initial) {}
