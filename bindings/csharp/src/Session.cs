// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading;

namespace Tutti
{
    /// <summary>A training, one piece at a time. Serves one thread at a time. Closing it without <see cref="Finish"/>
    /// writes nothing more; its steps stay in the estimator.</summary>
    public sealed class Session : NativeObject
    {
        private readonly Call call;

        private Session(IntPtr number, Call call) : base(new Handle(KindOf(call), number))
        {
            this.call = call;
            Handle.Register(call);
        }

        private static Kind KindOf(Call call)
        {
            return new Kind("Session", number =>
            {
                Raw.session_unref(number);
                call.Dispose();
            }, true);
        }

        internal static Session Open(Estimator estimator, Dataset dataset, TrainOptions options,
            IEnumerable<Hook> hooks, CancellationToken cancellation)
        {
            using (var training = new Training(estimator, dataset, options, hooks, cancellation))
            {
                IntPtr number, failure;
                training.Call.Check(Raw.session_open(training.Estimator, training.Dataset, training.Options,
                    training.Hooks, training.Call.Token, out number, out failure), failure);
                training.KeepCall();
                return new Session(number, training.Call);
            }
        }

        /// <summary>Trains up to so many steps; the result's reason is <see cref="Reason.Unfinished"/> while there is
        /// more to do, its loss and metrics are of the last step, its examples of all of them.</summary>
        public Result Run(long steps)
        {
            using (var use = new Uses())
            {
                IntPtr result, failure;
                Check(Raw.session_run(use.Of(this), steps, out result, out failure), failure);
                return Result.Take(result);
            }
        }

        /// <summary>Runs one step of a step function on a batch, a tensor for each component of its input with any
        /// number of rows, which the replicas share. With several workers all of them make this call at the same
        /// point. After a failure the variables are those of the last complete step, and the session goes
        /// on.</summary>
        public ReplicaValues RunStepFunction(string name, params Tensor[] batch)
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), result, values, failure;
                IntPtr[] tensors = use.NeedAll(batch, "batch");
                Check(Raw.session_run_step_function(number, name, tensors, tensors.Length, out result, out values,
                    out failure), failure);
                return new ReplicaValues(values, Result.Take(result));
            }
        }

        /// <summary>Sets a host scalar of the model; it holds from the next step on.</summary>
        public void SetScalar(string name, double value)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.session_set_scalar(use.Of(this), name, value, out failure), failure);
            }
        }

        /// <summary>Ends the session: writes the last checkpoint. The result is of the whole session. It closes the
        /// session, unless it fails.</summary>
        public Result Finish()
        {
            using (var use = new Uses())
            {
                IntPtr result, failure;
                Check(Raw.session_close(use.Of(this), out result, out failure), failure);
                Dispose();
                return Result.Take(result);
            }
        }

        private void Check(int code, IntPtr failure)
        {
            try
            {
                call.Check(code, failure);
            }
            catch (TuttiException e) when (e.Code == ErrorCode.Cancelled && Handle.IsClosing)
            {
                throw new ObjectDisposedException("the Session was closed during the call", e);
            }
        }
    }
}
