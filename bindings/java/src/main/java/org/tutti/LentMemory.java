// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.Map;

/**
 * Buffers whose memory tensors borrow. While there are any, a thread waits in C for what the library is done with: the
 * library never enters Java to free something, neither inside its locks nor while Java ends.
 */
final class LentMemory {
    /** Holds a buffer, and knows what its end brings about. */
    private record Loan(ByteBuffer buffer, Runnable release) {}

    private static final Map<Long, Loan> loans = new HashMap<>();
    private static long last;
    private static boolean waits;

    private LentMemory() {}

    /** What is wrong with a buffer's byte order; null when nothing is. That of new ones is not the machine's. */
    static @Nullable String orderProblem(DType dtype, ByteBuffer data) {
        if (dtype.sizeBytes() <= 1 || data.order() == ByteOrder.nativeOrder() || !data.hasRemaining()) {
            return null;
        }
        return "the buffer's byte order is " + data.order() + ", and the machine's " + ByteOrder.nativeOrder()
            + "; ByteBuffer.order sets it";
    }

    /** How many buffers are lent. */
    static synchronized int count() {
        return loans.size();
    }

    /** Notes a buffer, and sees to it that somebody waits for its end. */
    static synchronized long lend(ByteBuffer buffer, Runnable release) {
        if (!waits) {
            Thread thread = new Thread(LentMemory::await, "tutti-memory");
            thread.setDaemon(true);
            thread.start();
            waits = true;
        }
        loans.put(++last, new Loan(buffer, release));
        return last;
    }

    private static void await() {
        boolean over;
        do {
            long token = Raw.memory_take_returned();
            Loan loan;
            synchronized (LentMemory.class) {
                loan = loans.remove(token);
                over = loans.isEmpty();
                waits = !over;
            }
            end(loan.release);
        } while (!over);
    }

    /** What a program's function throws does not keep the other memory from its end. */
    static void end(Runnable release) {
        try {
            release.run();
        } catch (Throwable thrown) {
            Thread thread = Thread.currentThread();
            thread.getUncaughtExceptionHandler().uncaughtException(thread, thrown);
        }
    }
}
