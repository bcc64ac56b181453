// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What callbacks threw. It crosses C as an error whose domain is "java:" and a number; the objects themselves wait
 * here. The newest are kept, because one may be reported by several calls or by none.
 */
final class ThrownErrors {
    private static final String DOMAIN = "java:";
    private static final int KEPT = 1024;
    /** A feed's error has no domain of its own but a number of 32 bits: the low bits of ours, above the codes. */
    private static final long FEED = 1L << 30;

    private static final Map<Long, Throwable> kept = new LinkedHashMap<>();
    private static long last;

    private ThrownErrors() {}

    private static synchronized long keep(Throwable error) {
        kept.put(++last, error);
        kept.remove(last - KEPT);
        return last;
    }

    private static synchronized Throwable get(long key) {
        return kept.get(key);
    }

    private static synchronized Throwable getOfFeed(long number) {
        return kept.get(last - Math.floorMod(last - number, FEED));
    }

    /** The object behind a C error; null when it is none of ours. */
    static Throwable find(String domain, long subcode) {
        if (domain.startsWith(DOMAIN)) {
            return get(Long.parseLong(domain.substring(DOMAIN.length())));
        }
        return domain.equals("user") && subcode >= FEED ? getOfFeed(subcode) : null;
    }

    /** The domain as programs see it. */
    static String shown(String domain) {
        return domain.startsWith(DOMAIN) ? "user" : domain;
    }

    static Code codeOf(Throwable error) {
        return error instanceof TuttiException exception ? exception.code() : Code.ABORTED;
    }

    /** One line that an error says of itself, whatever its own functions throw. */
    static String textOf(Throwable error) {
        try {
            return String.valueOf(error).replace('\n', ' ').replace('\r', ' ');
        } catch (Throwable failure) {
            return "an error of class " + error.getClass().getName() + ", which has no text";
        }
    }

    /** A C error, which the caller owns. */
    static long toC(Throwable error) {
        return toC(codeOf(error), error);
    }

    /** A C error of a code, which the caller owns. */
    static long toC(Code code, Throwable error) {
        long[] out = new long[1];
        Raw.error_create(code.number(), DOMAIN + keep(error), textOf(error), 0, out, null);
        return out[0];
    }

    /** The code by which a feed fails. */
    static int toFeed(Throwable error) {
        return (int) (FEED | keep(error) % FEED);
    }
}
