// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;

namespace Tutti.Tests
{
    // Does what the scenarios say, and compares what it gives: tests/bindings/scenarios.txt says what the lines mean.
    internal sealed partial class Scenarios : IDisposable
    {
        private readonly Action<string> write;
        private readonly List<string> folders = new List<string>();
        private Context context;
        private Strategy strategy;
        private RunOptions run;
        private float[,] x;
        private int[] y;
        private ModelFunction model;
        private string[] transforms;
        private Dataset training;
        private Estimator estimator;
        private string files; // their folder; null before the first
        private string[] plateau = new string[0]; // words of that line; empty: none

        // What is printed is written line by line.
        private Scenarios(Action<string> write)
        {
            this.write = write;
        }

        [Test]
        private static void AreThoseOfC()
        {
            string paths = Environment.GetEnvironmentVariable("TUTTI_SCENARIOS");
            if (string.IsNullOrEmpty(paths))
                throw new SkipException("TUTTI_SCENARIOS names no file");
            foreach (string path in paths.Split(Path.PathSeparator))
                Compare(File.ReadAllLines(path));
        }

        private static void Compare(string[] wanted)
        {
            var lines = new List<string>();
            using (var scenarios = new Scenarios(lines.Add))
            {
                foreach (string line in wanted.Where(line => !line.StartsWith("=", StringComparison.Ordinal)))
                    scenarios.Read(line);
                Check.Equal(string.Join("\n", wanted), string.Join("\n", lines), "scenarios");
            }
        }

        public void Dispose()
        {
            Forget();
            foreach (string folder in folders)
                Directory.Delete(folder, true);
        }

        private void Read(string line)
        {
            write(line);
            if (line.Length == 0 || line[0] == '#')
                return;
            string[] words = line.Split(' ');
            try
            {
                if (!Prepare(words) && !RunOnWorkers(words))
                    Run(words);
            }
            catch (TuttiException failure)
            {
                PrintFailure(failure);
            }
        }

        private void Print(FormattableString text)
        {
            write("= " + text.ToString(CultureInfo.InvariantCulture));
        }

        private void PrintFailure(TuttiException failure)
        {
            var messages = new List<string>();
            for (Exception at = failure; at != null; at = at.InnerException)
                messages.Add((at as TuttiException)?.Reason ?? at.Message);
            Print($"{NameOf(failure.Code)}: {string.Join(": ", messages)}");
        }

        // INVALID_ARGUMENT of InvalidArgument.
        private static string NameOf(ErrorCode code)
        {
            string[] words = code.ToString().Select(c => char.IsUpper(c) ? "_" + c : c.ToString()).ToArray();
            return string.Concat(words).TrimStart('_').ToUpperInvariant();
        }

        private void ForgetEstimator()
        {
            estimator?.Dispose();
            training?.Dispose();
            estimator = null;
            training = null;
        }

        private void Forget()
        {
            ForgetEstimator();
            strategy?.Dispose();
            context?.Dispose();
            run = new RunOptions();
            files = null;
            input = new string[0];
            fault = null;
            plateau = new string[0];
        }

        private void UseContext(long devices)
        {
            strategy?.Dispose();
            context?.Dispose();
            context = new Context(new ContextOptions { Backend = "reference", LogicalDevices = devices });
        }

        private void UseDevices(long count)
        {
            UseContext(count);
            strategy = Strategy.Mirrored(null, context);
        }

        private void SetOption(string key, string value)
        {
            switch (key)
            {
                case "seed":
                    run.Seed = Number(value);
                    break;
                case "determinism":
                    run.Determinism = (Determinism)Enum.Parse(typeof(Determinism), value, true);
                    break;
                case "logical_replicas":
                    run.LogicalReplicas = Number(value);
                    break;
                case "accumulation_steps":
                    run.AccumulationSteps = Number(value);
                    break;
                case "all_reduce":
                    run.AllReduce = (AllReduce)Enum.Parse(typeof(AllReduce), value, true);
                    break;
                case "params":
                    run.Params = value;
                    break;
                case "raw_weights":
                    run.RawWeights = Number(value) != 0;
                    break;
                case "keep_outputs":
                    run.KeepOutputs = Number(value) != 0;
                    break;
                case "collective_timeout_ms":
                    run.CollectiveTimeoutMs = Number(value);
                    break;
                default:
                    throw new ArgumentException(key);
            }
        }

        private static long Number(string word)
        {
            return long.Parse(word, CultureInfo.InvariantCulture);
        }

        private void MakeData(long rows, long columns, long classes, uint seed)
        {
            x = new float[rows, columns];
            y = new int[rows];
            for (long i = 0; i < rows; i++)
            {
                y[i] = (int)(i % classes);
                for (long j = 0; j < columns; j++)
                {
                    seed = unchecked(seed * 1664525u + 1013904223u);
                    x[i, j] = (float)(seed >> 8) / (1 << 24) + (j % classes == y[i] ? 0.5f : 0);
                }
            }
        }

        private Dataset MakeDataset(params string[] words)
        {
            Pipeline pipeline = new Pipeline(context).AddSlices("x", Role.Feature, x).AddSlices("y", Role.Label, y);
            long parts = 1;
            for (int i = 0; i < words.Length; i++)
            {
                switch (words[i])
                {
                    case "shard": // batches of a part of the data are of a part of the size
                        parts = strategy.InputPipelineCount;
                        pipeline.Shard(parts, strategy.InputPipelineId);
                        break;
                    case "repeat":
                        pipeline.Repeat();
                        break;
                    case "shuffle":
                        pipeline.Shuffle(Number(words[++i]));
                        break;
                    case "take":
                        pipeline.Take(Number(words[++i]));
                        break;
                    case "skip":
                        pipeline.Skip(Number(words[++i]));
                        break;
                    case "batch":
                        long count = Number(words[++i]);
                        pipeline.Batch(count < parts ? count : count / parts);
                        break;
                    default:
                        throw new ArgumentException(words[i]);
                }
            }
            return pipeline.Build();
        }

        private Estimator NeedEstimator()
        {
            training = training ?? MakeDataset(transforms);
            estimator = estimator ?? new Estimator(model, run, strategy, context);
            return estimator;
        }

        private bool Prepare(string[] words)
        {
            switch (words[0])
            {
                case "scenario":
                    Forget();
                    UseDevices(1);
                    return true;
                case "devices":
                    UseDevices(Number(words[1]));
                    return true;
                case "data":
                    MakeData(Number(words[1]), Number(words[2]), Number(words[3]), (uint)Number(words[4]));
                    return true;
                case "pipeline":
                    ForgetEstimator();
                    transforms = words.Skip(1).ToArray();
                    return true;
                case "model":
                    ForgetEstimator();
                    model = ScenarioModels.Of(words[1]);
                    return true;
                case "plateau":
                    plateau = words.Skip(1).ToArray();
                    return true;
                case "run":
                    ForgetEstimator();
                    SetOption(words[1], words[2]);
                    return true;
                default:
                    return false;
            }
        }

        private void Run(string[] words)
        {
            switch (words[0])
            {
                case "train":
                    Train(Number(words[1]));
                    break;
                case "loop":
                    Loop(Number(words[1]), words.Skip(2).Select(Number).ToArray());
                    break;
                case "evaluate":
                    Evaluate(words[1]);
                    break;
                case "predict":
                    Predict(words[1]);
                    break;
                case "variable":
                    PrintVariable(words[1]);
                    break;
                case "save":
                    Save();
                    break;
                case "restore":
                    ForgetEstimator();
                    Print($"step {NeedEstimator().GlobalStep}");
                    break;
                case "integer":
                    using (Tensor tensor = Tensor.From(new[] { Number(words[1]) }, 1))
                        Print($"{tensor.ToArray<long>()[0]}");
                    break;
                case "text":
                    PrintName(words[1]);
                    break;
                case "file":
                    Write(words[1], words[2]);
                    break;
                case "read":
                    PrintElements(words[1], words.Length > 2 ? Number(words[2]) : 0);
                    break;
                default:
                    throw new ArgumentException(words[0]);
            }
        }

        private void PrintName(string name)
        {
            using (Dataset dataset = new Pipeline(context).AddSlices(name, Role.Feature, new long[1]).Build())
                Print($"{dataset.Components[0].Name}");
        }

        // With what the line "plateau" says.
        private TrainOptions MakeTrainOptions(long? steps = null)
        {
            var options = new TrainOptions { Steps = steps };
            if (plateau.Length == 0)
                return options;
            double[] parts = plateau.Skip(5).Select(word => double.Parse(word, CultureInfo.InvariantCulture)).ToArray();
            options.PlateauMetric = plateau[0];
            options.PlateauHigherIsBetter = plateau[1] == "1";
            options.PlateauEverySteps = Number(plateau[2]);
            options.PlateauPatience = Number(plateau[3]);
            options.PlateauCooldown = Number(plateau[4]);
            options.PlateauFactor = parts[0];
            options.PlateauThreshold = parts[1];
            options.PlateauMinimumFactor = parts[2];
            return options;
        }

        private void Train(long steps)
        {
            Hook[] hooks = { Hook.OnStep(1, HaveFault) };
            Result result = NeedEstimator().Train(training, MakeTrainOptions(steps), hooks);
            Print($"step {result.Step} loss {result.Loss:F5}");
            Drop(result);
        }

        private static void Drop(Result result)
        {
            foreach (Tensor tensor in result.Tensors.Values)
                tensor.Dispose();
        }

        private void Evaluate(string batch)
        {
            Estimator trained = NeedEstimator();
            using (Dataset dataset = MakeDataset(input.Concat(new[] { "batch", batch }).ToArray()))
            {
                Result result = trained.Evaluate(dataset);
                Print($"loss {result.Loss:F5}");
                var metrics = result.Metrics.ToDictionary(one => one.Key, one => new[] { one.Value });
                foreach (var one in result.Tensors)
                    metrics[one.Key] = one.Value.ToArray<double>();
                Drop(result);
                foreach (var metric in metrics.OrderBy(metric => metric.Key, StringComparer.Ordinal))
                {
                    string numbers = string.Concat(
                        metric.Value.Select(number => " " + number.ToString("F5", CultureInfo.InvariantCulture)));
                    Print($"{metric.Key}{numbers}");
                }
            }
        }

        private void Predict(string rows)
        {
            Estimator trained = NeedEstimator();
            using (Dataset dataset = FirstRows(rows))
            using (Predictor predictor = trained.MakePredictor())
            using (Batch batch = predictor.RunAll(dataset))
            {
                foreach (string name in batch.Names.OrderBy(name => name, StringComparer.Ordinal))
                {
                    foreach (string row in RowsOf(batch, name))
                        Print($"{name} {row}");
                }
            }
        }

        // The numbers of each row.
        private static string[] RowsOf(Batch batch, string name)
        {
            using (Tensor tensor = batch.GetOutput(name))
                return RowsOf(tensor);
        }

        private static string[] RowsOf(Tensor tensor)
        {
            string[] values = tensor.DType == DType.Int64
                ? tensor.ToArray<long>().Select(value => value.ToString(CultureInfo.InvariantCulture)).ToArray()
                : tensor.ToArray<float>().Select(Digits).ToArray();
            int rows = (int)tensor.Dims[0], width = values.Length / rows;
            return Enumerable.Range(0, rows)
                .Select(row => string.Join(" ", values.Skip(row * width).Take(width))).ToArray();
        }

        // A float's own ToString rounds to seven digits first.
        private static string Digits(float value)
        {
            return ((double)value).ToString("F5", CultureInfo.InvariantCulture);
        }

        private void PrintVariable(string name)
        {
            using (Tensor tensor = NeedEstimator().ReadVariable(name))
            {
                double sum = tensor.ToArray<float>().Sum(value => (double)value);
                Print($"shape {string.Join(" ", tensor.Dims)} sum {sum:F5}");
            }
        }

        // A folder that ends with the scenarios.
        private string NewFolder()
        {
            string folder = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName());
            Directory.CreateDirectory(folder);
            folders.Add(folder);
            return folder;
        }

        private void Save()
        {
            run.ModelDir = NewFolder();
            estimator.Save(run.ModelDir);
        }

        private void Write(string name, string digits)
        {
            files = files ?? NewFolder();
            IEnumerable<int> places = Enumerable.Range(0, digits.Length / 2);
            byte[] contents = places.Select(i => Convert.ToByte(digits.Substring(2 * i, 2), 16)).ToArray();
            File.WriteAllBytes(Path.Combine(files, name), contents);
        }

        private void PrintElements(string name, long seed)
        {
            using (Dataset dataset = new ScenarioPipelines(context, files).Of(name))
            {
                foreach (string line in ScenarioPipelines.Read(dataset, seed))
                    write("= " + line);
            }
        }
    }
}
