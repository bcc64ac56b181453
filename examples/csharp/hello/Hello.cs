// SPDX-License-Identifier: Apache-2.0
// The smallest useful program: a network with one hidden layer learns from 1000 rows of 10 numbers.
using System;
using Tutti;

internal static class Hello
{
    // One model for one global batch; the strategy divides the batch over the replicas.
    private static void Model(Graph g, Mode mode)
    {
        var relu = new LayerDenseOptions { Activation = Activation.Relu };
        Value logits = g.LayerDense(g.LayerDense(g.GetFeature("x"), 16, relu), 2);
        g.SetOutput("class", g.Argmax(logits));
        if (mode != Mode.Predict)
        {
            Value y = g.GetLabel("y");
            g.MetricAccuracy("accuracy", logits, y);
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, y));
            g.OptimizerAdam(g.ScheduleConstant(1e-3));
        }
    }

    private static void Main()
    {
        var random = new Random();
        var rows = new float[1000, 10];
        var labels = new int[1000];
        for (int i = 0; i < 1000; i++)
        {
            for (int j = 0; j < 10; j++)
                rows[i, j] = (float)random.NextDouble();
            labels[i] = random.Next(2);
        }
        Pipeline pipeline = new Pipeline().AddSlices("x", Role.Feature, rows).AddSlices("y", Role.Label, labels);
        using (Dataset dataset = pipeline.Shuffle(1000).Repeat().Batch(64).Build())
        using (var estimator = new Estimator(Model))
        {
            Result result = estimator.Train(dataset, new TrainOptions { Steps = 100 });
            Console.WriteLine("step {0}, loss {1:0.0000}", result.Step, result.Loss);
        }
    }
}
