// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Concurrent;
using System.Runtime.InteropServices;
using System.Threading;

namespace Tutti
{
    // What the library calls. A token stands for a managed object until the library's C side notes that it is done with
    // it, and Reap forgets it: the library never enters the runtime to free something. No exception leaves these
    // functions, for below them are C frames.
    internal static unsafe class Callbacks
    {
        private static readonly ConcurrentDictionary<long, object> Held = new ConcurrentDictionary<long, object>();
        private static long last;

        public static long Hold(object target)
        {
            long token = Interlocked.Increment(ref last);
            Held[token] = target;
            return token;
        }

        public static void Forget(long token)
        {
            object target;
            Held.TryRemove(token, out target);
        }

        // Forgets what the library has released.
        public static void Reap()
        {
            var tokens = new long[64];
            long count;
            do
            {
                count = Raw.callback_take_released(tokens, tokens.Length);
                for (long i = 0; i < count; i++)
                    Forget(tokens[i]);
            }
            while (count == tokens.Length);
        }

        // Passes an exception on to the library.
        public static int Answer(Exception exception, IntPtr err)
        {
#if !NETCOREAPP
            if (exception is ThreadAbortException)
                Thread.ResetAbort(); // it would go on through the C frames
#endif
            IntPtr failure;
            int code = Errors.ToC(exception, out failure);
            *(IntPtr*)err = failure;
            return code;
        }

        private static int Build(IntPtr number, IntPtr err, Action<Graph> build)
        {
            var graph = new Graph(number);
            Leaving.EnterCallback();
            try
            {
                build(graph);
                IntPtr failure;
                int code = Raw.graph_check(number, out failure);
                *(IntPtr*)err = failure;
                return code;
            }
            catch (Exception e)
            {
                return Answer(e, err);
            }
            finally
            {
                graph.End();
                Leaving.LeaveCallback();
            }
        }

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int ModelUpcall(long token, IntPtr graph, int mode, IntPtr err);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int ObjectUpcall(long token, IntPtr target, IntPtr err);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void LogUpcall(long token, int severity, IntPtr text);

        // Static, so that they live as long as the process.
        private static readonly ModelUpcall Model = CallModel;
        private static readonly ObjectUpcall Map = CallMap;
        private static readonly ObjectUpcall Hook = CallHook;
        private static readonly LogUpcall Log = CallLog;

        public static void Install()
        {
            Raw.set_upcalls(Marshal.GetFunctionPointerForDelegate(Model), Marshal.GetFunctionPointerForDelegate(Map),
                Marshal.GetFunctionPointerForDelegate(Hook), Marshal.GetFunctionPointerForDelegate(Log));
        }

        private static int CallModel(long token, IntPtr graph, int mode, IntPtr err)
        {
            return Build(graph, err, g => ((ModelFunction)Held[token])(g, (Mode)mode));
        }

        private static int CallMap(long token, IntPtr graph, IntPtr err)
        {
            return Build(graph, err, g => ((Action<Graph>)Held[token])(g));
        }

        private static int CallHook(long token, IntPtr number, IntPtr err)
        {
            HookEvent happened = null;
            Leaving.EnterCallback();
            try
            {
                happened = new HookEvent(number);
                ((Action<HookEvent>)Held[token])(happened);
                return happened.IsStopping ? Raw.HOOK_STOP : Raw.OK;
            }
            catch (Exception e)
            {
                return Answer(e, err);
            }
            finally
            {
                if (happened != null)
                    happened.End();
                Leaving.LeaveCallback();
            }
        }

        private static void CallLog(long token, int severity, IntPtr text)
        {
            object target;
            if (Held.TryGetValue(token, out target))
                ((LogSink)target).Write(severity, text);
        }
    }
}
