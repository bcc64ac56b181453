// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;

namespace Tutti
{
    /// <summary>How grave a line of the log is.</summary>
    public enum Severity
    {
        /// <summary>For those who look for a fault.</summary>
        Debug = Raw.LOG_DEBUG,
        /// <summary>What happens.</summary>
        Info = Raw.LOG_INFO,
        /// <summary>What may be wrong.</summary>
        Warning = Raw.LOG_WARNING,
        /// <summary>What is wrong.</summary>
        Error = Raw.LOG_ERROR,
    }

    /// <summary>Owns devices, threads, memory budgets and the log sink. Objects of different contexts must not be
    /// mixed. Where a method takes a context, null means the default one: its devices are the machine's GPUs where a
    /// backend for them is installed and can be used, else every processor core.</summary>
    public sealed class Context : NativeObject
    {
        private static readonly Kind ContextKind = new Kind("Context", Raw.context_unref, true);
        private static readonly LogSlot DefaultLog = new LogSlot();
        private readonly LogSlot log = new LogSlot();

        /// <summary>Makes a context.</summary>
        public Context(ContextOptions options = null) : this(Create(options))
        {
        }

        internal Context(IntPtr number) : base(new Handle(ContextKind, number))
        {
        }

        private static IntPtr Create(ContextOptions options)
        {
            using (var native = new NativeOptions(options ?? new ContextOptions()))
            {
                IntPtr number, failure;
                Errors.Check(Raw.context_create(native.Number, out number, out failure), failure);
                return number;
            }
        }

        /// <summary>The names of the devices, such as "cpu:0".</summary>
        public IReadOnlyList<string> Devices
        {
            get { return DevicesOf(this); }
        }

        internal override string Describe()
        {
            return " of " + string.Join(", ", Devices);
        }

        /// <summary>The first exception of the function of <see cref="SetLog"/>, or null.</summary>
        public Exception LogException
        {
            get { return log.Exception; }
        }

        /// <summary>The first exception of the function of <see cref="SetDefaultLog"/>, or null.</summary>
        public static Exception DefaultLogException
        {
            get { return DefaultLog.Exception; }
        }

        /// <summary>The names of the devices of a context; null = the default one.</summary>
        public static IReadOnlyList<string> DevicesOf(Context context)
        {
            return Texts(context, Raw.context_get_device_name);
        }

        /// <summary>What there is to say about each device.</summary>
        public IReadOnlyList<DeviceDescription> DescribeDevices()
        {
            return DescribeDevicesOf(this);
        }

        /// <summary>What there is to say about each device of a context; null = the default one.</summary>
        public static IReadOnlyList<DeviceDescription> DescribeDevicesOf(Context context)
        {
            return Texts(context, Raw.context_describe_device).Select(text => new DeviceDescription(text)).ToArray();
        }

        /// <summary>Sends the log, from a severity on, to a function; null = nowhere. It is called from any thread, one
        /// call at a time, and must not call the library. An exception of it is kept for
        /// <see cref="LogException"/>.</summary>
        public void SetLog(Severity minimum, Action<Severity, string> write)
        {
            using (var use = new Uses())
                log.Set(use.Of(this), minimum, write);
        }

        /// <summary>Sends the log of the default context to a function, as <see cref="SetLog"/> does for
        /// another.</summary>
        public static void SetDefaultLog(Severity minimum, Action<Severity, string> write)
        {
            Library.Load();
            DefaultLog.Set(IntPtr.Zero, minimum, write);
        }

        /// <summary>Records what trainings, evaluations and predictions of the context do, from their next step or
        /// batch on, until <see cref="StopProfile"/>: each kernel with its time on the device, the steps, and what they
        /// wait for. The trace is written to a file for Perfetto, or into a directory (one that is there, or a path
        /// that ends in "/") whose profiles TensorBoard shows; null = none.</summary>
        public void StartProfile(string tracePath = null)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.context_start_profile(use.Of(this), tracePath ?? "", out failure), failure);
            }
        }

        /// <summary>Ends the profile and reports how busy devices were, what steps waited for and what layers
        /// cost.</summary>
        public ProfileReport StopProfile()
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                string text = Raw.context_stop_profile(use.Of(this), out failure);
                if (failure != IntPtr.Zero)
                    Errors.Check(Raw.error_get_code(failure), failure);
                return new ProfileReport(text);
            }
        }

        /// <summary>Adds the file systems of a shared module, whose paths the sources then read: "http", or the
        /// absolute path of a module. Settings are a JSON object in the module's own words; null = its
        /// defaults.</summary>
        public void LoadFileSystem(string module, string settings = null)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                int code = Raw.context_load_file_system(use.Of(this), module, settings ?? "{}", out failure);
                Errors.Check(code, failure);
            }
        }

        /// <summary>Adds a file system of the program: sources then find files whose paths have its scheme, such as
        /// "store://bucket/part-1.csv" for "store". It is held until the context, and all that was made with it, is
        /// closed. Its functions are called on threads of the program, several at once, and get whole paths, with their
        /// scheme. Nothing ends them but themselves: one that may wait for ever needs a limit of its own. An exception
        /// of them comes back from the call that wanted the data.</summary>
        /// <param name="scheme">Small letters, digits, "+", "-" and ".".</param>
        /// <param name="open">Opens a file: a stream that knows its Length and Position. It is read by one thread at a
        /// time, and closed. A FileNotFoundException or DirectoryNotFoundException becomes an error of
        /// <see cref="ErrorCode.NotFound"/>.</param>
        /// <param name="list">The names in a directory, for patterns in paths and for image folders; those of
        /// directories end in "/". Without it "*", "?" and "[" in paths stand for themselves.</param>
        /// <param name="version">What tells the contents of a file, which is given with its path as it was opened, from
        /// others that were under that path: an entity tag, a generation, a hash; null when it is not known. Only with
        /// versions may caches and snapshots keep in a file what they read without a key: what is cached of another
        /// version is never used. Asked for once, when the file has been opened.</param>
        public void AddFileSystem(string scheme, Func<string, System.IO.Stream> open,
            Func<string, IEnumerable<string>> list = null, Func<string, System.IO.Stream, string> version = null)
        {
            if (open == null)
                throw new ArgumentNullException("open");
            AddFileSystem(scheme, list, new FileServer((path, token) => open(path), list, version, false));
        }

        /// <summary>Adds a file system whose functions are ended: opening gets the token of the call that wants the
        /// file, and so does ReadAsync of the stream, by which it is read.</summary>
        public void AddFileSystem(string scheme, Func<string, CancellationToken, System.IO.Stream> open,
            Func<string, IEnumerable<string>> list = null, Func<string, System.IO.Stream, string> version = null)
        {
            if (open == null)
                throw new ArgumentNullException("open");
            AddFileSystem(scheme, list, new FileServer(open, list, version, true));
        }

        private void AddFileSystem(string scheme, Func<string, IEnumerable<string>> list, FileServer server)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                IntPtr queue = Raw.context_add_file_system(use.Of(this), scheme, list != null, out failure);
                if (queue == IntPtr.Zero)
                    throw Errors.FromC(Raw.error_get_code(failure), failure);
                CallServer.Begin(queue, () => new FileCall(server));
            }
        }

        private static IReadOnlyList<string> Texts(Context context, Func<IntPtr, long, string> get)
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(context);
                var texts = new List<string>();
                for (long i = 0; i < Raw.context_get_device_count(number); i++)
                    texts.Add(get(number, i));
                return texts;
            }
        }
    }

    // Where the function of a context's log is kept.
    internal sealed class LogSlot
    {
        private LogSink sink;

        public Exception Exception
        {
            get
            {
                LogSink current = Volatile.Read(ref sink);
                return current == null ? null : current.Exception;
            }
        }

        // 0 = the default context.
        public void Set(IntPtr context, Severity minimum, Action<Severity, string> write)
        {
            IntPtr failure;
            LogSink next = write == null ? null : new LogSink(write);
            long token = next == null ? 0 : Callbacks.Hold(next);
            int code = Raw.context_set_log(context, token, (int)minimum, out failure);
            Callbacks.Reap();
            Errors.Check(code, failure);
            Volatile.Write(ref sink, next);
        }
    }

    // A function that gets the log, and what went wrong in it.
    internal sealed class LogSink
    {
        private readonly Action<Severity, string> write;
        private Exception exception;

        public LogSink(Action<Severity, string> write)
        {
            this.write = write;
        }

        public Exception Exception
        {
            get { return Volatile.Read(ref exception); }
        }

        public void Write(int severity, IntPtr text)
        {
            try
            {
                write((Severity)severity, Text.FromC(text));
            }
            catch (Exception e)
            {
#if !NETCOREAPP
                if (e is ThreadAbortException)
                    Thread.ResetAbort();
#endif
                Interlocked.CompareExchange(ref exception, e, null);
            }
        }
    }
}
