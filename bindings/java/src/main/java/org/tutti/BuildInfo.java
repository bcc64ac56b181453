// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** How the library was built.
 *
 * @param version its version
 * @param abi the version of its interface
 * @param buildId tells builds from each other
 * @param compiler what compiled it
 * @param backends what is linked in
 * @param json the library's text
 */
public record BuildInfo(String version, String abi, String buildId, String compiler, List<String> backends,
    String json) {
    static BuildInfo of(String text) {
        Json json = Json.parse("build", text);
        return new BuildInfo(json.text("version"), json.text("abi"), json.text("build_id"), json.text("compiler"),
            json.list("backends", Json::text), text);
    }

    @Override
    public String toString() {
        return "tutti " + version + " of " + compiler + " with " + backends;
    }
}
