// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;
using System.Threading;

namespace Tutti
{
    // A call of a function of the program over elements: what it gets, and what it gives.
    internal sealed class ElementCall
    {
        public Tensor[] State = new Tensor[0], Element = new Tensor[0];
        public long Pass, Index; // which element a generator is asked for
        public Tensor[] NewState = new Tensor[0], Outputs = new Tensor[0];
        public bool Answer;
        public Dataset Dataset;

        public void Read(IntPtr number)
        {
            long states = Raw.element_call_get_state_count(number);
            State = Tensors(number, 0, states);
            Element = Tensors(number, states, Raw.element_call_get_count(number));
            Pass = Raw.element_call_get_pass(number);
            Index = Raw.element_call_get_index(number);
        }

        private static Tensor[] Tensors(IntPtr number, long begin, long end)
        {
            var tensors = new Tensor[end - begin];
            for (long i = begin; i < end; i++)
                tensors[i - begin] = Tensor.Shared(Raw.element_call_get_tensor(number, i));
            return tensors;
        }

        // Takes what a step of a scan gives.
        public void Give((Tensor[] State, Tensor[] Element) step)
        {
            NewState = step.State;
            Outputs = step.Element;
            if (NewState == null || NewState.Length != State.Length)
            {
                throw TuttiException.Ours(ErrorCode.InvalidArgument, "the function gives a state of " +
                    (NewState == null ? 0 : NewState.Length) + " tensors, not of " + State.Length);
            }
        }
    }

    // The threads that compute a function over elements. One always waits for a call; who takes one makes sure of that
    // first. The library waits for each call, so that there is at most one thread more than calls at a time.
    internal sealed class CallServer
    {
        private readonly IntPtr queue;
        private readonly Action<ElementCall> function;
        private readonly object gate = new object();
        private int threads, idle; // guarded by gate

        private CallServer(IntPtr queue, Action<ElementCall> function)
        {
            this.queue = queue;
            this.function = function;
        }

        // Takes the reference of the queue.
        public static void Begin(IntPtr queue, Action<ElementCall> function)
        {
            if (queue == IntPtr.Zero)
                throw TuttiException.Ours(ErrorCode.ResourceExhausted, "no memory for a function");
            new CallServer(queue, function).Begin();
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
            var call = new ElementCall();
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
                call.Read(number);
                function(call);
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
                if (number != IntPtr.Zero)
                    Finish(number, call, exception);
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

        private void Finish(IntPtr number, ElementCall call, Exception exception)
        {
            IntPtr failure = IntPtr.Zero, dataset = IntPtr.Zero;
            int code = Raw.OK;
            var outputs = new IntPtr[0];
            Tensor[] given = (call.NewState ?? new Tensor[0]).Concat(call.Outputs ?? new Tensor[0]).ToArray();
            using (var use = new Uses())
            {
                try
                {
                    if (exception == null)
                    {
                        outputs = use.NeedAll(given, "the function's result");
                        dataset = use.Of(call.Dataset);
                    }
                }
                catch (Exception e)
                {
                    exception = e;
                }
                Tensor.DisposeAll(call.State); // those in use end when they are left
                Tensor.DisposeAll(call.Element);
                Tensor.DisposeAll(given);
                if (exception != null)
                    code = Errors.ToC(exception, out failure);
                Raw.element_call_finish(queue, number, outputs, outputs.Length, call.Answer, dataset, code, failure);
            }
        }
    }
}
