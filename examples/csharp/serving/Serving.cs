// SPDX-License-Identifier: Apache-2.0
// Answers over HTTP, many requests at a time from one predictor: POST rows of numbers, one row a line, to /predict, and
// get the number of the largest in each row, which the network learned. Argument: PORT, 0 for a free one.
using System;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Threading.Tasks;
using Tutti;

internal static class Serving
{
    private const int Columns = 4;

    private static void Model(Graph g, Mode mode)
    {
        var relu = new LayerDenseOptions { Activation = Activation.Relu };
        Value logits = g.LayerDense(g.LayerDense(g.GetFeature("x"), 32, relu), Columns);
        g.SetOutput("class", g.Argmax(logits));
        if (mode == Mode.Predict)
            return;
        g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.GetLabel("y")));
        g.OptimizerAdam(g.ScheduleConstant(1e-2));
    }

    private static Predictor Trained()
    {
        var random = new Random(1);
        var rows = new float[1000, Columns];
        var labels = new int[1000];
        for (int i = 0; i < labels.Length; i++)
        {
            for (int j = 0; j < Columns; j++)
            {
                rows[i, j] = (float)random.NextDouble();
                labels[i] = rows[i, j] > rows[i, labels[i]] ? j : labels[i];
            }
        }
        Pipeline pipeline = new Pipeline().AddSlices("x", Role.Feature, rows).AddSlices("y", Role.Label, labels);
        using (Dataset dataset = pipeline.Shuffle(1000).Repeat().Batch(64).Build())
        using (var estimator = new Estimator(Model, new RunOptions { Seed = 1 }))
        {
            estimator.Train(dataset, new TrainOptions { Steps = 500 });
            return estimator.MakePredictor();
        }
    }

    private static string Predict(Predictor predictor, string text)
    {
        string[] words = text.Split(new[] { ',', ' ', '\n' }, StringSplitOptions.RemoveEmptyEntries);
        float[] numbers = words.Select(word => float.Parse(word, CultureInfo.InvariantCulture)).ToArray();
        using (Tensor x = Tensor.From(numbers, numbers.Length / Columns, Columns))
        using (Batch batch = predictor.Run("x", x))
            return string.Join("\n", batch.ToArray<long>("class")) + "\n";
    }

    private static void Answer(HttpListenerContext request, Predictor predictor)
    {
        using (HttpListenerResponse response = request.Response)
        using (var reader = new StreamReader(request.Request.InputStream))
        using (var writer = new StreamWriter(response.OutputStream))
        {
            try
            {
                writer.Write(Predict(predictor, reader.ReadToEnd()));
            }
            catch (Exception e) when (e is TuttiException || e is FormatException)
            {
                var failure = e as TuttiException;
                response.StatusCode = failure != null && failure.Code != ErrorCode.InvalidArgument ? 500 : 400;
                writer.WriteLine(e.Message);
            }
        }
    }

    // HttpListener takes no port 0: somebody else may be faster with the one that was free.
    private static int FreePort()
    {
        var probe = new TcpListener(IPAddress.Loopback, 0);
        probe.Start();
        int port = ((IPEndPoint)probe.LocalEndpoint).Port;
        probe.Stop();
        return port;
    }

    private static void Main(string[] arguments)
    {
        Predictor predictor = Trained(); // which lives as long as the server
        int port = int.Parse(arguments[0]) != 0 ? int.Parse(arguments[0]) : FreePort();
        var listener = new HttpListener();
        listener.Prefixes.Add("http://127.0.0.1:" + port + "/predict/");
        listener.Start();
        Console.WriteLine("listening on port " + port);
        while (true)
        {
            HttpListenerContext request = listener.GetContext();
            Task.Run(() => Answer(request, predictor));
        }
    }
}
