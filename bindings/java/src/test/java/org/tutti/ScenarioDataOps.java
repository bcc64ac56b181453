// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/**
 * The maps of the pipelines text_ops, image_ops and image_mixes: tests/bindings/scenarios.txt says what they are.
 * Each op gives a component of its name, but those that decode: image and photo.
 */
final class ScenarioDataOps {
    private ScenarioDataOps() {}

    private static Value part(Graph g, Value text, long start, long length, BytesSubstringUnit unit) {
        return g.bytesSubstring(text, new BytesSubstringOptions().start(start).length(length).unit(unit));
    }

    static void texts(Graph g) {
        Value text = g.feature("text");
        Value words = g.bytesSplit(text, new BytesSplitOptions().separator(" ").skipEmpty(true).count(3));
        g.output("bytes_length", g.bytesLength(text, new BytesLengthOptions().unit(BytesLengthUnit.CHARACTERS)));
        g.output("bytes_substring", part(g, text, 1, 3, BytesSubstringUnit.CHARACTERS));
        g.output("bytes_split", words);
        g.output("bytes_lower", g.bytesLower(text));
        g.output("bytes_join", g.bytesJoin(words, new BytesJoinOptions().separator("+")));
        Value digits = part(g, text, -3, 3, BytesSubstringUnit.BYTES);
        g.output("bytes_to_number", g.bytesToNumber(digits, new BytesToNumberOptions().dtype(DType.INT64)));
        BytesToValuesOptions big =
            new BytesToValuesOptions().dtype(DType.INT64).count(1).byteOrder(BytesToValuesByteOrder.BIG);
        g.output("bytes_to_values", g.bytesToValues(part(g, text, 0, 8, BytesSubstringUnit.BYTES), big));
        g.output("bytes_hash_bucket", g.bytesHashBucket(text, 1000, new BytesHashBucketOptions().salt(3)));
    }

    static void images(Graph g) {
        Value file = g.feature("image");
        Value photo = g.feature("photo");
        Value pixels = g.decodePng(file);
        Value size = g.imageSize(photo);
        g.output("photo", g.crop(g.decodeJpeg(photo), new CropOptions().size(1, 2).offset(3, 7)));
        g.output("image", g.decodeImage(file));
        g.output("image_size", size);
        shapes(g, pixels);
        colors(g, pixels);
        draws(g, pixels, plain(g, photo));
        RandomCropWindowOptions whole = new RandomCropWindowOptions().area(1, 1).aspect(2, 2);
        g.output("random_crop_window", g.randomCropWindow(size, whole));
    }

    /** 2 x 2 pixels of one gray, the level 40. */
    private static Value plain(Graph g, Value photo) {
        return g.crop(g.decodeJpeg(photo), new CropOptions().size(2, 2));
    }

    private static void shapes(Graph g, Value pixels) {
        g.output("crop", g.crop(pixels, new CropOptions().size(1, 2).offset(1, 1)));
        PadImageOptions edge = new PadImageOptions().mode(PadImageMode.EDGE);
        g.output("pad_image", g.padImage(pixels, new long[] {1, 0, 1, 0}, edge));
        g.output("flip", g.flip(pixels, new FlipOptions().direction(FlipDirection.VERTICAL)));
        g.output("rotate90", g.rotate90(pixels));
        g.output("rotate", g.rotate(pixels, 180, new RotateOptions().method(RotateMethod.NEAREST)));
    }

    private static void colors(Graph g, Value pixels) {
        NormalizeImageOptions normal = new NormalizeImageOptions().mean(10, 20, 30).stddev(2, 4, 8).scale(0.5);
        g.output("convert_image_dtype", g.convertImageDtype(pixels));
        g.output("normalize_image", g.normalizeImage(pixels, normal));
        g.output("adjust_brightness", g.adjustBrightness(pixels, 0.2));
        g.output("adjust_contrast", g.adjustContrast(pixels, 2));
        g.output("adjust_saturation", g.adjustSaturation(pixels, 0.5));
        g.output("adjust_hue", g.adjustHue(pixels, 0.3));
    }

    /** What is the same whatever is drawn. */
    private static void draws(Graph g, Value pixels, Value plain) {
        PadImageOptions edge = new PadImageOptions().mode(PadImageMode.EDGE);
        Value column = g.crop(pixels, new CropOptions().size(2, 1));
        Value striped = g.padImage(column, new long[] {0, 0, 1, 2}, edge);
        RandomResizedCropOptions mirrored =
            new RandomResizedCropOptions().area(1, 1).aspect(1.5, 1.5).flipProbability(1);
        RandomColorJitterOptions jitter = new RandomColorJitterOptions().contrast(0.5).saturation(0.5).hue(0.25);
        g.output("random_crop", g.randomCrop(striped, new long[] {2, 2}));
        g.output("random_rotate", g.randomRotate(plain, 90, new RandomRotateOptions().value(40)));
        g.output("random_resized_crop", g.randomResizedCrop(pixels, new long[] {2, 3}, mirrored));
        RandomCutoutOptions seven = new RandomCutoutOptions().value(7);
        g.output("random_cutout", g.randomCutout(pixels, new long[] {6, 8}, seven));
        g.output("random_color_jitter", g.randomColorJitter(plain, jitter));
    }

    /** Gray pixels and a target, of which mixes() mixes those of a batch. */
    static void plainImages(Graph g) {
        g.output("photo", g.convertImageDtype(plain(g, g.feature("photo"))));
        g.output("target", g.oneHot(g.feature("id"), 3));
    }

    static void mixes(Graph g) {
        Value photo = g.feature("photo");
        Value target = g.feature("target");
        MixupValues blended = g.mixup(photo, target, new MixupOptions().alpha(0.5));
        g.output("mixup", blended.mixed());
        g.output("mixup_targets", g.reduceSum(blended.mixedTargets(), new ReduceSumOptions().axes(1)));
        CutmixValues pasted = g.cutmix(photo, target);
        g.output("cutmix", pasted.mixed());
        g.output("cutmix_targets", g.reduceSum(pasted.mixedTargets(), new ReduceSumOptions().axes(1)));
    }
}
