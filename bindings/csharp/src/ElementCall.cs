// SPDX-License-Identifier: Apache-2.0
using System;
using System.Linq;
using System.Threading;

namespace Tutti
{
    // A call of a function of the program over elements: what it gets, and what it gives.
    internal sealed class ElementCall : ServedCall
    {
        private readonly Action<ElementCall> function;
        private readonly bool wantsToken;
        public Tensor[] State = new Tensor[0], Element = new Tensor[0];
        public long Pass, Index; // which element a generator is asked for
        public Tensor[] NewState = new Tensor[0], Outputs = new Tensor[0];
        public bool Answer;
        public Dataset Dataset;
        public CancellationToken Token; // of a function that wants one

        private ElementCall(Action<ElementCall> function, bool wantsToken)
        {
            this.function = function;
            this.wantsToken = wantsToken;
        }

        // Takes the reference of the queue.
        public static void Begin(IntPtr queue, Action<ElementCall> function)
        {
            CallServer.Begin(queue, () => new ElementCall(function, false));
        }

        // The same for a function that wants the token of each call.
        public static void BeginWithToken(IntPtr queue, Action<ElementCall> function)
        {
            CallServer.Begin(queue, () => new ElementCall(function, true));
        }

        public override void Compute(IntPtr number)
        {
            long states = Raw.element_call_get_state_count(number);
            State = Tensors(number, 0, states);
            Element = Tensors(number, states, Raw.element_call_get_count(number));
            Pass = Raw.element_call_get_pass(number);
            Index = Raw.element_call_get_index(number);
            using (var token = new FunctionToken(wantsToken ? Raw.call_get_cancel(number) : IntPtr.Zero))
            {
                Token = token.Token;
                function(this);
            }
        }

        private static Tensor[] Tensors(IntPtr number, long begin, long end)
        {
            var tensors = new Tensor[end - begin];
            for (long i = begin; i < end; i++)
                tensors[i - begin] = Tensor.Shared(Raw.element_call_get_tensor(number, i));
            return tensors;
        }

        // Takes what a generator gives; null behind its last element.
        public void GiveElement(Tensor[] element)
        {
            Outputs = element;
            Answer = element != null;
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

        public override void Finish(IntPtr queue, IntPtr number, Exception exception)
        {
            IntPtr failure = IntPtr.Zero, dataset = IntPtr.Zero;
            int code = Raw.OK;
            var outputs = new IntPtr[0];
            Tensor[] given = (NewState ?? new Tensor[0]).Concat(Outputs ?? new Tensor[0]).ToArray();
            using (var use = new Uses())
            {
                try
                {
                    if (exception == null)
                    {
                        outputs = use.NeedAll(given, "the function's result");
                        dataset = use.Of(Dataset);
                    }
                }
                catch (Exception e)
                {
                    exception = e;
                }
                Tensor.DisposeAll(State); // those in use end when they are left
                Tensor.DisposeAll(Element);
                Tensor.DisposeAll(given);
                if (exception != null)
                    code = Errors.ToC(exception, out failure);
                Raw.element_call_finish(queue, number, outputs, outputs.Length, Answer, dataset, code, failure);
            }
        }
    }
}
