// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;

/** What updateRule may be told. What is not set has its default. */
public final class UpdateRuleOptions extends Attributes {
    private final List<String> names = new ArrayList<>();
    private final List<String> per = new ArrayList<>();
    private final List<Double> initial = new ArrayList<>();

    /** Nothing but defaults. */
    public UpdateRuleOptions() {}

    int slots() {
        return names.size();
    }

    /** Keeps one more number for each element of a variable from update to update, at first 0. Default: none.
     *
     * @param name its name, behind that of the variable: variable/name
     * @return these options
     */
    public UpdateRuleOptions slot(String name) {
        return slot(name, 0);
    }

    /** Keeps one more number for each element of a variable from update to update.
     *
     * @param name its name, behind that of the variable: variable/name
     * @param first its first value
     * @return these options
     */
    public UpdateRuleOptions slot(String name, double first) {
        return slot(name, first, "element");
    }

    /** With {@link #stacks}: keeps one more number for each row of a variable's matrices from update to update, as an
     * array [matrices, rows]; a variable's value has its shape without the last axis.
     *
     * @param name its name, behind that of the variable: variable/name
     * @param first its first value
     * @return these options
     */
    public UpdateRuleOptions slotPerRow(String name, double first) {
        return slot(name, first, "row");
    }

    /** With {@link #stacks}: keeps one more number for each column of a variable's matrices from update to update, as
     * an array [matrices, columns]; a variable's value has its shape without the second last axis.
     *
     * @param name its name, behind that of the variable: variable/name
     * @param first its first value
     * @return these options
     */
    public UpdateRuleOptions slotPerColumn(String name, double first) {
        return slot(name, first, "column");
    }

    private UpdateRuleOptions slot(String name, double first, String one) {
        names.add(name);
        initial.add(first);
        per.add(one);
        set("slots", String.join(", ", names));
        set("slots_per", String.join(", ", per));
        set("initial", initial.stream().mapToDouble(Double::doubleValue).toArray());
        return this;
    }

    /** Given to the rule, for variables whose parameter group has none of its own. Default: 0.
     *
     * @param weightDecay its value
     * @return these options
     */
    public UpdateRuleOptions weightDecay(double weightDecay) {
        set("weight_decay", weightDecay);
        return this;
    }

    /** Of the variables that the rule is for: FLOAT32, also for FLOAT16 and BFLOAT16 ones, or FLOAT64. Variables of
     * another type need a rule as well. Default: FLOAT32.
     *
     * @param dtype its value
     * @return these options
     */
    public UpdateRuleOptions dtype(DType dtype) {
        set("dtype", dtype);
        return this;
    }

    /** Only for variables with two axes or more, which come as matrices whose columns are the last axis. A rule
     * for the others comes first; its learning rate, limits and averages are those of both. Default: false.
     *
     * @param matrices its value
     * @return these options
     */
    public UpdateRuleOptions matrices(boolean matrices) {
        set("view", matrices ? "matrix" : "vector");
        return this;
    }

    /** For the same variables in place of {@link #matrices}: a matrix of the last two axes for each index of the
     * others, as an array [matrices, rows, columns]. Default: false.
     *
     * @param stacks its value
     * @return these options
     */
    public UpdateRuleOptions stacks(boolean stacks) {
        set("view", stacks ? "stack" : "vector");
        return this;
    }

    /** A variable that the model only looks up rows of, by indices of the batch, is updated in the rows that a step
     * looks up, whatever the rule does to the others. Not for rules that need more than an element at a time. Default:
     * false.
     *
     * @param lazy its value
     * @return these options
     */
    public UpdateRuleOptions lazy(boolean lazy) {
        set("lazy", lazy);
        return this;
    }

    /** As {@link #lazy}, since the rule changes nothing where the gradient, and the weight decay, is 0. Default: false.
     *
     * @param keepsUnreached its value
     * @return these options
     */
    public UpdateRuleOptions keepsUnreached(boolean keepsUnreached) {
        set("keeps_unreached", keepsUnreached);
        return this;
    }

    /** Limits each element of the gradients to [-clipValue, clipValue], before anything else; 0 = off. Default: 0.
     *
     * @param clipValue its value
     * @return these options
     */
    public UpdateRuleOptions clipValue(double clipValue) {
        set("clip_value", clipValue);
        return this;
    }

    /** Limits the Euclidean norm of each variable's gradient, after clipValue and before {@link Graph#gradientClipNorm}
     * limits the global norm; 0 = off. Default: 0.
     *
     * @param clipNorm its value
     * @return these options
     */
    public UpdateRuleOptions clipNorm(double clipNorm) {
        set("clip_norm", clipNorm);
        return this;
    }

    /** Keeps an exponential moving average of each weight, which evaluation and prediction use unless their option
     * rawWeights is set; less than 1; 0 = none. Default: 0.
     *
     * @param averageDecay its value
     * @return these options
     */
    public UpdateRuleOptions averageDecay(double averageDecay) {
        set("average_decay", averageDecay);
        return this;
    }

    /** Limits the decay to (1 + n) / (10 + n) at update n after averageStart.
     *
     * @param averageRamp its value
     * @return these options
     */
    public UpdateRuleOptions averageRamp(boolean averageRamp) {
        set("average_ramp", averageRamp);
        return this;
    }

    /** Until this update the average is equal to the weight; 0: it starts at the initial weight. Default: 0.
     *
     * @param averageStart its value
     * @return these options
     */
    public UpdateRuleOptions averageStart(long averageStart) {
        set("average_start", averageStart);
        return this;
    }
}
