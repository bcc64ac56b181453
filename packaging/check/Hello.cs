// SPDX-License-Identifier: Apache-2.0
// As hello.c, in C#.
using System;
using System.Globalization;
using Tutti;

internal static class Hello
{
    private const int Rows = 512, Features = 4;
    private static readonly float[,] Numbers = new float[Rows, Features];
    private static readonly int[] Labels = new int[Rows];

    private static void MakeRows()
    {
        uint state = 1;
        for (int i = 0; i < Rows; i++)
        {
            for (int j = 0; j < Features; j++)
            {
                state = unchecked(state * 1664525u + 1013904223u);
                Numbers[i, j] = (float)(state >> 8) / (1 << 24);
            }
            Labels[i] = Numbers[i, 0] + Numbers[i, 1] > 1 ? 1 : 0;
        }
    }

    private static void Model(Graph g, Mode mode)
    {
        var relu = new LayerDenseOptions { Activation = Activation.Relu };
        Value logits = g.LayerDense(g.LayerDense(g.GetFeature("x"), 16, relu), 2);
        g.SetOutput("logits", logits);
        if (mode != Mode.Predict)
        {
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.GetLabel("y")));
            g.OptimizerAdam(g.ScheduleConstant(0.02));
        }
    }

    private static Predictor Train(Context context, Strategy strategy, string directory)
    {
        Pipeline pipeline = new Pipeline(context).AddSlices("x", Role.Feature, Numbers).AddSlices("y", Role.Label, Labels);
        using (Dataset dataset = pipeline.Repeat().Batch(64).Build())
        using (var estimator = new Estimator(Model, new RunOptions { ModelDir = directory }, strategy, context))
        {
            estimator.Train(dataset, new TrainOptions { Steps = 300 });
            return estimator.MakePredictor();
        }
    }

    private static int Main(string[] arguments)
    {
        try
        {
            return Run(arguments);
        }
        catch (TuttiException e)
        {
            Console.Error.WriteLine("hello: " + e);
            return 1;
        }
    }

    private static int Run(string[] arguments)
    {
        MakeRows();
        using (var context = new Context(new ContextOptions { LogicalDevices = 2 }))
        using (Strategy strategy = arguments[0] == "workers"
            ? Strategy.MultiWorkerFromEnvironment(null, context) : Strategy.Mirrored(null, context))
        using (Predictor predictor = arguments[0] == "predict"
            ? new Predictor(arguments[1], null, strategy, context) : Train(context, strategy, arguments[1]))
        using (Tensor x = Tensor.From(Numbers))
        using (Batch batch = predictor.Run("x", x))
        {
            float[] logits = batch.ToArray<float>("logits");
            int right = 0;
            double sum = 0;
            for (int i = 0; i < Rows; i++)
            {
                right += logits[2 * i + 1] > logits[2 * i] == (Labels[i] == 1) ? 1 : 0;
                sum += logits[2 * i] + logits[2 * i + 1];
            }
            Console.WriteLine(string.Format(CultureInfo.InvariantCulture, "{0} of {1} right, sum {2:0.000}", right, Rows, sum));
            return right > Rows * 9 / 10 ? 0 : 1;
        }
    }
}
