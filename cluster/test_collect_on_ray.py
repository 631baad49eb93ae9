"""The recipe for Ray on two workers of this machine: the same database, also when workers are killed.

TIEPOINT names the command.
"""

import hashlib
import os
import pathlib
import signal
import sqlite3
import subprocess
import threading
import time

import numpy as np
import pytest
import ray

import collect_on_ray

TIEPOINT = os.environ.get("TIEPOINT", "target/debug/tiepoint")


def texture(height, width, seed):
    """Noise of many sizes, 8 bits."""
    random = np.random.default_rng(seed)
    sum_ = np.zeros((height, width))
    for size in (4, 8, 16, 32, 64):
        coarse = random.normal(size=(height // size + 2, width // size + 2))
        y, x = np.mgrid[:height, :width] / size
        i, j = y.astype(int), x.astype(int)
        v, u = y - i, x - j
        sum_ += size ** 0.5 * ((1 - v) * ((1 - u) * coarse[i, j] + u * coarse[i, j + 1])
                               + v * ((1 - u) * coarse[i + 1, j] + u * coarse[i + 1, j + 1]))
    low, high = sum_.min(), sum_.max()
    return ((sum_ - low) / (high - low) * 255).astype(np.uint8)


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    """Twelve views of a strip of ground, each with half of the next."""
    folder = tmp_path_factory.mktemp("photographs")
    ground = texture(300, 2400, 1)
    for i in range(12):
        view = np.ascontiguousarray(ground[:, 150 * i:150 * i + 400])
        (folder / f"{i:02}.pgm").write_bytes(b"P5 %d %d 255 " % view.shape[::-1] + view.tobytes())
    return folder


@pytest.fixture(scope="session", autouse=True)
def cluster():
    """A Ray cluster of this machine with room for two workers."""
    os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    yield
    ray.shutdown()


def content(database):
    """A hash over all rows in order."""
    digest = hashlib.sha256()
    with sqlite3.connect(database) as connection:
        names = connection.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
        for (name,) in names:
            for row in connection.execute(f"select * from {name} order by 1, 2"):
                digest.update(repr((name, row)).encode())
    return digest.hexdigest()


OPTIONS = ["--max-features", "500", "--block", "3", "--pairs", "top-scale"]


@pytest.fixture(scope="session")
def alone(photographs, tmp_path_factory):
    """The content of the database that a single process makes."""
    folder = tmp_path_factory.mktemp("alone")
    database = folder / "database.db"
    subprocess.run([TIEPOINT, "collect", photographs, "--output", database, "--device", "cpu", "--quiet", *OPTIONS], check=True)
    return content(database)


def test_two_workers_make_the_same_database(photographs, alone, tmp_path):
    told = collect_on_ray.collect([str(photographs)], str(tmp_path / "d.db"), str(tmp_path / "work"), gpus=False,
                                  parts=5, command=TIEPOINT, options=OPTIONS)
    assert told["images"] == 12
    assert told["pairs"] >= 11, "each view with the next"
    assert content(tmp_path / "d.db") == alone


def test_killed_workers_lose_nothing(photographs, alone, tmp_path):
    """Actors and their commands are killed during the whole run. The command is slowed down, so that kills hit it."""
    slow = tmp_path / "tiepoint"
    slow.write_text(f'#!/bin/sh\nsleep 0.2\nexec "{os.path.abspath(TIEPOINT)}" "$@"\n')
    slow.chmod(0o755)
    ended, killed = threading.Event(), []

    def kill():
        own = os.getpid()
        while not ended.wait(0.3):
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    line = (process / "cmdline").read_bytes()
                    if line.startswith(b"ray::Worker") and int(process.name) != own and len(killed) < 6:
                        os.kill(int(process.name), signal.SIGKILL)
                        killed.append(line)
                        break
                except (FileNotFoundError, ProcessLookupError):
                    pass

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        collect_on_ray.collect([str(photographs)], str(tmp_path / "d.db"), str(tmp_path / "work"), gpus=False, parts=8,
                               command=str(slow), options=OPTIONS)
    finally:
        ended.set()
        thread.join()
    assert killed, "nothing was killed"
    assert content(tmp_path / "d.db") == alone


def test_a_killed_command_is_started_again(photographs, alone, tmp_path):
    """The command alone dies; its actor lives."""
    wrapper = tmp_path / "tiepoint"
    mark = tmp_path / "killed"
    wrapper.write_text(f'#!/bin/sh\nif [ "$2" = match ] && mkdir {mark} 2>/dev/null; then kill -9 $$; fi\nexec "{os.path.abspath(TIEPOINT)}" "$@"\n')
    wrapper.chmod(0o755)
    collect_on_ray.collect([str(photographs)], str(tmp_path / "d.db"), str(tmp_path / "work"), gpus=False, parts=3,
                           command=str(wrapper), options=OPTIONS)
    assert mark.exists()
    assert content(tmp_path / "d.db") == alone


def test_an_error_of_the_command_ends_the_run_in_words(photographs, tmp_path):
    with pytest.raises(collect_on_ray.CommandFailed, match="block"):
        collect_on_ray.collect([str(photographs)], str(tmp_path / "d.db"), str(tmp_path / "work"), gpus=False,
                               command=TIEPOINT, options=["--block", "0"])
    began = time.monotonic()
    with pytest.raises(collect_on_ray.CommandFailed, match="no-such-program"):
        collect_on_ray.collect([str(photographs)], str(tmp_path / "d.db"), str(tmp_path / "work"), gpus=False,
                               command="/no-such-program")
    assert time.monotonic() - began < 20
