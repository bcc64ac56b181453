// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** A named tensor before it is there: its type, and its shape as far as it is known.
 *
 * @param name its name
 * @param dtype its type
 * @param dims its sizes; {@link #UNKNOWN} for the rows of a batch and other sizes that only data tell
 */
public record TensorSpec(String name, DType dtype, List<Long> dims) {
    /** A size that is not known. */
    public static final long UNKNOWN = -1;

    static TensorSpec of(Json json) {
        return new TensorSpec(json.text("name"), DType.of(json.text("dtype")), dimsOf(json));
    }

    /** Sizes that have names are known later. */
    static List<Long> dimsOf(Json json) {
        return json.list("dims", dim -> dim.isText() ? UNKNOWN : dim.integer());
    }

    @Override
    public String toString() {
        return name + " " + dtype + " " + dims;
    }
}
