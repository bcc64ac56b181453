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
     * @param name zeros, ones, glorot_uniform, glorot_normal, he_uniform or he_normal
     * @return these options
     */
    public VariableOptions initializer(String name) {
        return initializer(name, 0);
    }

    /** What its first values are.
     *
     * @param name constant, random_normal, random_uniform or truncated_normal
     * @param value the constant, the standard deviation or the bound
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
