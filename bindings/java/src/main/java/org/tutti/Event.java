// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;
import java.util.Locale;

/** What a hook sees. Numbers that an event does not carry are 0 or NaN. */
public final class Event {
    private final EventKind kind;
    private final long step;
    private final long epoch;
    private final double loss;
    private final double examplesPerSecond;
    private final double remainingSeconds;
    private long number;
    private boolean stopped;

    Event(long number) {
        this.number = number;
        kind = EventKind.of(Raw.hook_event_get_kind(number));
        step = Raw.hook_event_get_step(number);
        epoch = Raw.hook_event_get_epoch(number);
        loss = Raw.hook_event_get_loss(number);
        examplesPerSecond = Raw.hook_event_get_examples_per_second(number);
        remainingSeconds = Raw.hook_event_get_remaining_seconds(number);
    }

    void end() {
        number = 0;
    }

    boolean isStopped() {
        return stopped;
    }

    /** What happened.
     *
     * @return the kind
     */
    public EventKind kind() {
        return kind;
    }

    /** The number of completed steps.
     *
     * @return the step
     */
    public long step() {
        return step;
    }

    /** The pass over the dataset, counted from 0; between two passes, as at an epoch's end, the one that has ended.
     *
     * @return the epoch
     */
    public long epoch() {
        return epoch;
    }

    /** The loss of the step, of the evaluation, or, at the end of an epoch or of training, of the last step.
     *
     * @return the loss
     */
    public double loss() {
        return loss;
    }

    /** How fast it goes.
     *
     * @return examples per second
     */
    public double examplesPerSecond() {
        return examplesPerSecond;
    }

    /** How long it takes at the present speed.
     *
     * @return seconds until the end; NaN when the end is not known
     */
    public double remainingSeconds() {
        return remainingSeconds;
    }

    /** A metric of the model.
     *
     * @param name its name
     * @return its value; NaN when there is none of the name, and after the hook returned
     */
    public double metric(String name) {
        return Raw.hook_event_get_metric(number, name);
    }

    /** The checkpoint just saved.
     *
     * @return its directory; null for other events, and after the hook returned
     */
    public @Nullable Path checkpoint() {
        String directory = Raw.hook_event_get_checkpoint(number);
        return directory == null ? null : Path.of(directory);
    }

    /** Writes among the run's own summaries for TensorBoard. It may be kept, and is closed as any writer is.
     *
     * @return the writer; null where the run writes no summaries, and after the hook returned
     */
    public @Nullable SummaryWriter summaryWriter() {
        long writer = Raw.hook_event_get_summary_writer(number);
        if (writer == 0) {
            return null;
        }
        Raw.summary_writer_ref(writer);
        return new SummaryWriter(writer);
    }

    /** Kind, step and loss in a line. */
    @Override
    public String toString() {
        String text = kind + " at step " + step;
        return Double.isNaN(loss) ? text : text + String.format(Locale.ROOT, ", loss %.6g", loss);
    }

    /** Ends the training politely after this step. */
    public void stop() {
        stopped = true;
    }
}
