// SPDX-License-Identifier: Apache-2.0
using System;
using System.Threading;

namespace Tutti
{
    // The threads that compute a map. One always waits for an element; who takes one makes sure of that first. The
    // library waits for each element, so that there is at most one thread more than elements at a time.
    internal sealed class MapServer
    {
        private readonly IntPtr queue;
        private readonly Func<Tensor[], Tensor[]> function;
        private readonly object gate = new object();
        private int threads, idle; // guarded by gate

        // Takes the reference of the queue.
        public MapServer(IntPtr queue, Func<Tensor[], Tensor[]> function)
        {
            this.queue = queue;
            this.function = function;
        }

        public void Begin()
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
            new Thread(Serve) { IsBackground = true, Name = "tutti map" }.Start();
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
            Raw.map_queue_unref(queue);
        }

        // Takes one element, computes it, and finishes it in every case; false when there is none any more. An abort of
        // the thread does not come between: it waits for the end of `finally`.
        private bool ServeOne()
        {
            IntPtr work = IntPtr.Zero;
            Tensor[] inputs = null, outputs = null;
            Exception exception = null;
            try
            {
                try
                {
                }
                finally
                {
                    work = Raw.map_queue_take(queue);
                }
                if (work == IntPtr.Zero)
                    return false;
                StandBy();
                inputs = new Tensor[Raw.map_work_get_count(work)];
                for (int i = 0; i < inputs.Length; i++)
                    inputs[i] = Tensor.Shared(Raw.map_work_get_input(work, i));
                outputs = function(inputs);
            }
            catch (Exception e)
            {
                exception = e;
#if !NET
                if (e is ThreadAbortException)
                    Thread.ResetAbort();
#endif
            }
            finally
            {
                if (work != IntPtr.Zero)
                    Finish(work, inputs, outputs, exception);
            }
            return true;
        }

        private void Close()
        {
            lock (gate)
            {
                if (threads > 0)
                    Raw.map_queue_close(queue);
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

        private void Finish(IntPtr work, Tensor[] inputs, Tensor[] outputs, Exception exception)
        {
            IntPtr failure = IntPtr.Zero;
            int code = Raw.OK;
            var numbers = new IntPtr[0];
            using (var use = new Uses())
            {
                try
                {
                    if (exception == null)
                        numbers = use.NeedAll(outputs, "the map's result");
                }
                catch (Exception e)
                {
                    exception = e;
                }
                Tensor.DisposeAll(inputs); // those in use end when they are left
                Tensor.DisposeAll(outputs);
                if (exception != null)
                    code = Errors.ToC(exception, out failure);
                Raw.map_queue_finish(queue, work, numbers, numbers.Length, code, failure);
            }
        }
    }
}
