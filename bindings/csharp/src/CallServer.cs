// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;

namespace Tutti
{
    // A call that the library makes on a queue (call_queue.h), as it is served.
    internal abstract class ServedCall
    {
        // May throw anything.
        public abstract void Compute(IntPtr number);

        // Ends the call, with what Compute threw or null; throws nothing.
        public abstract void Finish(IntPtr queue, IntPtr number, Exception exception);
    }

    // The threads that serve the calls of one function or file system. One always waits for a call; who takes one makes
    // sure of that first. The library waits for each call, so that there is at most one thread more than calls at a
    // time.
    internal sealed class CallServer
    {
        private readonly IntPtr queue;
        private readonly Func<ServedCall> newCall;
        private readonly object gate = new object();
        private int threads, idle; // guarded by gate

        private CallServer(IntPtr queue, Func<ServedCall> newCall)
        {
            this.queue = queue;
            this.newCall = newCall;
        }

        // Takes the reference of the queue.
        public static void Begin(IntPtr queue, Func<ServedCall> newCall)
        {
            if (queue == IntPtr.Zero)
                throw TuttiException.Ours(ErrorCode.ResourceExhausted, "no memory for a function");
            new CallServer(queue, newCall).Begin();
        }

        private void Begin()
        {
            Start();
            Leaving.Add(this, Close);
        }

        private void Start()
        {
            lock (gate)
            {
                threads++;
                idle++;
            }
            new Thread(Serve) { IsBackground = true, Name = "tutti function" }.Start();
        }

        private void Serve()
        {
            while (ServeOne())
            {
                lock (gate)
                    idle++;
            }
            lock (gate)
            {
                idle--;
                if (--threads > 0)
                    return;
            }
            Leaving.Remove(this);
            Raw.call_queue_unref(queue);
        }

        // Takes one call, computes it, and finishes it in every case; false when there is none any more. An abort of
        // the thread does not come between: it waits for the end of `finally`.
        private bool ServeOne()
        {
            IntPtr number = IntPtr.Zero;
            ServedCall call = newCall();
            Exception exception = null;
            try
            {
                try
                {
                }
                finally
                {
                    number = Raw.call_queue_take(queue);
                }
                if (number == IntPtr.Zero)
                    return false;
                StandBy();
                call.Compute(number);
            }
            catch (Exception e)
            {
                exception = e;
#if !NETCOREAPP
                if (e is ThreadAbortException)
                    Thread.ResetAbort();
#endif
            }
            finally
            {
                if (number != IntPtr.Zero)
                    call.Finish(queue, number, exception);
            }
            return true;
        }

        private void Close()
        {
            lock (gate)
            {
                if (threads > 0)
                    Raw.call_queue_close(queue);
            }
        }

        private void StandBy()
        {
            lock (gate)
            {
                if (--idle > 0)
                    return;
            }
            Start();
        }
    }
}
