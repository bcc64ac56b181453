// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** How rows are predicted on a device, for people and tools: names and layouts may change with any release.
 *
 * @param step the training step of the weights
 * @param rows how many rows
 * @param device its name
 * @param computedRows what they are rounded up to
 * @param workspaceBytes memory between input and results
 * @param seconds those of the fastest of the runs that were timed; NaN when none was
 * @param kernels in the order in which they run
 * @param json the library's text, which has more
 */
public record PredictionPlan(long step, long rows, String device, long computedRows, long workspaceBytes,
    double seconds, List<Kernel> kernels, String json) {
    /** One kernel.
     *
     * @param node what it computes
     * @param op the op
     * @param kernel the implementation
     * @param seconds those of its fastest run; NaN when none was timed
     */
    public record Kernel(String node, String op, String kernel, double seconds) {
        static Kernel of(Json json) {
            return new Kernel(json.text("node"), json.text("op"), json.text("kernel"), json.numberOrNan("seconds"));
        }
    }

    static PredictionPlan of(String text) {
        Json json = Json.parse("plan", text);
        return new PredictionPlan(json.integer("step"), json.integer("rows"), json.text("device"),
            json.integer("computed_rows"), json.integer("workspace_bytes"), json.numberOrNan("seconds"),
            json.list("kernels", Kernel::of), text);
    }

    @Override
    public String toString() {
        return rows + " rows on " + device + " by " + kernels.size() + " kernels";
    }
}
