// SPDX-License-Identifier: Apache-2.0
/**
 * tutti trains neural networks on every device there is, and predicts on all of them. The native library comes from the
 * system or from the module of natives for this machine, which is found on the module path without being named.
 */
module org.tutti {
    exports org.tutti;

    uses org.tutti.NativeFiles;
}
