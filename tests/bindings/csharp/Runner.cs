// SPDX-License-Identifier: Apache-2.0
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Reflection;
using System.Threading;

namespace Tutti.Tests
{
    // A static method that is a test.
    [AttributeUsage(AttributeTargets.Method)]
    internal sealed class TestAttribute : Attribute
    {
        // It leaves objects to the collector, which reads stacks with caution: a few of them may seem to be held.
        public bool Forgets { get; set; }
    }

    // Says that a test cannot be run here.
    internal sealed class SkipException : Exception
    {
        public SkipException(string reason) : base(reason)
        {
        }
    }

    internal static class Check
    {
        public static void True(bool claim, string what)
        {
            if (!claim)
                throw new InvalidOperationException("not true: " + what);
        }

        public static void Equal<T>(T wanted, T found, string what = "")
        {
            if (!EqualityComparer<T>.Default.Equals(wanted, found))
                throw new InvalidOperationException(what + ": wanted " + wanted + ", found " + found);
        }

        public static void Same<T>(IEnumerable<T> wanted, IEnumerable<T> found, string what = "")
        {
            Equal(string.Join(" ", wanted), string.Join(" ", found), what);
        }

        public static T Throws<T>(Action action) where T : Exception
        {
            try
            {
                action();
            }
            catch (T e)
            {
                return e;
            }
            throw new InvalidOperationException("no " + typeof(T).Name + " was thrown");
        }

        public static TuttiException Fails(ErrorCode code, Action action)
        {
            var error = Throws<TuttiException>(action);
            Equal(code, error.Code, error.Message);
            return error;
        }

        // Waits for something that another thread brings about.
        public static void Eventually(Func<bool> claim, string what)
        {
            Stopwatch clock = Stopwatch.StartNew();
            while (!claim())
            {
                True(clock.Elapsed < Program.Deadline, what);
                Thread.Sleep(1);
            }
        }

        public static bool Holds(Exception error, Exception thrown)
        {
            for (; error != null; error = error.InnerException)
            {
                if (ReferenceEquals(error, thrown))
                    return true;
            }
            return false;
        }
    }

    // usage: Tests.exe CLASS [METHOD]      runs the tests of a class; exit status 77 when all were skipped
    //        Tests.exe scenarios FILE      does scenarios as one of several processes, and prints their results
    internal static class Program
    {
        public static readonly TimeSpan Deadline = TimeSpan.FromSeconds(100);
        public static readonly bool IsMono = Type.GetType("Mono.Runtime") != null;

        // What runs this program anew.
        public static string[] Command(string argument)
        {
            string runtime = Environment.GetEnvironmentVariable("TUTTI_DOTNET");
            return new[] { IsMono ? "mono" : runtime, Assembly.GetExecutingAssembly().Location, argument };
        }

        private static readonly string[] Types =
        {
            "batch", "cancel", "context", "dataset", "error", "estimator", "feed", "hooks", "iterator", "options",
            "pipeline", "prediction_stream", "predictor", "result", "session", "strategy", "tensor",
        };

        private static int Main(string[] arguments)
        {
            if (arguments[0] == "exit-while-training")
                return Stress.TrainAndLeave();
            if (arguments[0] == "serve")
                return Maps.Serve();
            if (arguments[0] == "scenarios")
                return Scenarios.RunAsWorker(arguments[1]);
            if (arguments[0] == "measure")
                return Measurements.Run();
            Type tests = Type.GetType("Tutti.Tests." + arguments[0], true);
            MethodInfo[] methods = tests.GetMethods(BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic)
                .Where(m => m.IsDefined(typeof(TestAttribute), false))
                .Where(m => arguments.Length < 2 || m.Name == arguments[1]).ToArray();
            int failed = 0, skipped = 0;
            foreach (MethodInfo method in methods)
            {
                string outcome = Outcome(method);
                failed += outcome.StartsWith("FAILED") ? 1 : 0;
                skipped += outcome.StartsWith("skipped") ? 1 : 0;
                Console.WriteLine(method.Name + ": " + outcome);
            }
            if (methods.Length == 0)
                Console.WriteLine("FAILED: no such test");
            return failed > 0 || methods.Length == 0 ? 1 : skipped == methods.Length ? 77 : 0;
        }

        private static string Outcome(MethodInfo method)
        {
            // What lies on the stack of the test's thread, whatever it was, would not be collected: it ends first.
            string outcome = null;
            var thread = new Thread(() => outcome = Run(method)) { IsBackground = true };
            long before = Library.LiveObjects();
            thread.Start();
            if (!thread.Join(Deadline + Deadline))
            {
                Console.WriteLine(method.Name + ": FAILED: it does not end");
                Console.Out.Flush();
                Environment.Exit(1);
            }
            return outcome ?? Left(before + Tolerance(method)) ?? "ok";
        }

        private static int Tolerance(MethodInfo method)
        {
            const int Few = 16;
            var test = (TestAttribute)method.GetCustomAttributes(typeof(TestAttribute), false)[0];
            return test.Forgets ? Few : 0;
        }

        // What a test forgot the collector must close.
        private static string Left(long most)
        {
            Stopwatch clock = Stopwatch.StartNew();
            while (Library.LiveObjects() > most)
            {
                if (clock.Elapsed > Deadline)
                {
                    IEnumerable<string> alive = Types.Select(type => type + " " + Library.LiveObjects(type));
                    return "FAILED: alive are " + string.Join(", ", alive);
                }
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
            return null;
        }

        private static string Run(MethodInfo method)
        {
            try
            {
                ((Action)Delegate.CreateDelegate(typeof(Action), method))();
                return null;
            }
            catch (SkipException e)
            {
                return "skipped: " + e.Message;
            }
            catch (Exception e)
            {
                return "FAILED: " + e;
            }
        }
    }
}
