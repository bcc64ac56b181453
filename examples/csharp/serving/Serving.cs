// SPDX-License-Identifier: Apache-2.0
// A small HTTP server that answers from one predictor, many requests at a time. Arguments: [PORT]; without one, a free
// port. POST / with rows of 10 numbers, one row a line; the answer is a class for each row. It prints its port and
// serves until its input ends.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using System.Threading.Tasks;
using Tutti;

internal static class Serving
{
    private const int Columns = 10;

    // The class of a row is whether its first number is above one half.
    private static void Model(Graph g, Mode mode)
    {
        Value logits = g.LayerDense(g.GetFeature("x"), 2);
        g.SetOutput("class", g.Argmax(logits));
        if (mode == Mode.Predict)
            return;
        g.SetLoss(g.LossSparseSoftmaxCrossEntropy(logits, g.GetLabel("y")));
        g.OptimizerAdam(g.ScheduleConstant(0.1));
    }

    private static Predictor Trained()
    {
        var random = new Random(1);
        var rows = new float[1000, Columns];
        var labels = new int[1000];
        for (int i = 0; i < labels.Length; i++)
        {
            for (int j = 0; j < Columns; j++)
                rows[i, j] = (float)random.NextDouble();
            labels[i] = rows[i, 0] > 0.5 ? 1 : 0;
        }
        Pipeline pipeline = new Pipeline().AddSlices("x", Role.Feature, rows).AddSlices("y", Role.Label, labels);
        using (Dataset dataset = pipeline.Shuffle(1000).Repeat().Batch(100).Build())
        using (var estimator = new Estimator(Model, new RunOptions { Seed = 1 }))
        {
            estimator.Train(dataset, new TrainOptions { Steps = 300 });
            return estimator.MakePredictor(); // outlives the estimator
        }
    }

    private static string Answer(Predictor predictor, string text)
    {
        string[] lines = text.Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
        float[] numbers = lines.SelectMany(line => line.Split(' '))
            .Select(number => float.Parse(number, CultureInfo.InvariantCulture)).ToArray();
        using (Tensor rows = Tensor.From(numbers, lines.Length, Columns))
        using (Batch batch = predictor.Run("x", rows))
            return string.Join("\n", batch.ToArray<long>("class")) + "\n";
    }

    private static void Serve(Predictor predictor, HttpListenerContext request)
    {
        using (HttpListenerResponse response = request.Response)
        using (var writer = new StreamWriter(response.OutputStream))
        {
            try
            {
                using (var reader = new StreamReader(request.Request.InputStream))
                    writer.Write(Answer(predictor, reader.ReadToEnd()));
            }
            catch (Exception e) when (e is TuttiException || e is FormatException)
            {
                response.StatusCode = 400;
                writer.Write(e.Message + "\n");
            }
        }
    }

    private static int FreePort()
    {
        var probe = new TcpListener(IPAddress.Loopback, 0);
        probe.Start();
        int port = ((IPEndPoint)probe.LocalEndpoint).Port;
        probe.Stop();
        return port;
    }

    private static HttpListener Listen(string[] arguments, out int port)
    {
        for (int attempt = 1; ; attempt++)
        {
            port = arguments.Length > 0 ? int.Parse(arguments[0]) : FreePort();
            var listener = new HttpListener();
            listener.Prefixes.Add("http://127.0.0.1:" + port + "/");
            try
            {
                listener.Start();
                return listener;
            }
            catch (SocketException)
            {
                if (attempt == 10) // somebody else was faster each time
                    throw;
            }
        }
    }

    private static void AcceptAll(HttpListener listener, Predictor predictor)
    {
        try
        {
            while (true)
            {
                HttpListenerContext request = listener.GetContext();
                Task.Run(() => Serve(predictor, request));
            }
        }
        catch (Exception e) when (e is HttpListenerException || e is InvalidOperationException)
        {
            return; // the listener was closed
        }
    }

    private static void Main(string[] arguments)
    {
        using (Predictor predictor = Trained())
        {
            int port;
            HttpListener listener = Listen(arguments, out port);
            new Thread(() => AcceptAll(listener, predictor)) { IsBackground = true }.Start();
            Console.WriteLine("port " + port);
            Console.In.ReadToEnd();
            listener.Close();
        }
    }
}
