// SPDX-License-Identifier: Apache-2.0
namespace Tutti.Tests
{
    // Every schedule under its name as a metric (tests/bindings/scenarios.txt).
    internal static class ScenarioSchedules
    {
        public static void Build(Graph g, Mode mode)
        {
            Value x = g.GetFeature("x");
            Value slope = g.Variable("line/slope", DType.Float32, new[] { x.Dims[1], 1 }, "zeros");
            Value line = g.Matmul(x, slope);
            g.SetOutput("y", line);
            if (mode == Mode.Predict)
                return;
            Value target = g.Reshape(g.Cast(g.GetLabel("y"), DType.Float32), new[] { Graph.DimBatch, 1 });
            g.SetLoss(g.LossMeanSquaredError(line, target));
            g.OptimizerSgd(Schedules(g));
        }

        private static Value Report(Graph g, string name, Value rate)
        {
            g.AddMetric(name, rate);
            return rate;
        }

        // The last is a switch between two others.
        private static Value Schedules(Graph g)
        {
            Report(g, "constant", g.ScheduleConstant(0.3));
            Value decay = Report(g, "exponential", g.ScheduleExponential(0.1, 0.5, 10));
            Report(g, "natural_exponential", g.ScheduleNaturalExponential(0.1, 0.5, 10));
            var staircase = new ScheduleInverseTimeOptions { Staircase = true };
            Report(g, "inverse_time", g.ScheduleInverseTime(0.1, 0.5, 3, staircase));
            Value steps = Report(g, "step", g.ScheduleStep(0.1, 5, 0.5));
            var square = new SchedulePolynomialOptions { FinalValue = 0.02, Power = 2 };
            Report(g, "polynomial", g.SchedulePolynomial(0.1, 20, square));
            Report(g, "cosine", g.ScheduleCosine(0.1, 20, new ScheduleCosineOptions { WarmupSteps = 6 }));
            var growing = new ScheduleCosineRestartsOptions { PeriodFactor = 2, ValueFactor = 0.5 };
            Value waves = Report(g, "cosine_restarts", g.ScheduleCosineRestarts(0.1, 4, growing));
            var straight = new ScheduleOneCycleOptions { Anneal = ScheduleOneCycleAnneal.Linear };
            Report(g, "one_cycle", g.ScheduleOneCycle(0.1, 20, straight));
            Report(g, "piecewise", g.SchedulePiecewise(new[] { 3L, 9L }, new[] { 0.1, 0.05, 0.01 }));
            var behind = new ScheduleWarmupOptions { StartFraction = 0.25, Shifted = true };
            Report(g, "warmup", g.ScheduleWarmup(decay, 8, behind));
            Report(g, "own", g.Rsqrt(g.Add(g.CompletedSteps, g.Constant(DType.Float32, 1))));
            return Report(g, "switch", g.ScheduleSwitch(steps, waves, 7, new ScheduleSwitchOptions { Shifted = true }));
        }
    }
}
