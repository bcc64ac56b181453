// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.charset.StandardCharsets;

/**
 * Keeps the newest values of trainings for monitoring by Prometheus ({@link Hook#prometheus}): a program gives
 * {@link #text} to whoever asks for it, for example at /metrics, with the content type "text/plain; version=0.0.4".
 */
public final class Prometheus extends NativeObject {
    /** Has no values yet. */
    public Prometheus() {
        super(new Handle("Prometheus", create(), Raw::prometheus_unref));
    }

    private static long create() {
        long[] out = new long[1];
        long[] failure = new long[1];
        TuttiException.check(Raw.prometheus_create(out, failure), failure);
        return out[0];
    }

    /** The newest values; safe on any thread at any time, also while a training runs.
     *
     * @return in Prometheus' text format
     */
    public String text() {
        long[] out = new long[1];
        long[] failure = new long[1];
        try (Use use = new Use()) {
            TuttiException.check(Raw.prometheus_read(use.of(this), out, failure), failure);
        }
        try (Tensor tensor = Tensor.wrap(out[0])) {
            return new String(tensor.toBytes(), StandardCharsets.UTF_8);
        }
    }
}
