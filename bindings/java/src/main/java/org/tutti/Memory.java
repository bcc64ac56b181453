// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Closes what was forgotten, when the collector finds it. It does not see the C memory behind small Java objects, so
 * that memory is made to weigh: once much has been made and not closed since the last collection, each further byte
 * takes a byte of the heap for a moment, and the collector runs as if all lay there. Programs that close pay nothing.
 */
final class Memory {
    /** Closes data at once; the end of other objects may take its time, on a thread of its own. */
    static final Cleaner DATA = Cleaner.create();
    static final Cleaner OBJECTS = Cleaner.create();

    private static final long LEAST_GROWTH = 64L << 20;
    private static final int PIECE = 64 << 10;
    private static final AtomicLong unseen = new AtomicLong();
    private static final AtomicLong unseenAtCollection = new AtomicLong();
    /** Keeps the compiler from leaving the pieces out. */
    private static volatile byte @Nullable [] piece;

    static {
        watch();
    }

    private Memory() {}

    /** Notes when a collection was. */
    private static void watch() {
        DATA.register(new Object(), () -> {
            unseenAtCollection.set(unseen.get());
            watch();
        });
    }

    static void grow(long size) {
        long now = unseen.addAndGet(size);
        long before = unseenAtCollection.get();
        if (now - before > Math.max(LEAST_GROWTH, before)) {
            weigh(size);
        }
    }

    static void shrink(long size) {
        long now = unseen.addAndGet(-size);
        long before = unseenAtCollection.get();
        if (now < before) {
            unseenAtCollection.compareAndSet(before, now);
        }
    }

    private static void weigh(long size) {
        for (long left = size; left > 0; left -= PIECE) {
            piece = new byte[(int) Math.min(left, PIECE)];
        }
        piece = null;
    }
}
