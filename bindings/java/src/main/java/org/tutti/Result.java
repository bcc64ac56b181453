// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** What training or evaluating gave.
 *
 * @param reason why training returned
 * @param step the number of completed steps
 * @param examples how many were seen
 * @param seconds how long it took
 * @param loss of the last step, or of the whole dataset; NaN when the model has none
 * @param metrics by name, without the loss
 * @param inputWait seconds that training steps waited for their input
 * @param inputReport what the newest walk over the training data has cost; null for an evaluation and for one run of a
 *     session
 * @param stepReport where the time of training steps went and how idle each device was; null where the other is
 */
public record Result(Reason reason, long step, long examples, double seconds, double loss,
    Map<String, Double> metrics, double inputWait, @Nullable InputReport inputReport,
    @Nullable StepReport stepReport) {

    /** Reads a C result and drops it. */
    static Result take(long number) {
        try {
            Map<String, Double> metrics = new LinkedHashMap<>();
            for (long i = 0; i < Raw.result_get_metric_count(number); i++) {
                String name = Raw.result_get_metric_name(number, i);
                metrics.put(name, Raw.result_get_metric(number, name));
            }
            return new Result(Reason.of(Raw.result_get_reason(number)), Raw.result_get_step(number),
                Raw.result_get_examples(number), Raw.result_get_seconds(number), Raw.result_get_loss(number),
                Collections.unmodifiableMap(metrics), Raw.result_get_input_wait(number),
                InputReport.ofResult(Raw.result_get_input_report(number)),
                StepReport.of(Raw.result_get_step_report(number)));
        } finally {
            Raw.result_unref(number);
        }
    }

    /** Step, loss and metrics in a line. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder("step " + step);
        if (!Double.isNaN(loss)) {
            text.append(String.format(Locale.ROOT, ", loss %.6g", loss));
        }
        metrics.forEach((name, value) -> text.append(String.format(Locale.ROOT, ", %s %.6g", name, value)));
        return (reason == Reason.UNFINISHED ? text : text.append(", ended by ").append(reason)).toString();
    }
}
