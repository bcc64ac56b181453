// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertTrue;

import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.rules.ExternalResource;

/** Fails a test that leaves more of the library's objects than it found; the collector may take some first. */
final class Leaks extends ExternalResource {
    private long before;

    @Override
    protected void before() {
        before = Tutti.liveObjects();
    }

    @Override
    protected void after() {
        assertTrue("objects are left: " + (Tutti.liveObjects() - before),
            collectUntil(() -> Tutti.liveObjects() <= before));
    }

    /** Collects until something holds; false when it does not within the deadline. */
    static boolean collectUntil(BooleanSupplier condition) {
        return until(() -> {
            System.gc();
            Callbacks.reap();
            return condition.getAsBoolean();
        });
    }

    /** Asks until something holds; false when it does not within the deadline. */
    static boolean until(BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                return false;
            }
            Thread.yield();
        }
        return true;
    }
}
