// SPDX-License-Identifier: Apache-2.0
// Training that the program drives: it runs 25 steps at a time, halves the learning rate when the loss stops falling,
// and ends when the rate is small.
using System;
using System.Globalization;
using Tutti;

internal static class DrivenTraining
{
    private static void Model(Graph g, Mode mode)
    {
        Value line = g.LayerDense(g.GetFeature("x"), 1);
        g.SetOutput("y", line);
        if (mode != Mode.Predict)
        {
            g.SetLoss(g.LossMeanSquaredError(line, g.GetLabel("y")));
            g.OptimizerSgd(g.HostScalar("rate", 0));
        }
    }

    private static void Main()
    {
        var random = new Random();
        float[,] x = new float[1000, 2], y = new float[1000, 1];
        for (int i = 0; i < 1000; i++)
        {
            x[i, 0] = (float)random.NextDouble();
            x[i, 1] = (float)random.NextDouble();
            y[i, 0] = x[i, 0] - 2 * x[i, 1] + 0.1f * (float)random.NextDouble();
        }
        Pipeline pipeline = new Pipeline().AddSlices("x", Role.Feature, x).AddSlices("y", Role.Label, y);
        using (Dataset dataset = pipeline.Repeat().Batch(100).Build())
        using (var estimator = new Estimator(Model))
        using (Session session = estimator.OpenSession(dataset))
        {
            double best = double.PositiveInfinity;
            for (double rate = 0.4; rate > 1e-3;)
            {
                session.SetScalar("rate", rate);
                Result result = session.Run(25);
                Console.WriteLine(string.Format(CultureInfo.InvariantCulture,
                    "step {0}, rate {1:0.0000}, loss {2:0.000000}", result.Step, rate, result.Loss));
                rate = result.Loss < 0.9 * best ? rate : rate / 2;
                best = Math.Min(best, result.Loss);
            }
            session.Finish();
        }
    }
}
