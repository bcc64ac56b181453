// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** How a variable begins, and whether it is trained. What is not set has its default. */
public final class VariableOptions {
    String initializer = "zeros";
    double parameter;
    boolean trainable = true;

    /** Nothing but defaults. */
    public VariableOptions() {}

    /** What its first values are. Default: zeros.
     *
     * @param name a name, or a name with arguments: zeros, ones, constant(value), random_normal(stddev, mean),
     *     truncated_normal(stddev, mean), random_uniform(high, low), orthogonal(gain), identity(gain),
     *     variance_scaling(scale, mode, distribution) and its special cases glorot_uniform, glorot_normal, he_uniform,
     *     he_normal, lecun_uniform and lecun_normal
     * @return these options
     */
    public VariableOptions initializer(String name) {
        return initializer(name, 0);
    }

    /** What its first values are.
     *
     * @param name constant, random_normal, random_uniform, truncated_normal, orthogonal or identity
     * @param value the constant, the standard deviation, the bound or the gain
     * @return these options
     */
    public VariableOptions initializer(String name, double value) {
        initializer = name;
        parameter = value;
        return this;
    }

    /** Whether the optimizer changes it. Default: true.
     *
     * @param value its value
     * @return these options
     */
    public VariableOptions trainable(boolean value) {
        trainable = value;
        return this;
    }
}
