"""The OpenCV side of `cargo xtask bench`: reads one command a line, answers with the best time in milliseconds.

image NAME FILE TYPE WIDTH HEIGHT    loads raw pixels under a name
threads N
gauss NAME SIZE SIGMA                SIZE 0: chosen by OpenCV from SIGMA; SIGMA 0: chosen from SIZE
sobel NAME X Y
sift NAME                            detect and describe; answers "ms keypoints"
match N M                            random 8-bit descriptors of 128 values, one way, two nearest neighbours

The output arrays are reused from call to call where OpenCV can (dst=).
"""

import sys
import time

import cv2
import numpy as np

images = {}


def best(call, seconds=0.4, least=5):
    """The shortest of at least `least` calls and about `seconds` in all, in milliseconds."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


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


def sift(name):
    detector = cv2.SIFT_create(enable_precise_upscale=True)
    image = images[name]
    count = len(detector.detectAndCompute(image, None)[0])
    return f"{best(lambda: detector.detectAndCompute(image, None), 1.0, 3)} {count}"


def match(n, m):
    random = np.random.default_rng(1)
    a, b = (random.integers(0, 256, (int(k), 128)).astype(np.float32) for k in (n, m))
    matcher = cv2.BFMatcher(cv2.NORM_L2)
    return best(lambda: matcher.knnMatch(a, b, k=2), 0.1, 3)


for line in sys.stdin:
    command, *arguments = line.split()
    if command == "image":
        name, file, kind, width, height = arguments
        images[name] = np.fromfile(file, kind).reshape(int(height), int(width))
        answer = "loaded"
    elif command == "threads":
        cv2.setNumThreads(int(arguments[0]))
        answer = cv2.__version__
    else:
        answer = {"gauss": gauss, "sobel": sobel, "sift": sift, "match": match}[command](*arguments)
    print(answer, flush=True)
