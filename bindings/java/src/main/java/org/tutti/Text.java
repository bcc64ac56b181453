// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Text on its way to C and back. A zero byte would end it early, and a path would name another file: it becomes
 * SUBSTITUTE, which no name has.
 */
final class Text {
    private static final byte SUBSTITUTE = 0x1a;

    private Text() {}

    /** UTF-8 with a zero byte at its end; null for null. */
    static byte @Nullable [] toC(@Nullable String text) {
        if (text == null) {
            return null;
        }
        byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        for (int i = 0; i < utf8.length; i++) {
            if (utf8[i] == 0) {
                utf8[i] = SUBSTITUTE;
            }
        }
        return Arrays.copyOf(utf8, utf8.length + 1);
    }

    static @Nullable String fromC(byte @Nullable [] utf8) {
        return utf8 == null ? null : new String(utf8, StandardCharsets.UTF_8);
    }

    /** Several texts in one piece, as handle_layer.h takes them. */
    static byte[] list(Iterable<String> texts) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (String text : texts) {
            bytes.writeBytes(toC(text));
        }
        return bytes.toByteArray();
    }
}
