"""The OpenCV side of `cargo xtask bench`: reads one command a line, answers with the best time in milliseconds.

image NAME FILE                      loads an array under a name
threads N
gauss NAME SIZE SIGMA                SIZE 0: chosen by OpenCV from SIGMA; SIGMA 0: chosen from SIZE
sobel NAME X Y
filter NAME KERNEL
integral NAME
resize NAME FACTOR nearest|linear|area
warp NAME linear|cubic|lanczos H11 H12 .. H33    from output to input
count NAME                           answers how many features SIFT finds
sift NAME                            detect and describe; answers "ms features"
match NAME NAME                      descriptors, one way, two nearest neighbours
sgbm LEFT RIGHT DISPARITIES hh|hh4|3way

The output arrays are used again from call to call where OpenCV can (dst=).
"""

import sys
import time

import cv2
import numpy as np

images = {}


def best(call, seconds=0.4, least=3):
    """The shortest of at least `least` calls and about `seconds` in all, in milliseconds."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def image(name, file):
    images[name] = np.load(file)
    return "loaded"


def threads(n):
    cv2.setNumThreads(int(n))
    return cv2.__version__


def gauss(name, size, sigma):
    image = images[name]
    out = np.empty_like(image)
    size = (int(size), int(size))
    return best(lambda: cv2.GaussianBlur(image, size, float(sigma), dst=out, borderType=cv2.BORDER_REPLICATE))


def sobel(name, x, y):
    image = images[name]
    kind, depth = (np.int16, cv2.CV_16S) if image.dtype == np.uint8 else (np.float32, cv2.CV_32F)
    out = np.empty(image.shape, kind)
    return best(lambda: cv2.Sobel(image, depth, int(x), int(y), dst=out, borderType=cv2.BORDER_REPLICATE))


def filter2d(name, kernel):
    image, kernel = images[name], images[kernel]
    out = np.empty_like(image)
    return best(lambda: cv2.filter2D(image, -1, kernel, dst=out, borderType=cv2.BORDER_REPLICATE))


def integral(name):
    image = images[name]
    out = np.empty((image.shape[0] + 1, image.shape[1] + 1), np.int32)
    return best(lambda: cv2.integral(image, out, cv2.CV_32S))


def resize(name, factor, how):
    image, factor = images[name], float(factor)
    how = {"nearest": cv2.INTER_NEAREST, "linear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}[how]
    out = cv2.resize(image, None, fx=factor, fy=factor, interpolation=how)
    size = out.shape[::-1]
    return best(lambda: cv2.resize(image, size, dst=out, interpolation=how))


def warp(name, how, *matrix):
    image, matrix = images[name], np.array(matrix, float).reshape(3, 3)
    out, size = np.empty_like(image), image.shape[::-1]
    how = {"linear": cv2.INTER_LINEAR, "cubic": cv2.INTER_CUBIC, "lanczos": cv2.INTER_LANCZOS4}[how]
    flags = how | cv2.WARP_INVERSE_MAP
    return best(lambda: cv2.warpPerspective(image, matrix, size, dst=out, flags=flags))


def detector():
    return cv2.SIFT_create(enable_precise_upscale=True)


def count(name):
    return len(detector().detectAndCompute(images[name], None)[0])


def sift(name):
    kept, image = detector(), images[name]
    return f"{best(lambda: kept.detectAndCompute(image, None))} {count(name)}"


def match(a, b):
    matcher, a, b = cv2.BFMatcher(cv2.NORM_L2), images[a], images[b]
    return best(lambda: matcher.knnMatch(a, b, k=2))


def sgbm(left, right, disparities, mode):
    mode = {"hh": cv2.StereoSGBM_MODE_HH, "hh4": cv2.StereoSGBM_MODE_HH4, "3way": cv2.StereoSGBM_MODE_SGBM_3WAY}[mode]
    kept = cv2.StereoSGBM_create(0, int(disparities), 3, 72, 288, 1, 63, 10, 100, 2, mode)
    left, right = images[left], images[right]
    return best(lambda: kept.compute(left, right))


COMMANDS = {f.__name__: f for f in (image, threads, gauss, sobel, integral, resize, warp, count, sift, match, sgbm)}
COMMANDS["filter"] = filter2d

for line in sys.stdin:
    command, *arguments = line.split()
    print(COMMANDS[command](*arguments), flush=True)
