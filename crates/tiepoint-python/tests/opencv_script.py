"""Runs a script written for OpenCV in the current folder and prints what it found.

python opencv_script.py MODULE FILE [ARGUMENT]...

MODULE is imported as OpenCV. No window is opened. The last line is JSON: the matrix, inliers and pairs of every call of
findHomography. The last picture shown as "disparity" is saved to disparity.npy.
"""

import importlib
import json
import runpy
import sys

import cv2
import numpy as np

module, script, *arguments = sys.argv[1:]
cv = importlib.import_module(module)
find, found = cv.findHomography, []


def recorded(*given):
    matrix, mask = find(*given)
    found.append((np.array(matrix).tolist(), int(np.sum(mask)), len(mask)))
    return matrix, mask


def shown(name, image):
    if name == "disparity":
        np.save("disparity.npy", image)


for name in ("namedWindow", "setMouseCallback", "destroyAllWindows", "waitKey"):
    setattr(cv2, name, lambda *_: 27)
cv.findHomography, cv2.imshow = recorded, shown
sys.argv[:] = [script, *arguments]
sys.path.insert(0, ".")
runpy.run_path(script, run_name="__main__")
print(f"\n{json.dumps(found)}")
