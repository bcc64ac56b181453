// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST over every device: train, evaluate, predict. Arguments: DATASET_DIRECTORY OUTPUT_DIRECTORY EPOCHS
using System;
using System.Globalization;
using System.Linq;
using Tutti;

internal static class FashionMnist
{
    private static void Model(Graph g, Mode mode)
    {
        var conv = new LayerConv2dOptions { Activation = Activation.Relu };
        var dense = new LayerDenseOptions { Activation = Activation.Relu };
        Value x = g.LayerMaxPool2d(g.LayerConv2d(g.GetFeature("image"), 32, 3, conv), 2);
        x = g.LayerMaxPool2d(g.LayerConv2d(x, 64, 3, conv), 2);
        Value logits = g.LayerDense(g.LayerDense(g.LayerFlatten(x), 128, dense), 10);
        g.SetOutput("class", g.Argmax(logits));
        if (mode == Mode.Predict)
            return;
        g.MetricAccuracy("accuracy", logits, g.GetLabel("label"));
        g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.GetLabel("label")));
        g.OptimizerAdam(g.ScheduleConstant(1e-3));
    }

    // Images are u8 [28, 28] in the file and float [28, 28, 1] in [0, 1] for the model.
    private static void Normalize(Graph g)
    {
        Value pixels = g.Reshape(g.Cast(g.GetFeature("image"), DType.Float32), new long[] { -1, 28, 28, 1 });
        g.SetOutput("image", g.Mul(pixels, g.Constant(DType.Float32, 1.0 / 255)));
    }

    private static Dataset Images(string path, long shuffle, long epochs)
    {
        return new Pipeline().AddIdx("image", Role.Feature, path + "-images-idx3-ubyte.gz")
            .AddIdx("label", Role.Label, path + "-labels-idx1-ubyte.gz").Shuffle(shuffle)
            .Repeat(new RepeatOptions { Count = epochs }).Batch(128).MapGraph(Normalize).Prefetch().Build();
    }

    private static void Main(string[] arguments)
    {
        using (Strategy all = Strategy.Mirrored()) // all devices
        using (Dataset train = Images(arguments[0] + "/train", 60000, long.Parse(arguments[2])))
        using (Dataset test = Images(arguments[0] + "/t10k", 1, 1))
        using (var estimator = new Estimator(Model, new RunOptions { ModelDir = arguments[1], Seed = 1 }, all))
        {
            Result trained = estimator.Train(train, null, new[] { Hook.ShowProgress() });
            Result evaluated = estimator.Evaluate(test);
            using (Predictor predictor = estimator.MakePredictor())
            using (Batch batch = predictor.RunAll(test))
                Console.WriteLine("classes: " + string.Join(" ", batch.ToArray<long>("class").Take(20)));
            const string Form = "\"test_accuracy\": {0:0.0000}, \"replicas\": {1}, \"global_step\": {2}, " +
                "\"examples_per_second\": {3:0}";
            Console.WriteLine("{" + string.Format(CultureInfo.InvariantCulture, Form, evaluated.Metrics["accuracy"],
                all.Devices.Count, trained.Step, trained.Examples / trained.Seconds) + "}");
        }
    }
}
