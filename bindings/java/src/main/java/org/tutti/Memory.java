// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.lang.ref.Cleaner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * C memory that Java's collector does not see must not pile up behind small Java objects: after so many bytes made and
 * not closed, there is a collection.
 */
final class Memory {
    /** Closes what was forgotten: data at once; the end of other objects may take its time, on a thread of its own. */
    static final Cleaner DATA = Cleaner.create();
    static final Cleaner OBJECTS = Cleaner.create();

    private static final long LEAST_GROWTH = 64L << 20;
    private static final long WAIT_MS = 1000;
    private static final AtomicLong unseen = new AtomicLong();
    private static final AtomicLong unseenAtCollection = new AtomicLong();

    private Memory() {}

    static void grow(long size) {
        long now = unseen.addAndGet(size);
        long before = unseenAtCollection.get();
        if (now - before > Math.max(LEAST_GROWTH, before) && unseenAtCollection.compareAndSet(before, now)) {
            collect();
        }
    }

    static void shrink(long size) {
        long now = unseen.addAndGet(-size);
        long before = unseenAtCollection.get();
        if (now < before) {
            unseenAtCollection.compareAndSet(before, now);
        }
    }

    /** Collects, and gives the cleaner a moment; nothing depends on how far it gets. */
    private static void collect() {
        CountDownLatch cleaned = new CountDownLatch(1);
        DATA.register(new Object(), cleaned::countDown);
        System.gc();
        try {
            cleaned.await(WAIT_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
