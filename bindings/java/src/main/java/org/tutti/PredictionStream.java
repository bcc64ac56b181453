// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * The predictions of a dataset batch by batch, in order. It serves one thread at a time. After a call that was
 * cancelled the next one goes on and no row is lost; any other error ends the stream, behind all batches that stand
 * before it.
 */
public final class PredictionStream extends NativeObject implements Iterator<Batch>, Iterable<Batch> {
    private @Nullable Batch ahead;

    PredictionStream(long number, Dataset dataset) {
        super(new Handle("PredictionStream", number, Raw::prediction_stream_unref), dataset);
    }

    /** The next batch.
     *
     * @return the batch, to be closed; null at the end
     */
    public @Nullable Batch read() {
        Batch batch = ahead;
        ahead = null;
        return batch != null ? batch : advance();
    }

    private @Nullable Batch advance() {
        try (Use use = new Use(); Call call = Call.begin(handle())) {
            long[] out = new long[1];
            long[] failure = new long[1];
            call.check(Raw.prediction_stream_next(use.of(this), call.token(), out, failure), failure);
            return out[0] == 0 ? null : new Batch(out[0]);
        }
    }

    /** This object, so that a loop takes the batches that are left.
     *
     * @return this
     */
    @Override
    public Iterator<Batch> iterator() {
        return this;
    }

    @Override
    public boolean hasNext() {
        if (ahead == null) {
            ahead = advance();
        }
        return ahead != null;
    }

    @Override
    public Batch next() {
        Batch batch = read();
        if (batch == null) {
            throw new NoSuchElementException("all rows are predicted");
        }
        return batch;
    }

    /** The batches as a stream of Java, read lazily; closing it closes this object.
     *
     * @return the stream
     */
    public Stream<Batch> batches() {
        int order = Spliterator.ORDERED | Spliterator.NONNULL | Spliterator.IMMUTABLE;
        return StreamSupport.stream(Spliterators.spliteratorUnknownSize(this, order), false).onClose(this::close);
    }

    /** Ends the predictions early and waits until they stand; closing does not wait for that. */
    public void stop() {
        try (Use use = new Use(); Call call = Call.begin()) {
            long[] failure = new long[1];
            call.check(Raw.prediction_stream_close(use.of(this), call.token(), failure), failure);
        }
    }

    @Override
    public void close() {
        super.close();
        Batch batch = ahead;
        if (batch != null) {
            batch.close();
        }
    }
}
