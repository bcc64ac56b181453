// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;

namespace Tutti.Tests
{
    // The pipelines that scenarios read: tests/bindings/scenarios.txt says what they are.
    internal sealed class ScenarioPipelines
    {
        private readonly Context context;
        private readonly string folder;

        public ScenarioPipelines(Context context, string folder)
        {
            this.context = context;
            this.folder = folder;
        }

        private Pipeline Range(long start, long stop)
        {
            return new Pipeline(context).Range(stop, new RangeOptions { Start = start });
        }

        private string[] Paths(string name)
        {
            return new[] { Path.Combine(folder, name) };
        }

        private static long Value(Tensor tensor)
        {
            return tensor.ToArray<long>()[0];
        }

        private static Tensor[] Give(long value)
        {
            return new[] { Tensor.Scalar(value) };
        }

        public Dataset Of(string name)
        {
            switch (name)
            {
                case "turns":
                    var turns = new InterleaveOptions { CycleLength = 2, BlockLength = 2 };
                    using (Dataset second = Range(10, 15).Build(), third = Range(20, 22).Build())
                        return Range(0, 3).Interleave(new[] { second, third }, turns).Build();
                case "sample":
                    using (Dataset other = Range(100, 108).Build())
                    {
                        return Range(0, 5).SampleFrom(new[] { other },
                            new SampleFromOptions { Weights = new double[] { 1, 3 } }).Build();
                    }
                case "below":
                    return Range(0, 10).TakeWhileGraph(g => g.SetOutput("goes_on",
                        g.Less(g.GetFeature("value"), g.Constant(DType.Int64, 4)))).Build();
                case "odd":
                    return Range(0, 8).Filter(element => Value(element[0]) % 2 == 1)
                        .TakeWhile(element => Value(element[0]) < 6).Build();
                case "pairs":
                    return Range(0, 3).FlatMap(
                        element => Range(10 * Value(element[0]), 10 * Value(element[0]) + 2).Build()).Build();
                case "passes":
                    return new Pipeline(context).AddGenerator(
                        (pass, index) => index == 3 ? null : Give(100 * pass + index),
                        new FeedComponent("value", Role.Feature, DType.Int64))
                        .Repeat(new RepeatOptions { Count = 2 }).Build();
                default:
                    return name.StartsWith("sums", StringComparison.Ordinal) ? Sums(name == "sums_graph") : Files(name);
            }
        }

        private Dataset Sums(bool inGraph)
        {
            using (Tensor zero = Tensor.Scalar(0L))
            {
                var state = new ScanState("sum", zero);
                if (!inGraph)
                {
                    return Range(0, 6).Scan((carried, element) =>
                    {
                        long sum = Value(carried[0]) + Value(element[0]);
                        return (Give(sum), Give(sum));
                    }, state).Build();
                }
                return Range(0, 6).ScanGraph(g =>
                {
                    Value next = g.Add(g.GetFeature("sum"), g.GetFeature("value"));
                    g.SetOutput("sum", next);
                    g.SetOutput("value", next);
                }, state).Build();
            }
        }

        private Dataset Files(string name)
        {
            var pipeline = new Pipeline(context);
            switch (name)
            {
                case "buckets":
                    return pipeline.TextLines(Paths("lines.txt"))
                        .BucketByLength("text", new long[] { 2, 4 }, new long[] { 2 }).Build();
                case "cached":
                    return pipeline.TextLines(Paths("lines.txt"))
                        .Cache(new CacheOptions { Path = Path.Combine(folder, "lines.elements") }).Build();
                case "snapshot":
                    return pipeline.TextLines(Paths("lines.txt")).Snapshot(Path.Combine(folder, "snapshots")).Build();
                case "snapshot_files":
                    return pipeline.ElementFiles(Paths("snapshots/*")).Build();
                case "csv":
                    return pipeline.Csv(Paths("people.csv"), new CsvOptions
                    {
                        Columns = new[] { "name: bytes", "age: i64 = -1", "weight: f32 = 0.25" },
                        Labels = new[] { "age" },
                        Missing = new[] { "NA" },
                    }).Build();
                case "examples":
                    return pipeline.Tfrecord(Paths("examples.tfrecord"))
                        .ParseExample(new[] { "id: i64", "box: f32[2] = 0.5", "words: bytes[?]" }).Build();
                case "sequences":
                    return pipeline.Tfrecord(Paths("sequences.tfrecord"))
                        .ParseSequenceExample(new[] { "frames: f32[2]", "tags: bytes[?]" },
                            new ParseSequenceExampleOptions { Context = new[] { "id: i64" } }).Build();
                case "images":
                    return pipeline.Tfrecord(Paths("images.tfrecord"))
                        .ParseExample(new[] { "id: i64", "image: bytes" }).MapGraph(Augment, 2).Build();
                case "text_ops":
                    return pipeline.TextLines(Paths("lines.txt")).MapGraph(ScenarioDataOps.Texts, 2).Build();
                case "image_ops":
                    return ImageFiles(pipeline, "image: bytes", "photo: bytes")
                        .MapGraph(ScenarioDataOps.Images, 2).Build();
                case "image_mixes":
                    return ImageFiles(pipeline, "id: i64", "photo: bytes")
                        .MapGraph(ScenarioDataOps.PlainImages, 2).Batch(2).MapGraph(ScenarioDataOps.Mixes, 1).Build();
                default:
                    throw new ArgumentException(name);
            }
        }

        // Of each example the number id, the PNG file image and the JPEG file photo, where they are asked for.
        private Pipeline ImageFiles(Pipeline pipeline, params string[] features)
        {
            return pipeline.Tfrecord(Paths("images.tfrecord")).ParseExample(features);
        }

        private static void Augment(Graph g)
        {
            var area = new ResizeOptions { Method = ResizeMethod.Area };
            Value pixels = g.Resize(g.DecodePng(g.GetFeature("image")), new long[] { 2, 3 }, area);
            g.SetOutput("image", g.RandomFlip(pixels, new RandomFlipOptions { Key = 7 }));
        }

        // A line for each element.
        public static IEnumerable<string> Read(Dataset dataset, long seed)
        {
            foreach (Tensor[] element in dataset.Elements(seed))
            {
                yield return string.Join(" | ", element.Select(
                    (tensor, i) => dataset.Components[i].Name + Shape(tensor) + string.Concat(Values(tensor))));
                Tensor.DisposeAll(element);
            }
        }

        private static string Shape(Tensor tensor)
        {
            return tensor.Dims.Length == 0 ? "" : " [" + string.Join(" ", tensor.Dims) + "]";
        }

        private static IEnumerable<string> Values(Tensor tensor)
        {
            switch (tensor.DType)
            {
                case DType.Int64:
                    return tensor.ToArray<long>().Select(value => " " + value.ToString(CultureInfo.InvariantCulture));
                case DType.UInt8:
                    return tensor.ToArray<byte>().Select(value => " " + value.ToString(CultureInfo.InvariantCulture));
                case DType.Float32:
                    return tensor.ToArray<float>().Select(
                        value => " " + ((double)value).ToString("F5", CultureInfo.InvariantCulture));
                default:
                    return tensor.ToTexts().Select(value => " \"" + value + "\"");
            }
        }
    }
}
