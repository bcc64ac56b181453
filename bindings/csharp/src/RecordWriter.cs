// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti
{
    /// <summary>Writes a TFRecord file, byte by byte what TensorFlow writes; <see cref="Pipeline.Tfrecord"/> reads it.
    /// The file is there, complete, once <see cref="Finish"/> has succeeded; without it, or after an error, there is
    /// none. Serves one thread at a time.</summary>
    public sealed class RecordWriter : NativeObject
    {
        private static readonly Kind WriterKind = new Kind("RecordWriter", Raw.record_writer_unref);

        /// <summary>Begins a file; <paramref name="compression"/> is none, gzip or zlib. A context of null is the
        /// default one.</summary>
        public RecordWriter(string path, string compression = "none", Context context = null)
            : base(new Handle(WriterKind, Create(path, compression, context)))
        {
        }

        private static IntPtr Create(string path, string compression, Context context)
        {
            using (var use = new Uses())
            {
                IntPtr number, failure;
                Errors.Check(Raw.record_writer_create(use.Of(context), path, compression, out number, out failure),
                    failure);
                return number;
            }
        }

        /// <summary>Writes a record of any bytes.</summary>
        public void Write(byte[] record)
        {
            if (record == null)
                throw new ArgumentNullException("record");
            using (var pin = new Pin(record))
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.record_writer_write(use.Of(this), pin.Address, record.Length, out failure), failure);
            }
        }

        /// <summary>Adds a feature to the tf.train.Example that is written next: texts become a bytes list, floats a
        /// float list, integers and truth values an int64 list. The tensor may be closed.</summary>
        public RecordWriter AddFeature(string name, Tensor tensor)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.record_writer_add_feature(use.Of(this), name, use.Need(tensor, "tensor"), out failure),
                    failure);
            }
            return this;
        }

        /// <summary>Writes the features added since the last example as one record.</summary>
        public void WriteExample()
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.record_writer_write_example(use.Of(this), out failure), failure);
            }
        }

        /// <summary>Adds a feature list to the tf.train.SequenceExample that is written next: each row of the tensor is
        /// a step. Where the steps have different numbers of values, <c>lengths</c> are integers that say how many rows
        /// of its own each step has. The tensors may be closed.</summary>
        public RecordWriter AddFeatureList(string name, Tensor tensor, Tensor lengths = null)
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.record_writer_add_feature_list(use.Of(this), name, use.Need(tensor, "tensor"),
                    use.Of(lengths), out failure), failure);
            }
            return this;
        }

        /// <summary>Writes one record of the feature lists added since the last one, with the features as its
        /// context.</summary>
        public void WriteSequenceExample()
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.record_writer_write_sequence_example(use.Of(this), out failure), failure);
            }
        }

        /// <summary>Writes what is left and puts the file into place. Once; the writer takes no records
        /// afterwards.</summary>
        public void Finish()
        {
            using (var use = new Uses())
            {
                IntPtr failure;
                Errors.Check(Raw.record_writer_close(use.Of(this), out failure), failure);
            }
        }
    }
}
