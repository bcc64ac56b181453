// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** What a walk over a dataset has cost, stage by stage.
 *
 * @param elapsedMs how long it has lasted, in milliseconds
 * @param stages from the last transform to the sources
 * @param limitingStage the stage that limits the walk, or "consumer"
 * @param reason why it is that one
 * @param text all that for people
 * @param json the library's text
 */
public record InputReport(double elapsedMs, List<Stage> stages, String limitingStage, String reason, String text,
    String json) {
    /** A transform or a source. Where another one does its work in one go with its own it is not counted, and has
     * zeros.
     *
     * @param stage its name, such as "map #2 of 3"
     * @param level how far it is from the end: 0 for the last transform
     * @param isCounted whether it has numbers of its own
     * @param elements how many it gave
     * @param failures how many it failed to give
     * @param bytes their size
     * @param timeMs how long it was waited for, its inputs included, in milliseconds
     * @param busyMs its own work; of threads of its own that of one
     * @param waitInMs how long it waited for its inputs
     * @param waitOutMs how long it stood still since nobody asked or its buffer was full
     * @param threads how many it has of its own
     * @param meanDepth elements that lay ready when one was taken; NaN where none lie ready
     * @param ignored how many errors ignore_errors passed over
     */
    public record Stage(String stage, long level, boolean isCounted, long elements, long failures, long bytes,
        double timeMs, double busyMs, double waitInMs, double waitOutMs, long threads, double meanDepth,
        long ignored) {
        static Stage of(Json json) {
            String name = json.text("stage");
            long level = json.integer("level");
            if (!json.truth("is_counted")) {
                return new Stage(name, level, false, 0, 0, 0, 0, 0, 0, 0, 0, Double.NaN, 0);
            }
            return new Stage(name, level, true, json.integer("elements"), json.integer("failures"),
                json.integer("bytes"), json.number("time_ms"), json.number("busy_ms"), json.number("wait_in_ms"),
                json.number("wait_out_ms"), json.integer("threads"), json.numberOrNan("mean_depth"),
                json.integerOrZero("ignored"));
        }
    }

    static InputReport of(String text) {
        Json json = Json.parse("input report", text);
        Json limit = json.get("limit");
        return new InputReport(json.number("elapsed_ms"), json.list("stages", Stage::of), limit.text("stage"),
            limit.text("reason"), json.text("text"), text);
    }

    /** None where the library has none. */
    static @Nullable InputReport ofResult(String text) {
        return text.isEmpty() ? null : of(text);
    }

    @Override
    public String toString() {
        return "limit: " + limitingStage + ", " + reason;
    }
}
