// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a device is.
 *
 * @param name such as "cpu:0"
 * @param backend what computes on it
 * @param kind what it is in a word
 * @param memoryBytes how much memory may be used; 0 = not limited
 * @param description what it is in words
 * @param reaches devices whose memory it reads without the host's help; none where all share the host's
 * @param memory the name of its memory; devices with equal ones share it
 * @param libraries what its backend makes use of: by name a version, or "is missing: " and why
 * @param json the library's text, which has more
 */
public record DeviceDescription(String name, String backend, String kind, long memoryBytes, String description,
    List<String> reaches, String memory, Map<String, String> libraries, String json) {
    static DeviceDescription of(String text) {
        Json json = Json.parse("device", text);
        return new DeviceDescription(json.text("name"), json.text("backend"), json.text("kind"),
            json.integer("memory_bytes"), json.text("description"), json.list("reaches", Json::text),
            json.text("memory"), librariesOf(json), text);
    }

    private static Map<String, String> librariesOf(Json json) {
        Map<String, String> libraries = new LinkedHashMap<>();
        if (json.has("libraries")) {
            Json all = json.get("libraries");
            all.keys().forEach(name -> libraries.put(name, all.get(name).shown()));
        }
        return Map.copyOf(libraries);
    }

    @Override
    public String toString() {
        return name + ": " + description;
    }
}
