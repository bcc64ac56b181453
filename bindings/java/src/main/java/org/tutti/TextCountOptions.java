// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Which texts {@link Dataset#countTexts} gives. What is not set has its default. */
public final class TextCountOptions {
    long mostTexts;
    long leastCount;
    long memoryBytes;

    /** Nothing but defaults. */
    public TextCountOptions() {}

    /** So many of the most frequent texts. Default: all.
     *
     * @param count how many
     * @return these options
     */
    public TextCountOptions mostTexts(long count) {
        mostTexts = count;
        return this;
    }

    /** Only texts that came so often. Default: once.
     *
     * @param count how often
     * @return these options
     */
    public TextCountOptions leastCount(long count) {
        leastCount = count;
        return this;
    }

    /** What all different texts may take, each its length and 64 bytes. Going beyond is an error of code
     * RESOURCE_EXHAUSTED. Default: 1 GiB.
     *
     * @param bytes how many
     * @return these options
     */
    public TextCountOptions memoryBytes(long bytes) {
        memoryBytes = bytes;
        return this;
    }
}
