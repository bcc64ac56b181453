// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;
import java.util.Locale;

/** Where the time of training steps went; steps that programs were built for do not count. Shares are from 0 to 1.
 *
 * @param steps how many were measured
 * @param replicas how many train, those of other processes included
 * @param programs how many programs were built for training until now; more only where a shape is new
 * @param stepSeconds the time of a step
 * @param compute the share of computing
 * @param input the share of waiting for input
 * @param communication the share of communication, and of waiting for slower processes
 * @param imbalance the share of waiting for slower replicas of this process
 * @param efficiency the replicas' speed over that of as many that wait for nothing; NaN with one replica
 * @param devices each device of this process
 * @param json the library's text
 */
public record StepReport(long steps, long replicas, long programs, double stepSeconds, double compute,
    double input, double communication, double imbalance, double efficiency, List<Device> devices, String json) {
    /** What a device did.
     *
     * @param device its name
     * @param utilisation the share in which it computed
     * @param idle the others: the sum of the three behind it
     * @param input the share of waiting for input
     * @param communication the share of communication
     * @param imbalance the share of waiting for slower replicas
     */
    public record Device(String device, double utilisation, double idle, double input, double communication,
        double imbalance) {
        static Device of(Json json) {
            return new Device(json.text("device"), json.number("utilisation"), json.number("idle"),
                json.number("input"), json.number("communication"), json.number("imbalance"));
        }
    }

    /** None where the library has none. */
    static @Nullable StepReport of(String text) {
        if (text.isEmpty()) {
            return null;
        }
        Json json = Json.parse("step report", text);
        return new StepReport(json.integer("steps"), json.integer("replicas"), json.integer("programs"),
            json.number("step_seconds"),
            json.number("compute"), json.number("input"), json.number("communication"), json.number("imbalance"),
            json.numberOrNan("efficiency"), json.list("devices", Device::of), text);
    }

    @Override
    public String toString() {
        return String.format(Locale.ROOT,
            "%d steps of %.3g s: compute %.0f %%, input %.0f %%, communication %.0f %%, imbalance %.0f %%", steps,
            stepSeconds, 100 * compute, 100 * input, 100 * communication, 100 * imbalance);
    }
}
