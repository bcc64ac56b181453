// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Sockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti.Tests
{
    internal static class FileSystems
    {
        private static string Lines(Context context, string path)
        {
            using (Dataset dataset = new Pipeline(context).TextLines(new[] { path }).Build())
                return Lines(dataset);
        }

        private static string Lines(Dataset dataset)
        {
            var lines = new List<string>();
            foreach (Tensor[] element in dataset.Elements())
            {
                lines.AddRange(element[0].ToTexts());
                Tensor.DisposeAll(element);
            }
            return string.Join(" ", lines);
        }

        private static string Module(string variable)
        {
            string path = Environment.GetEnvironmentVariable(variable);
            if (string.IsNullOrEmpty(path))
                throw new SkipException(variable + " is not set");
            return path;
        }

        [Test]
        private static void OfModules()
        {
            string letters = Module("TUTTI_LETTERS_MODULE");
            using (var context = new Context())
            {
                Check.Fails(ErrorCode.NotFound, () => context.LoadFileSystem("nothing"));
                Check.Throws<TuttiException>(() => Lines(context, "letters://a"));
                Check.Fails(ErrorCode.InvalidArgument, () => context.LoadFileSystem(letters, "{\"upper\": true}"));
                context.LoadFileSystem(letters);
                Check.Fails(ErrorCode.AlreadyExists, () => context.LoadFileSystem(letters));
                Check.Equal("a größe c", Lines(context, "letters://a,größe,c"));
                Check.Fails(ErrorCode.NotFound, () => Lines(context, "letters://"));
            }
        }

        // Answers one request, if there is one: "/lines.txt" of those who have the key is there, whatever range is
        // asked for.
        private static bool Answer(TcpClient client)
        {
            using (client)
            using (var stream = client.GetStream())
            {
                var reader = new StreamReader(stream, Encoding.ASCII);
                string first = reader.ReadLine();
                if (first == null)
                    return false;
                bool hasKey = false;
                for (string line = reader.ReadLine(); !string.IsNullOrEmpty(line); line = reader.ReadLine())
                    hasKey = hasKey || line == "X-Key: open";
                bool isThere = hasKey && first.Contains(" /lines.txt ");
                string body = isThere ? "one\ntwo\n" : "";
                string head = "HTTP/1.1 " + (isThere ? "200 OK" : "404 Not Found") + "\r\nContent-Length: " +
                    body.Length + "\r\nConnection: close\r\n\r\n";
                byte[] answer = Encoding.ASCII.GetBytes(head + (first.StartsWith("HEAD ") ? "" : body));
                stream.Write(answer, 0, answer.Length);
                return true;
            }
        }

        // A connection without a request ends it: not every runtime wakes one who waits when the listener is stopped.
        private static void Serve(TcpListener listener)
        {
            bool more = true;
            while (more)
                more = Answer(listener.AcceptTcpClient());
        }

        [Test]
        private static void OverHttp()
        {
            string module = Module("TUTTI_HTTP_MODULE");
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            var server = new Thread(() => Serve(listener)) { IsBackground = true };
            server.Start();
            string url = "http://127.0.0.1:" + ((IPEndPoint)listener.LocalEndpoint).Port;
            using (var context = new Context())
            {
                context.LoadFileSystem(module, "{\"headers\": [\"X-Key: open\"]}");
                Check.Equal("one two", Lines(context, url + "/lines.txt"));
                Check.Fails(ErrorCode.NotFound, () => Lines(context, url + "/none.txt"));
            }
            new TcpClient("127.0.0.1", ((IPEndPoint)listener.LocalEndpoint).Port).Close();
            server.Join();
            listener.Stop();
        }

        // Gives no more than seven bytes at a time.
        private sealed class SlowStream : MemoryStream
        {
            private readonly Action closing;

            public SlowStream(string text, Action closing) : base(Encoding.UTF8.GetBytes(text))
            {
                this.closing = closing;
            }

            public override int Read(byte[] buffer, int offset, int count)
            {
                return base.Read(buffer, offset, Math.Min(count, 7));
            }

            protected override void Dispose(bool disposing)
            {
                closing();
                base.Dispose(disposing);
            }
        }

        [Test]
        private static void OfThePrograms()
        {
            int open = 0;
            var files = new Dictionary<string, string> { { "one.txt", "a\nb\n" }, { "größe.txt", "c\n" } };
            Func<string, Stream> opens = path =>
            {
                string text;
                if (!files.TryGetValue(path.Substring("net://".Length), out text))
                    throw new FileNotFoundException("no " + path);
                Interlocked.Increment(ref open);
                return new SlowStream(text, () => Interlocked.Decrement(ref open));
            };
            Func<string, IEnumerable<string>> lists = directory => new List<string>(files.Keys) { "more/" };
            using (var context = new Context())
            {
                context.AddFileSystem("net", opens, lists);
                Check.Equal("a b", Lines(context, "net://one.txt"));
                Check.Equal("c a b", Lines(context, "net://*.txt"));
                Check.Equal(0, open);
                TuttiException missing = Check.Fails(ErrorCode.NotFound, () => Lines(context, "net://none.txt"));
                Check.True(missing.ToString().Contains("no net://none.txt"), missing.ToString());
                Check.Fails(ErrorCode.AlreadyExists, () => context.AddFileSystem("net", opens));
                Check.Fails(ErrorCode.InvalidArgument, () => context.AddFileSystem("Big Letters", opens));
                Check.Throws<ArgumentNullException>(() => context.AddFileSystem("other", (Func<string, Stream>)null));
                context.AddFileSystem("nothing", path => null);
                Check.Fails(ErrorCode.InvalidArgument, () => Lines(context, "nothing://*"));
            }
        }

        // Waits, when it is read first, until the call is cancelled.
        private sealed class WaitingStream : MemoryStream
        {
            private readonly Func<bool> waits;

            public WaitingStream(string text, Func<bool> waits) : base(Encoding.UTF8.GetBytes(text))
            {
                this.waits = waits;
            }

            public override async Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken token)
            {
                if (waits())
                    await Task.Delay(Program.Deadline, token);
                return Read(buffer, offset, count);
            }
        }

        [Test]
        private static void ReadingEndsWithTheCall()
        {
            using (var context = new Context())
            using (var source = new CancellationTokenSource())
            {
                context.AddFileSystem("net", (path, token) => new WaitingStream("a\nb\n", () =>
                {
                    bool waits = !source.IsCancellationRequested;
                    source.CancelAfter(50);
                    return waits;
                }));
                using (Dataset dataset = new Pipeline(context).TextLines(new[] { "net://n.txt" }).Build())
                using (DatasetIterator iterator = dataset.Iterate())
                {
                    Check.Throws<OperationCanceledException>(() => iterator.Next(source.Token));
                    Check.Equal("a b", Lines(dataset));
                }
            }
        }

        // The lines of a file that has this content and version now, through a cache in a file.
        private static string Cached(string cache, string content, Func<string> version)
        {
            using (var context = new Context())
            {
                context.AddFileSystem("net", path => new SlowStream(content, () => { }), null, (path, stream) =>
                {
                    Check.Equal("net://n.txt", path);
                    Check.True(stream is SlowStream, "the stream as it was opened");
                    return version();
                });
                using (Dataset dataset = new Pipeline(context).TextLines(new[] { "net://n.txt" })
                    .Cache(new CacheOptions { Path = cache }).Build())
                    return Lines(dataset);
            }
        }

        [Test]
        private static void CachesFollowVersions()
        {
            string cache = Path.Combine(Path.GetTempPath(), "tutti-" + Guid.NewGuid().ToString("N"));
            try
            {
                Check.Equal("one two", Cached(cache, "one\ntwo\n", () => "1"));
                Check.Equal("one two", Cached(cache, "six\nten\n", () => "1"));
                Check.Equal("six ten", Cached(cache, "six\nten\n", () => "2"));
                foreach (string unknown in new[] { null, "" })
                {
                    TuttiException none = Check.Fails(ErrorCode.InvalidArgument,
                        () => Cached(cache, "one\n", () => unknown));
                    Check.True(none.ToString().Contains("'key'"), none.ToString());
                }
                Failures.Come(fail =>
                {
                    Cached(cache, "one\n", () =>
                    {
                        fail();
                        return null;
                    });
                });
            }
            finally
            {
                File.Delete(cache);
            }
        }

        [Test]
        private static void OpeningEndsWithItsToken()
        {
            using (var context = new Context())
            using (var source = new CancellationTokenSource())
            {
                context.AddFileSystem("net", path =>
                {
                    source.Cancel();
                    return new SlowStream("a\n", () => { });
                });
                var both = new[] { "net://one.txt", "net://two.txt" };
                Check.Throws<OperationCanceledException>(
                    () => new Pipeline(context).WithCancellation(source.Token).TextLines(both).Build());
                // Before anything was opened.
                Check.Throws<OperationCanceledException>(
                    () => new Pipeline(context).WithCancellation(source.Token).TextLines(both).Build());
                using (var later = new CancellationTokenSource())
                using (Pipeline pipeline = new Pipeline(context).WithCancellation(later.Token))
                using (Dataset dataset = pipeline.WithCancellation(later.Token).Range(3).Build())
                {
                    later.Cancel(); // nothing follows it any more
                    Check.Equal(3L, dataset.Cardinality);
                }
            }
        }

        [Test]
        private static void OfTheProgramsThrow()
        {
            Failures.Come(fail =>
            {
                using (var context = new Context())
                {
                    context.AddFileSystem("bad", path =>
                    {
                        fail();
                        return null;
                    });
                    Lines(context, "bad://x");
                }
            });
        }
    }
}
