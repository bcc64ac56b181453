// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;
using System.Threading;

namespace Tutti
{
    /// <summary>What kind of error it is: the canonical codes, as gRPC and Abseil number them.</summary>
    public enum ErrorCode
    {
        /// <summary>The call was cancelled.</summary>
        Cancelled = Raw.CANCELLED,
        /// <summary>An error of which no more is known.</summary>
        Unknown = Raw.UNKNOWN,
        /// <summary>An argument is wrong, whatever the state.</summary>
        InvalidArgument = Raw.INVALID_ARGUMENT,
        /// <summary>A deadline passed.</summary>
        DeadlineExceeded = Raw.DEADLINE_EXCEEDED,
        /// <summary>A file, device, variable or name does not exist.</summary>
        NotFound = Raw.NOT_FOUND,
        /// <summary>Something of that name exists.</summary>
        AlreadyExists = Raw.ALREADY_EXISTS,
        /// <summary>The system forbids it.</summary>
        PermissionDenied = Raw.PERMISSION_DENIED,
        /// <summary>Memory, disk or another resource ran out.</summary>
        ResourceExhausted = Raw.RESOURCE_EXHAUSTED,
        /// <summary>The object is not in a state for that.</summary>
        FailedPrecondition = Raw.FAILED_PRECONDITION,
        /// <summary>Something stopped in the middle, such as by an exception of a callback.</summary>
        Aborted = Raw.ABORTED,
        /// <summary>An index or value is out of its range.</summary>
        OutOfRange = Raw.OUT_OF_RANGE,
        /// <summary>The library does not do that.</summary>
        Unimplemented = Raw.UNIMPLEMENTED,
        /// <summary>A fault of the library.</summary>
        Internal = Raw.INTERNAL,
        /// <summary>A service, a backend or the library itself cannot be reached.</summary>
        Unavailable = Raw.UNAVAILABLE,
        /// <summary>Data are damaged.</summary>
        DataLoss = Raw.DATA_LOSS,
        /// <summary>Credentials are missing.</summary>
        Unauthenticated = Raw.UNAUTHENTICATED,
    }

    /// <summary>An error of the library. What led to it is <see cref="Exception.InnerException"/>: another
    /// TuttiException, or the very exception that a callback threw.</summary>
    public sealed class TuttiException : Exception
    {
        private static readonly KeyValuePair<string, string>[] NoDetails = new KeyValuePair<string, string>[0];

        /// <summary>Makes an exception, for callbacks that report an error with a code.</summary>
        public TuttiException(ErrorCode code, string message, Exception innerException = null)
            : this(code, message, innerException, "user", 0, NoDetails)
        {
        }

        internal TuttiException(ErrorCode code, string message, Exception innerException, string domain, long subcode,
            IReadOnlyList<KeyValuePair<string, string>> details)
            : base(Describe(code, message, details), innerException)
        {
            Code = code;
            Reason = message;
            Domain = domain;
            Subcode = subcode;
            Details = details;
        }

        /// <summary>What kind of error it is.</summary>
        public ErrorCode Code { get; private set; }

        /// <summary>What was wrong, without code, details and causes.</summary>
        public string Reason { get; private set; }

        /// <summary>A number that means something in the domain, such as an errno; 0 = none.</summary>
        public long Subcode { get; private set; }

        /// <summary>Who reports: "tutti", "user" for callbacks, or a library.</summary>
        public string Domain { get; private set; }

        /// <summary>What is told beside the message, such as ("node", "dense_1/matmul").</summary>
        public IReadOnlyList<KeyValuePair<string, string>> Details { get; private set; }

        /// <summary>The whole story as JSON on one line, for logs: code, domain, message, and where there are any,
        /// subcode, details and cause.</summary>
        public string ToJson()
        {
            var text = new StringBuilder("{\"code\":" + Quoted(Raw.code_get_name((int)Code)) + ",\"domain\":" +
                Quoted(Domain) + ",\"message\":" + Quoted(Reason));
            if (Subcode != 0)
                text.Append(",\"subcode\":").Append(Subcode.ToString(CultureInfo.InvariantCulture));
            if (Details.Count > 0)
            {
                text.Append(",\"details\":{");
                text.Append(string.Join(",", Details.Select(one => Quoted(one.Key) + ":" + Quoted(one.Value))));
                text.Append("}");
            }
            var cause = InnerException as TuttiException;
            if (cause != null)
                text.Append(",\"cause\":" + cause.ToJson());
            else if (InnerException != null) // of a callback
                text.Append(",\"cause\":{\"code\":" + Quoted(Raw.code_get_name((int)Errors.CodeOf(InnerException))) +
                    ",\"domain\":\"user\",\"message\":" + Quoted(InnerException.Message) + "}");
            return text.Append("}").ToString();
        }

        private static string Quoted(string text)
        {
            var quoted = new StringBuilder("\"");
            foreach (char letter in text)
            {
                if (letter == '"' || letter == '\\')
                    quoted.Append('\\').Append(letter);
                else if (letter < ' ')
                    quoted.Append("\\u" + ((int)letter).ToString("x4", CultureInfo.InvariantCulture));
                else
                    quoted.Append(letter);
            }
            return quoted.Append('"').ToString();
        }

        internal static TuttiException Ours(ErrorCode code, string message, Exception innerException = null)
        {
            return new TuttiException(code, message, innerException, "tutti", 0, NoDetails);
        }

        private static string Describe(ErrorCode code, string message,
            IEnumerable<KeyValuePair<string, string>> details)
        {
            string shown = string.Concat(details.Select(d => " [" + d.Key + ": " + d.Value + "]"));
            return message + shown + " (" + code + ")";
        }
    }

    // Exceptions cross C as errors whose domain is Marker and a number; the exceptions themselves wait here. The newest
    // are kept, because one may be reported by several calls or by none.
    internal static class Errors
    {
        private const string Marker = "csharp:";
        private const int KeptCount = 1024;

        // A feed's error has no domain of its own but a number of 32 bits: its low bits are those of the key, above the
        // codes.
        private const int FeedErrors = 1 << 30;
        private static readonly Dictionary<long, Exception> Kept = new Dictionary<long, Exception>();
        private static long last; // guarded by Kept

        public static void Check(int code, IntPtr failure)
        {
            if (code != Raw.OK)
                throw FromC(code, failure);
        }

        // Makes an exception of a C error, which it takes.
        public static TuttiException FromC(int code, IntPtr failure)
        {
            if (failure == IntPtr.Zero)
                return TuttiException.Ours((ErrorCode)code, "an error without a description");
            try
            {
                Exception original;
                TuttiException error = Read(failure, out original);
                if (original == null)
                    return error;
                return new TuttiException(error.Code, error.Reason, original);
            }
            finally
            {
                Raw.error_unref(failure);
            }
        }

        // Makes a C error of an exception, with a code of its own or this one; the caller owns it.
        public static int ToC(Exception exception, out IntPtr failure, ErrorCode? wanted = null)
        {
            IntPtr none;
            int code = (int)(wanted ?? CodeOf(exception));
            string domain = Marker + Keep(exception).ToString(CultureInfo.InvariantCulture);
            Raw.error_create(code, domain, Describe(exception), IntPtr.Zero, out failure, out none);
            Raw.error_unref(none);
            return code;
        }

        public static int FeedNumber(Exception exception)
        {
            return (int)(FeedErrors | Keep(exception) % FeedErrors);
        }

        // An exception's text on one line. One whose properties throw must not do so below C frames.
        public static string Describe(Exception exception)
        {
            string name = exception.GetType().Name;
            try
            {
                return (name + ": " + exception.Message).Replace('\n', ' ').Replace('\r', ' ');
            }
            catch (Exception)
            {
                return name + ", which has no text";
            }
        }

        internal static ErrorCode CodeOf(Exception exception)
        {
            var ours = exception as TuttiException;
            if (ours != null && (int)ours.Code > 0)
                return ours.Code;
            return exception is OperationCanceledException ? ErrorCode.Cancelled : ErrorCode.Aborted;
        }

        private static long Keep(Exception exception)
        {
            lock (Kept)
            {
                Kept[++last] = exception;
                Kept.Remove(last - KeptCount);
                return last;
            }
        }

        // Makes an exception of a C error that is lent; original is what the program threw, when it is such an error.
        private static TuttiException Read(IntPtr failure, out Exception original)
        {
            IntPtr cause = Raw.error_get_cause(failure);
            Exception inner = null;
            if (cause != IntPtr.Zero)
            {
                Exception thrown;
                TuttiException read = Read(cause, out thrown);
                inner = thrown ?? read;
            }
            string domain = Raw.error_get_domain(failure);
            long subcode = Raw.error_get_subcode(failure);
            original = Original(domain, subcode);
            if (domain.StartsWith(Marker, StringComparison.Ordinal))
                domain = "user";
            var code = (ErrorCode)Raw.error_get_code(failure);
            if (code == ErrorCode.Unknown && inner != null)
                code = CodeOf(inner); // a feed's error has our number in place of a code
            return new TuttiException(code, Raw.error_get_message(failure), inner, domain, subcode,
                DetailsOf(failure));
        }

        private static KeyValuePair<string, string>[] DetailsOf(IntPtr failure)
        {
            var details = new KeyValuePair<string, string>[Raw.error_get_detail_count(failure)];
            for (int i = 0; i < details.Length; i++)
            {
                details[i] = new KeyValuePair<string, string>(Raw.error_get_detail_key(failure, i),
                    Raw.error_get_detail_value(failure, i));
            }
            return details;
        }

        private static Exception Original(string domain, long subcode)
        {
            long key = 0;
            lock (Kept)
            {
                if (domain.StartsWith(Marker, StringComparison.Ordinal))
                    long.TryParse(domain.Substring(Marker.Length), out key);
                else if (domain == "user" && subcode >= FeedErrors)
                    key = last - (last - subcode % FeedErrors) % FeedErrors;
                Exception original;
                Kept.TryGetValue(key, out original);
                return original;
            }
        }
    }
}
