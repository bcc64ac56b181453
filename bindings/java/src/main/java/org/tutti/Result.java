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
 * @param tensors metrics that are no single number, such as a confusion matrix, by name
 * @param inputWait seconds that training steps waited for their input
 * @param inputReport what the newest walk over the training data has cost; null for an evaluation and for one run of a
 *     session
 * @param stepReport where the time of training steps went and how idle each device was; null where the other is
 */
public record Result(Reason reason, long step, long examples, double seconds, double loss,
    Map<String, Double> metrics, Map<String, Tensor> tensors, double inputWait, @Nullable InputReport inputReport,
    @Nullable StepReport stepReport) {

    /** Reads a C result and drops it. */
    static Result take(long number) {
        try {
            Map<String, Double> metrics = new LinkedHashMap<>();
            Map<String, Tensor> tensors = new LinkedHashMap<>();
            for (long i = 0; i < Raw.result_get_metric_count(number); i++) {
                String name = Raw.result_get_metric_name(number, i);
                double value = Raw.result_get_metric(number, name);
                Tensor tensor = Double.isNaN(value) ? tensor(number, name) : null;
                if (tensor == null) {
                    metrics.put(name, value);
                } else {
                    tensors.put(name, tensor);
                }
            }
            return new Result(Reason.of(Raw.result_get_reason(number)), Raw.result_get_step(number),
                Raw.result_get_examples(number), Raw.result_get_seconds(number), Raw.result_get_loss(number),
                Collections.unmodifiableMap(metrics), Collections.unmodifiableMap(tensors),
                Raw.result_get_input_wait(number),
                InputReport.ofResult(Raw.result_get_input_report(number)),
                StepReport.of(Raw.result_get_step_report(number)));
        } finally {
            Raw.result_unref(number);
        }
    }

    /** A metric that is no single number; null for one that is. */
    private static @Nullable Tensor tensor(long number, String name) {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.result_read_metric(number, name, out, failure), failure);
        Tensor tensor = Tensor.wrap(out[0]);
        if (tensor.dims().length > 0) {
            return tensor;
        }
        tensor.close();
        return null;
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
