// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** What the library is and can do. */
public final class Tutti {
    private Tutti() {}

    /** The library's version.
     *
     * @return such as "0.1.0"
     */
    public static String version() {
        return Raw.version();
    }

    /** Version, compiler, backends and the libraries they use.
     *
     * @return how the library was built
     */
    public static BuildInfo buildInfo() {
        return BuildInfo.of(Raw.build_info());
    }

    /** Whether the library was built with a feature.
     *
     * @param feature "backend:cpu", "format:idx", "op:conv2d", ...
     * @return true when it was
     */
    public static boolean hasFeature(String feature) {
        return Raw.has_feature(feature);
    }

    /** Why a backend cannot be used here.
     *
     * @param backend such as "cpu"
     * @return one sentence; null when it can
     */
    public static @Nullable String whyUnavailable(String backend) {
        return Raw.why_unavailable(backend);
    }

    /** How many of the library's objects are alive, for leak tests.
     *
     * @return their number
     */
    public static long liveObjects() {
        return Raw.debug_live_objects(null);
    }

    /** How many of the library's objects of a type are alive, for leak tests.
     *
     * @param type "tensor", "dataset", ...
     * @return their number
     */
    public static long liveObjects(String type) {
        return Raw.debug_live_objects(type);
    }
}
