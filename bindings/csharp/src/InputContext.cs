// SPDX-License-Identifier: Apache-2.0
namespace Tutti
{
    /// <summary>What a function that makes a dataset gets.</summary>
    public sealed class InputContext
    {
        internal InputContext(string parameters, long inputPipelineId, long inputPipelineCount)
        {
            Params = parameters;
            InputPipelineId = inputPipelineId;
            InputPipelineCount = inputPipelineCount;
        }

        /// <summary>The run option Params.</summary>
        public string Params { get; private set; }

        /// <summary>Which input this process reads, for <see cref="Pipeline.Shard"/>.</summary>
        public long InputPipelineId { get; private set; }

        /// <summary>How many inputs the run reads; 1 unless workers have input of their own.</summary>
        public long InputPipelineCount { get; private set; }

        /// <summary>The input and the parameters, on one line.</summary>
        public override string ToString()
        {
            return "input " + InputPipelineId + " of " + InputPipelineCount + ", params \"" + Params + "\"";
        }
    }
}
