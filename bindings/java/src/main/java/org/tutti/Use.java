// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;

/** The handles that one call has entered; leaves them when it is closed. */
final class Use implements AutoCloseable {
    /** How many uses a thread is in: it must not wait for calls to finish, of which it may be one. */
    private static final ThreadLocal<int[]> depth = ThreadLocal.withInitial(() -> new int[1]);

    private final List<Handle> entered = new ArrayList<>(2);
    private final int[] counter = depth.get();

    Use() {
        counter[0]++;
    }

    static boolean isInside() {
        return depth.get()[0] > 0;
    }

    /** The object's number while this use lasts; null is the C interface's NULL. */
    long of(@Nullable NativeObject object) {
        if (object == null) {
            return 0;
        }
        long number = of(object.handle());
        Reference.reachabilityFence(object);
        return number;
    }

    long of(Handle handle) {
        long number = handle.enter();
        entered.add(handle);
        return number;
    }

    long[] of(NativeObject... objects) {
        long[] numbers = new long[objects.length];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = of(objects[i]);
        }
        return numbers;
    }

    @Override
    public void close() {
        counter[0]--;
        for (Handle handle : entered) {
            handle.leave();
        }
    }
}
