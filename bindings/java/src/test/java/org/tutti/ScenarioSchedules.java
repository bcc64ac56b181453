// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** Every schedule under its name as a metric (tests/bindings/scenarios.txt). */
final class ScenarioSchedules implements ModelFunction {
    @Override
    public void build(Graph g, Mode mode) {
        Value x = g.feature("x");
        Value slope = g.variable("line/slope", DType.FLOAT32, new long[] {g.dims(x)[1], 1});
        Value line = g.matmul(x, slope);
        g.output("y", line);
        if (mode != Mode.PREDICT) {
            Value target = g.reshape(g.cast(g.label("y"), DType.FLOAT32), new long[] {Graph.DIM_BATCH, 1});
            g.loss(g.lossMeanSquaredError(line, target));
            g.optimizerSgd(schedules(g));
        }
    }

    private static Value report(Graph g, String name, Value rate) {
        g.metric(name, rate);
        return rate;
    }

    /** The last is a switch between two others. */
    private static Value schedules(Graph g) {
        report(g, "constant", g.scheduleConstant(0.3));
        Value decay = report(g, "exponential", g.scheduleExponential(0.1, 0.5, 10));
        report(g, "natural_exponential", g.scheduleNaturalExponential(0.1, 0.5, 10));
        ScheduleInverseTimeOptions staircase = new ScheduleInverseTimeOptions().staircase(true);
        report(g, "inverse_time", g.scheduleInverseTime(0.1, 0.5, 3, staircase));
        Value steps = report(g, "step", g.scheduleStep(0.1, 5, 0.5));
        SchedulePolynomialOptions square = new SchedulePolynomialOptions().finalValue(0.02).power(2);
        report(g, "polynomial", g.schedulePolynomial(0.1, 20, square));
        report(g, "cosine", g.scheduleCosine(0.1, 20, new ScheduleCosineOptions().warmupSteps(6)));
        ScheduleCosineRestartsOptions growing = new ScheduleCosineRestartsOptions().periodFactor(2).valueFactor(0.5);
        Value waves = report(g, "cosine_restarts", g.scheduleCosineRestarts(0.1, 4, growing));
        ScheduleOneCycleOptions straight = new ScheduleOneCycleOptions().anneal(ScheduleOneCycleAnneal.LINEAR);
        report(g, "one_cycle", g.scheduleOneCycle(0.1, 20, straight));
        report(g, "piecewise", g.schedulePiecewise(new long[] {3, 9}, new double[] {0.1, 0.05, 0.01}));
        ScheduleWarmupOptions behind = new ScheduleWarmupOptions().startFraction(0.25).shifted(true);
        report(g, "warmup", g.scheduleWarmup(decay, 8, behind));
        report(g, "own", g.rsqrt(g.add(g.completedSteps(), g.constant(DType.FLOAT32, 1))));
        ScheduleSwitchOptions anew = new ScheduleSwitchOptions().shifted(true);
        return report(g, "switch", g.scheduleSwitch(steps, waves, 7, anew));
    }
}
