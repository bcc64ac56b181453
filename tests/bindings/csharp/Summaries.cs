// SPDX-License-Identifier: Apache-2.0
using System;
using System.IO;
using System.Linq;
using System.Text;
using Tutti;

namespace Tutti.Tests
{
    /// <summary>Summaries of models, hooks and programs, and what a training tells Prometheus.</summary>
    internal static class Summaries
    {
        private static void Model(Graph g, Mode mode)
        {
            Toy.Model(g, mode);
            Value x = g.GetFeature("x");
            g.SummaryScalar("shown/mean of x", g.ReduceMean(x));
            g.SummaryHistogram("shown/x", x);
            g.SummaryImage("shown/images", g.Reshape(x, new[] { Graph.DimBatch, 1, Toy.Columns, 1 }), 2);
            g.SummaryText("shown/notes", "*notes*");
        }

        // What is in the event files of a folder, a character for each byte.
        private static string Events(string folder)
        {
            return string.Concat(Directory.GetFiles(folder, "events.*")
                .Select(file => Encoding.GetEncoding("ISO-8859-1").GetString(File.ReadAllBytes(file))));
        }

        private static int Count(string text, string part)
        {
            return text.Split(new[] { part }, StringSplitOptions.None).Length - 1;
        }

        private static string NewFolder()
        {
            return Path.Combine(Path.GetTempPath(), "tutti-" + Guid.NewGuid().ToString("N"));
        }

        [Test]
        private static void OfATraining()
        {
            string folder = NewFolder();
            try
            {
                var options = new RunOptions { ModelDir = folder, SaveSummarySteps = 5 };
                using (Dataset train = Toy.TrainingSet())
                using (var estimator = new Estimator(Model, options))
                using (var quiet = new Estimator(Toy.Model))
                using (var prometheus = new Prometheus())
                {
                    var hooked = Hook.OnStep(5, happened =>
                    {
                        using (SummaryWriter writer = happened.GetSummaryWriter())
                            writer.AddScalar("hooked/twice the loss", 2 * happened.Loss, happened.Step);
                    });
                    estimator.Train(train, new TrainOptions { Steps = 20 },
                        new[] { hooked, Hook.KeepFor(prometheus, 1) });
                    string events = Events(folder);
                    foreach (string name in new[] { "shown/mean of x", "shown/x", "shown/images",
                        "hooked/twice the loss", "\u0089PNG" })
                        Check.True(Count(events, name) >= 4, name);
                    Check.True(events.Contains("*notes*"), "the text");
                    string text = prometheus.GetText();
                    Check.True(text.Contains("tutti_step 20\n"), text);
                    Check.True(text.Contains("tutti_metric{name=\"accuracy\"} "), text);
                    quiet.Train(train, new TrainOptions { Steps = 1 },
                        new[] { Hook.OnStep(1, happened => Check.True(happened.GetSummaryWriter() == null, "quiet")) });
                }
            }
            finally
            {
                Directory.Delete(folder, true);
            }
        }

        [Test]
        private static void OfAProgram()
        {
            string folder = NewFolder();
            try
            {
                var writer = new SummaryWriter(folder);
                using (Tensor points = Tensor.From(new float[] { 1, 2, 3, 4, 5, 6 }, 3, 2))
                using (Tensor images = Tensor.From(new byte[] { 0, 85, 170, 255 }, 1, 2, 2, 1))
                using (Tensor labels = Tensor.From(new long[] { 1, 0, 1 }, 3))
                using (Tensor scores = Tensor.From(new[] { 0.9f, 0.2f, 0.4f }, 3))
                {
                    writer.AddScalar("a/curve", double.PositiveInfinity, 1).AddHistogram("points", points, 2)
                        .AddImage("image", images, 3).AddText("text", "| a |", 4)
                        .AddPrCurve("pr", labels, scores, 5).AddPrCurve("pr weighed", labels, scores, 5, scores, 11)
                        .AddEmbedding("words", points, "a\nb\nc\n").AddEmbedding("bare", points)
                        .AddHyperparameters("{\"rate\": 0.1, \"deep\": true}", "[\"a/curve\"]");
                    writer.Flush();
                    Check.Equal(folder, writer.Folder);
                    var refused = Check.Throws<TuttiException>(() => writer.AddPrCurve("pr", labels, points, 5));
                    Check.Equal(ErrorCode.InvalidArgument, refused.Code);
                }
                string events = Events(folder);
                foreach (string name in new[] { "a/curve", "points", "pr_curves", "pr weighed", "| a |", "hparams",
                    "\u0089PNG" })
                    Check.True(events.Contains(name), name);
                string config = File.ReadAllText(Path.Combine(folder, "projector_config.pbtxt"));
                Check.True(config.Contains("tensor_name: \"words\"") && config.Contains("\"bare\""), config);
                writer.Dispose();
                Check.Throws<ObjectDisposedException>(() => writer.AddScalar("a/curve", 1, 2));
            }
            finally
            {
                Directory.Delete(folder, true);
            }
        }
    }
}
