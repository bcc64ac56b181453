// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Tutti
{
    /// <summary>A model function and run options, trained on datasets by a strategy. One Train at a time, beside any
    /// number of Evaluate and predictions.</summary>
    public sealed class Estimator : NativeObject
    {
        private static readonly Kind EstimatorKind = new Kind("Estimator", Raw.estimator_unref, true);
        private readonly object names = new object(); // the library lends them until the list changes

        /// <summary>Makes an estimator; null = the defaults, the context's default strategy
        /// (Auto, unless the context is a strategy's), the default context.</summary>
        public Estimator(ModelFunction model, RunOptions options = null, Strategy strategy = null,
            Context context = null)
            : base(new Handle(EstimatorKind, Create(model, options, strategy, context)))
        {
        }

        private static IntPtr Create(ModelFunction model, RunOptions options, Strategy strategy, Context context)
        {
            if (model == null)
                throw new ArgumentNullException("model");
            using (var use = new Uses())
            using (var native = new NativeOptions(options ?? new RunOptions()))
            {
                IntPtr owner = use.Of(context), devices = use.Of(strategy), number, failure;
                int code = Raw.estimator_create(owner, Callbacks.Hold(model), devices, native.Number, out number,
                    out failure);
                Callbacks.Reap();
                Errors.Check(code, failure);
                return number;
            }
        }

        /// <summary>Adds a function that a session runs by <see cref="Session.RunStepFunction"/> besides the model's
        /// own steps, over the same variables; before the first training. In <see cref="Mode.Train"/> it sets a loss
        /// and an optimizer, and changes what it trains; in the other modes it only computes. Its variables must be
        /// among those that the model function makes in <see cref="Mode.Train"/>. The input is a dataset with batches
        /// like those that it gets, of which nothing is read; null = that of the session. The function is called when
        /// a session opens.</summary>
        public void AddStepFunction(string name, Mode mode, ModelFunction function, Dataset input = null)
        {
            if (function == null)
                throw new ArgumentNullException("function");
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), of = use.Of(input), failure;
                int code = Raw.estimator_add_step_function(number, name, (int)mode, Callbacks.Hold(function), of,
                    out failure);
                Callbacks.Reap();
                Errors.Check(code, failure);
            }
        }

        /// <summary>Trains until the options' limit, or until the input ends. It goes on from the newest checkpoint in
        /// the model directory, in the middle of an epoch if need be. The token ends it within one step by
        /// <see cref="OperationCanceledException"/>.</summary>
        public Result Train(Dataset dataset, TrainOptions options = null, IEnumerable<Hook> hooks = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var training = new Training(this, dataset, options, hooks, cancellationToken))
            {
                IntPtr result, failure;
                training.Call.Check(Raw.estimator_train(training.Estimator, training.Dataset, training.Options,
                    training.Hooks, training.Call.Token, out result, out failure), failure);
                return Result.Take(result);
            }
        }

        /// <summary>Trains on a thread of its own.</summary>
        public Task<Result> TrainAsync(Dataset dataset, TrainOptions options = null, IEnumerable<Hook> hooks = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnThread(() => Train(dataset, options, hooks, cancellationToken), cancellationToken);
        }

        /// <summary>Trains on the dataset that a function makes, which is called once. The dataset is disposed of
        /// afterwards.</summary>
        public Result TrainFrom(Func<InputContext, Dataset> input, TrainOptions options = null,
            IEnumerable<Hook> hooks = null, CancellationToken cancellationToken = default(CancellationToken))
        {
            using (Dataset dataset = MakeInput(Mode.Train, input))
                return Train(dataset, options, hooks, cancellationToken);
        }

        /// <summary>Evaluates on the dataset that a function makes, which is called once. The dataset is disposed of
        /// afterwards.</summary>
        public Result EvaluateFrom(Func<InputContext, Dataset> input, long steps = 0,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (Dataset dataset = MakeInput(Mode.Eval, input))
                return Evaluate(dataset, steps, cancellationToken);
        }

        private Dataset MakeInput(Mode mode, Func<InputContext, Dataset> input)
        {
            if (input == null)
                throw new ArgumentNullException("input");
            InputContext context;
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this);
                context = new InputContext(Raw.estimator_get_params(number),
                    Raw.estimator_get_input_pipeline_id(number, (int)mode),
                    Raw.estimator_get_input_pipeline_count(number, (int)mode));
            }
            return input(context);
        }

        /// <summary>Lets evaluations, those of <see cref="TrainAndEvaluate"/> too, use other devices from the next one
        /// on; null = the strategy that trains.</summary>
        public void SetEvaluationStrategy(Strategy strategy)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.estimator_set_evaluation_strategy(use.Of(this), use.Of(strategy), out failure),
                    failure);
            }
        }

        /// <summary>Makes the variables before the first training, without a step: initial values, or those of the
        /// newest checkpoint. The dataset says what the model gets. Unless it is null, weights is a checkpoint, a
        /// directory of checkpoints or a file in the safetensors format, whose tensors become the variables of those
        /// names.</summary>
        public void Initialize(Dataset dataset, string weights = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), data = use.Need(dataset, "dataset"), failure;
                using (var call = new Call(cancellationToken, Handle))
                    call.Check(Raw.estimator_initialize(number, data, weights, call.Token, out failure), failure);
            }
        }

        /// <summary>Loss and metrics over the dataset, or over its first batches (0 = all).</summary>
        public Result Evaluate(Dataset dataset, long steps = 0,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this), data = use.Need(dataset, "dataset"), result, failure;
                using (var call = new Call(cancellationToken, Handle))
                {
                    call.Check(Raw.estimator_evaluate(number, data, steps, call.Token, out result, out failure),
                        failure);
                    return Result.Take(result);
                }
            }
        }

        /// <summary>Evaluates on a thread of its own.</summary>
        public Task<Result> EvaluateAsync(Dataset dataset, long steps = 0,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnThread(() => Evaluate(dataset, steps, cancellationToken), cancellationToken);
        }

        /// <summary>Trains, and evaluates after every so many steps and at the end; the result is of the last
        /// evaluation.</summary>
        public Result TrainAndEvaluate(Dataset dataset, Dataset evaluation, long everySteps,
            TrainOptions options = null, IEnumerable<Hook> hooks = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            using (var training = new Training(this, dataset, options, hooks, cancellationToken))
            {
                IntPtr test = use.Need(evaluation, "evaluation"), result, failure;
                training.Call.Check(Raw.estimator_train_and_evaluate(training.Estimator, training.Dataset, test,
                    everySteps, training.Options, training.Hooks, training.Call.Token, out result, out failure),
                    failure);
                return Result.Take(result);
            }
        }

        /// <summary><see cref="TrainAndEvaluate"/> on a thread of its own.</summary>
        public Task<Result> TrainAndEvaluateAsync(Dataset dataset, Dataset evaluation, long everySteps,
            TrainOptions options = null, IEnumerable<Hook> hooks = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnThread(
                () => TrainAndEvaluate(dataset, evaluation, everySteps, options, hooks, cancellationToken),
                cancellationToken);
        }

        /// <summary>Opens a training that is run one piece at a time; the estimator's one training until it is finished
        /// or closed. The token and the hooks hold for the whole session.</summary>
        public Session OpenSession(Dataset dataset, TrainOptions options = null, IEnumerable<Hook> hooks = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            return Session.Open(this, dataset, options, hooks, cancellationToken);
        }

        /// <summary>Answers from the present weights, on the estimator's strategy.</summary>
        public Predictor MakePredictor(PredictorOptions options = null)
        {
            using (var use = new Uses())
            using (var native = new NativeOptions(options ?? new PredictorOptions()))
            {
                IntPtr number, failure;
                Errors.Check(Raw.predictor_from_estimator(use.Of(this), native.Number, out number, out failure),
                    failure);
                return new Predictor(number);
            }
        }

        /// <summary>Writes a checkpoint of the present weights into directory/checkpoint-STEP.</summary>
        public void Save(string directory, CancellationToken cancellationToken = default(CancellationToken))
        {
            using (var use = new Uses())
            using (var call = new Call(cancellationToken))
            {
                IntPtr failure;
                call.Check(Raw.estimator_save(use.Of(this), directory, call.Token, out failure), failure);
            }
        }

        /// <summary><see cref="Save"/> on a thread of the pool.</summary>
        public Task SaveAsync(string directory, CancellationToken cancellationToken = default(CancellationToken))
        {
            return Call.OnPool(() => Save(directory, cancellationToken), cancellationToken);
        }

        /// <summary>The number of completed steps.</summary>
        public long GlobalStep
        {
            get
            {
                using (var use = new Uses())
                    return Raw.estimator_get_global_step(use.Of(this));
            }
        }

        internal override string Describe()
        {
            return " at step " + GlobalStep;
        }

        /// <summary>Weights, running statistics and, as "VARIABLE/SLOT", the slots of the optimizer.</summary>
        public IReadOnlyList<string> VariableNames
        {
            get { return Names(Raw.estimator_get_variable_count, Raw.estimator_get_variable_name); }
        }

        /// <summary>Those of them that the optimizer changes, in the order of the model: no running statistics, frozen
        /// variables or slots. Empty until the model was built for training.</summary>
        public IReadOnlyList<string> TrainableNames
        {
            get { return Names(Raw.estimator_get_trainable_count, Raw.estimator_get_trainable_name); }
        }

        private IReadOnlyList<string> Names(Func<IntPtr, long> count, Func<IntPtr, long, string> name)
        {
            lock (names)
            using (var use = new Uses())
            {
                IntPtr number = use.Of(this);
                var list = new List<string>();
                for (long i = 0; i < count(number); i++)
                    list.Add(name(number, i));
                return list;
            }
        }

        /// <summary>A copy of a variable's value.</summary>
        public Tensor ReadVariable(string name)
        {
            using (var use = new Uses())
            {
                IntPtr tensor, failure;
                Errors.Check(Raw.estimator_read_variable(use.Of(this), name, out tensor, out failure), failure);
                return new Tensor(tensor);
            }
        }

        /// <summary>A copy of the last step's gradient for a variable; it needs the option KeepGradients.</summary>
        public Tensor ReadGradient(string variable)
        {
            using (var use = new Uses())
            {
                IntPtr tensor, failure;
                Errors.Check(Raw.estimator_read_gradient(use.Of(this), variable, out tensor, out failure), failure);
                return new Tensor(tensor);
            }
        }

        /// <summary>What the model set as an output in <see cref="Mode.Train"/>, for each row of the last step: a copy
        /// of the rows of all replicas of this process, in the order of the batch, computed with the weights before
        /// the step. It needs the option KeepOutputs.</summary>
        public Tensor ReadOutput(string name)
        {
            using (var use = new Uses())
            {
                IntPtr tensor, failure;
                Errors.Check(Raw.estimator_read_output(use.Of(this), name, out tensor, out failure), failure);
                return new Tensor(tensor);
            }
        }

        /// <summary>What training on batches of so many rows (0 = the dataset's) will take of the devices' memory, and
        /// whether that fits. Nothing is trained.</summary>
        public MemoryEstimate EstimateMemory(Dataset dataset, long batchSize = 0)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                string text = Raw.estimator_estimate_memory(use.Of(this), use.Need(dataset, "dataset"), batchSize,
                    out failure);
                if (failure != IntPtr.Zero)
                    Errors.Check(Raw.error_get_code(failure), failure);
                return new MemoryEstimate(text);
            }
        }

        /// <summary>The largest batch size from 1 to most that fits by that estimate.</summary>
        public long FindBatchSize(Dataset dataset, long most)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                long rows = Raw.estimator_find_batch_size(use.Of(this), use.Need(dataset, "dataset"), most,
                    out failure);
                if (failure != IntPtr.Zero)
                    Errors.Check(Raw.error_get_code(failure), failure);
                return rows;
            }
        }

        /// <summary>Sets a variable; same type and shape. Training goes on with it from the next step.</summary>
        public void WriteVariable(string name, Tensor value)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.estimator_write_variable(use.Of(this), name, use.Need(value, "value"), out failure),
                    failure);
            }
        }

        /// <summary>Freezes or frees the variables whose name matches a pattern with * and ?. Before the first
        /// training.</summary>
        public void SetTrainable(string pattern, bool trainable)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.estimator_set_trainable(use.Of(this), pattern, trainable, out failure), failure);
            }
        }
    }

    // What the calls that train have in common: handles, options, hooks and a token.
    internal sealed class Training : IDisposable
    {
        public readonly IntPtr Estimator, Dataset, Hooks;
        public readonly Call Call;
        private readonly Uses use = new Uses();
        private readonly NativeOptions options;
        private bool keepsCall;

        public Training(Estimator estimator, Dataset dataset, TrainOptions options, IEnumerable<Hook> hooks,
            CancellationToken cancellation)
        {
            options = options ?? new TrainOptions();
            try
            {
                Estimator = use.Of(estimator);
                Dataset = use.Need(dataset, "dataset");
                this.options = new NativeOptions(options);
                Hooks = Hook.MakeList(hooks);
                Call = new Call(cancellation, estimator.Handle, options.Stop);
            }
            catch (Exception)
            {
                Dispose();
                throw;
            }
        }

        public IntPtr Options
        {
            get { return options.Number; }
        }

        // The session ends the call.
        public void KeepCall()
        {
            keepsCall = true;
        }

        public void Dispose()
        {
            if (Call != null && !keepsCall)
                Call.Dispose();
            Raw.hooks_unref(Hooks);
            if (options != null)
                options.Dispose();
            use.Dispose();
            Callbacks.Reap();
        }
    }
}
