// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tutti
{
    // A file system of the program, and its open files by number.
    internal sealed class FileServer
    {
        private readonly ConcurrentDictionary<long, Stream> files = new ConcurrentDictionary<long, Stream>();
        private long last;

        public FileServer(Func<string, CancellationToken, Stream> open, Func<string, IEnumerable<string>> list,
            Func<string, Stream, string> version, bool wantsTokens)
        {
            Open = open;
            List = list;
            Version = version;
            WantsTokens = wantsTokens;
        }

        // Whether opening and reading get the token of the call that they are for.
        public bool WantsTokens { get; private set; }

        public Func<string, CancellationToken, Stream> Open { get; private set; }

        public Func<string, IEnumerable<string>> List { get; private set; }

        public Func<string, Stream, string> Version { get; private set; }

        public long Add(Stream stream)
        {
            long number = Interlocked.Increment(ref last);
            files[number] = stream;
            return number;
        }

        public Stream Get(long number)
        {
            return files[number];
        }

        public Stream Take(long number)
        {
            Stream stream;
            files.TryRemove(number, out stream);
            return stream;
        }
    }

    // What the library asks of it.
    internal sealed class FileCall : ServedCall
    {
        private readonly FileServer server;
        private long file, result;
        private string version = "";

        public FileCall(FileServer server)
        {
            this.server = server;
        }

        public override void Compute(IntPtr number)
        {
            using (var token = new FunctionToken(server.WantsTokens ? Raw.call_get_cancel(number) : IntPtr.Zero))
                Compute(number, token.Token);
        }

        private void Compute(IntPtr number, CancellationToken token)
        {
            switch (Raw.file_call_get_kind(number))
            {
                case Raw.FILE_OPEN:
                    string path = Raw.file_call_get_path(number);
                    Stream opened = server.Open(path, token);
                    if (opened == null)
                        throw TuttiException.Ours(ErrorCode.InvalidArgument, "the file system gives null for a file");
                    file = server.Add(opened);
                    result = opened.Length;
                    if (server.Version != null)
                        version = server.Version(path, opened) ?? "";
                    break;
                case Raw.FILE_READ:
                    result = Read(number, server.Get(Raw.file_call_get_file(number)), token);
                    break;
                case Raw.FILE_CLOSE:
                    server.Take(Raw.file_call_get_file(number)).Dispose();
                    break;
                default:
                    foreach (string name in server.List(Raw.file_call_get_path(number)))
                        Raw.file_call_add_name(number, name);
                    break;
            }
        }

        // Through an array, since streams of .NET Framework know no other memory.
        private long Read(IntPtr number, Stream stream, CancellationToken token)
        {
            var bytes = new byte[Math.Min(Raw.file_call_get_size(number), 1 << 20)];
            int count;
            lock (stream)
            {
                stream.Position = Raw.file_call_get_offset(number);
                count = server.WantsTokens ? stream.ReadAsync(bytes, 0, bytes.Length, token).GetAwaiter().GetResult()
                    : stream.Read(bytes, 0, bytes.Length);
            }
            Marshal.Copy(bytes, 0, Raw.file_call_get_target(number), count);
            return count;
        }

        public override void Finish(IntPtr queue, IntPtr number, Exception exception)
        {
            IntPtr failure = IntPtr.Zero;
            int code = Raw.OK;
            if (exception != null)
            {
                Stream opened = file != 0 ? server.Take(file) : null;
                if (opened != null)
                    Close(opened);
                bool isMissing = exception is FileNotFoundException || exception is DirectoryNotFoundException;
                code = Errors.ToC(exception, out failure, isMissing ? ErrorCode.NotFound : (ErrorCode?)null);
            }
            Raw.file_call_finish(queue, number, file, result, version, code, failure);
        }

        private static void Close(Stream stream)
        {
            try
            {
                stream.Dispose();
            }
            catch (Exception)
            {
                // The first exception says what was wrong.
            }
        }
    }
}
