// SPDX-License-Identifier: Apache-2.0
namespace Tutti.Tests
{
    // The maps of the pipelines text_ops, image_ops and image_mixes: tests/bindings/scenarios.txt says what they are.
    // Each op gives a component of its name, but those that decode: image and photo.
    internal static class ScenarioDataOps
    {
        private static Value Part(Graph g, Value text, long start, long length, BytesSubstringUnit unit)
        {
            return g.BytesSubstring(text, new BytesSubstringOptions { Start = start, Length = length, Unit = unit });
        }

        public static void Texts(Graph g)
        {
            Value text = g.GetFeature("text");
            var three = new BytesSplitOptions { Separator = " ", SkipEmpty = true, Count = 3 };
            Value words = g.BytesSplit(text, three);
            var characters = new BytesLengthOptions { Unit = BytesLengthUnit.Characters };
            g.SetOutput("bytes_length", g.BytesLength(text, characters));
            g.SetOutput("bytes_substring", Part(g, text, 1, 3, BytesSubstringUnit.Characters));
            g.SetOutput("bytes_split", words);
            g.SetOutput("bytes_lower", g.BytesLower(text));
            g.SetOutput("bytes_join", g.BytesJoin(words, new BytesJoinOptions { Separator = "+" }));
            Value digits = Part(g, text, -3, 3, BytesSubstringUnit.Bytes);
            g.SetOutput("bytes_to_number", g.BytesToNumber(digits, new BytesToNumberOptions { Dtype = DType.Int64 }));
            var big = new BytesToValuesOptions
            {
                Dtype = DType.Int64,
                Count = 1,
                ByteOrder = BytesToValuesByteOrder.Big,
            };
            g.SetOutput("bytes_to_values", g.BytesToValues(Part(g, text, 0, 8, BytesSubstringUnit.Bytes), big));
            g.SetOutput("bytes_hash_bucket", g.BytesHashBucket(text, 1000, new BytesHashBucketOptions { Salt = 3 }));
        }

        public static void Images(Graph g)
        {
            Value file = g.GetFeature("image"), photo = g.GetFeature("photo");
            Value pixels = g.DecodePng(file), size = g.ImageSize(photo);
            var border = new CropOptions { Size = new[] { 1L, 2L }, Offset = new[] { 3L, 7L } };
            g.SetOutput("photo", g.Crop(g.DecodeJpeg(photo), border));
            g.SetOutput("image", g.DecodeImage(file));
            g.SetOutput("image_size", size);
            Shapes(g, pixels);
            Colors(g, pixels);
            Draws(g, pixels, Plain(g, photo));
            var whole = new RandomCropWindowOptions { Area = new[] { 1.0, 1.0 }, Aspect = new[] { 2.0, 2.0 } };
            g.SetOutput("random_crop_window", g.RandomCropWindow(size, whole));
        }

        // 2 x 2 pixels of one gray, the level 40.
        private static Value Plain(Graph g, Value photo)
        {
            return g.Crop(g.DecodeJpeg(photo), new CropOptions { Size = new[] { 2L, 2L } });
        }

        private static void Shapes(Graph g, Value pixels)
        {
            var corner = new CropOptions { Size = new[] { 1L, 2L }, Offset = new[] { 1L, 1L } };
            g.SetOutput("crop", g.Crop(pixels, corner));
            var edge = new PadImageOptions { Mode = PadImageMode.Edge };
            g.SetOutput("pad_image", g.PadImage(pixels, new[] { 1L, 0L, 1L, 0L }, edge));
            g.SetOutput("flip", g.Flip(pixels, new FlipOptions { Direction = FlipDirection.Vertical }));
            g.SetOutput("rotate90", g.Rotate90(pixels));
            g.SetOutput("rotate", g.Rotate(pixels, 180, new RotateOptions { Method = RotateMethod.Nearest }));
        }

        private static void Colors(Graph g, Value pixels)
        {
            var normal = new NormalizeImageOptions
            {
                Mean = new[] { 10.0, 20.0, 30.0 },
                Stddev = new[] { 2.0, 4.0, 8.0 },
                Scale = 0.5,
            };
            g.SetOutput("convert_image_dtype", g.ConvertImageDtype(pixels));
            g.SetOutput("normalize_image", g.NormalizeImage(pixels, normal));
            g.SetOutput("adjust_brightness", g.AdjustBrightness(pixels, 0.2));
            g.SetOutput("adjust_contrast", g.AdjustContrast(pixels, 2));
            g.SetOutput("adjust_saturation", g.AdjustSaturation(pixels, 0.5));
            g.SetOutput("adjust_hue", g.AdjustHue(pixels, 0.3));
        }

        // What is the same whatever is drawn.
        private static void Draws(Graph g, Value pixels, Value plain)
        {
            Value column = g.Crop(pixels, new CropOptions { Size = new[] { 2L, 1L } });
            var edge = new PadImageOptions { Mode = PadImageMode.Edge };
            Value striped = g.PadImage(column, new[] { 0L, 0L, 1L, 2L }, edge);
            var mirrored = new RandomResizedCropOptions
            {
                Area = new[] { 1.0, 1.0 },
                Aspect = new[] { 1.5, 1.5 },
                FlipProbability = 1,
            };
            var jitter = new RandomColorJitterOptions { Contrast = 0.5, Saturation = 0.5, Hue = 0.25 };
            g.SetOutput("random_crop", g.RandomCrop(striped, new[] { 2L, 2L }));
            g.SetOutput("random_rotate", g.RandomRotate(plain, 90, new RandomRotateOptions { Value = 40 }));
            g.SetOutput("random_resized_crop", g.RandomResizedCrop(pixels, new[] { 2L, 3L }, mirrored));
            var seven = new RandomCutoutOptions { Value = 7 };
            g.SetOutput("random_cutout", g.RandomCutout(pixels, new[] { 6L, 8L }, seven));
            g.SetOutput("random_color_jitter", g.RandomColorJitter(plain, jitter));
        }

        // Gray pixels and a target, of which Mixes mixes those of a batch.
        public static void PlainImages(Graph g)
        {
            g.SetOutput("photo", g.ConvertImageDtype(Plain(g, g.GetFeature("photo"))));
            g.SetOutput("target", g.OneHot(g.GetFeature("id"), 3));
        }

        public static void Mixes(Graph g)
        {
            Value photo = g.GetFeature("photo"), target = g.GetFeature("target");
            var all = new ReduceSumOptions { Axes = new[] { 1L } };
            (Value blended, Value blendedTargets) = g.Mixup(photo, target, new MixupOptions { Alpha = 0.5 });
            g.SetOutput("mixup", blended);
            g.SetOutput("mixup_targets", g.ReduceSum(blendedTargets, all));
            (Value pasted, Value pastedTargets) = g.Cutmix(photo, target);
            g.SetOutput("cutmix", pasted);
            g.SetOutput("cutmix_targets", g.ReduceSum(pastedTargets, all));
        }
    }
}
