"""Arrays on a CUDA device across streams, threads, graphs, a fork and the exit."""

import gc
import multiprocessing
import os
import random
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import tiepoint as tp
from card import NEEDS_CARD, picture

pytestmark = NEEDS_CARD

#: Rounds of `test_random_orders_of_streams`.
ROUNDS = int(os.environ.get("TIEPOINT_ROUNDS", "1000"))


def weights(torch, n):
    """A random weight for every byte of descriptors."""
    return (torch.arange(n, dtype=torch.int64, device="cuda") * 2654435761) % 2147483647 + 1


def test_random_orders_of_streams(torch, cupy, card):
    """Producers write late, in any stream; consumers read late, in any other; nothing else waits."""
    pictures = [torch.from_numpy(picture("uint8", size=(96, 64), seed=seed)).cuda() for seed in range(8)]
    sift = tp.Sift(device=card)
    cpu = [tp.Sift(device="cpu").detect(image.cpu().numpy()) for image in pictures]
    factors = weights(torch, max(found.descriptors.size for found in cpu))
    descriptors = [torch.from_numpy(found.descriptors.copy()).cuda() for found in cpu]
    hashes = [int((tensor.flatten().long() * factors[: tensor.numel()]).sum()) for tensor in descriptors]
    assert len(set(hashes)) == len(hashes)
    nearest = [tp.nearest(found, found, device="cpu") for found in cpu]
    torch.cuda.synchronize()
    streams = [torch.cuda.default_stream(), *(torch.cuda.Stream() for _ in range(4))]
    cupy_streams = [cupy.cuda.ExternalStream(stream.cuda_stream) for stream in streams[1:]]
    rng = random.Random(7)
    buffers = [torch.empty_like(pictures[0]) for _ in range(6)]
    spare = [torch.empty_like(max(descriptors, key=lambda tensor: tensor.numel())) for _ in range(6)]
    results = torch.zeros(ROUNDS, dtype=torch.int64, device="cuda")
    kept, expected, ways = [], [], {}
    torch.cuda.synchronize()
    for i in range(ROUNDS):
        k, producer, consumer = rng.randrange(len(pictures)), rng.choice(streams), rng.choice(streams)
        late, later = rng.choice([0, 0, 20_000, 200_000]), rng.choice([0, 0, 20_000, 200_000])
        way = rng.choice(["detect", "detect", "borrow", "match", "filter"])
        expected.append(hashes[k])
        with torch.cuda.stream(producer):
            if late:
                torch.cuda._sleep(late)
            if way == "detect":
                buffer = rng.choice(buffers)
                buffer.copy_(pictures[k])
                found = sift.detect(buffer)
                # Written again at once: the detector must have read it by then.
                buffer.fill_(rng.randrange(256))
            elif way == "filter":
                buffer = rng.choice(buffers)
                buffer.copy_(pictures[k])
                # Two results of ours as input: a filter and a warp that change nothing.
                found = sift.detect(tp.warp(tp.filter.convolve(buffer, [[1.0]]), np.eye(3)))
                buffer.fill_(rng.randrange(256))
            else:
                buffer = torch.empty(descriptors[k].shape, dtype=torch.uint8, device="cuda")
                buffer.copy_(descriptors[k])
                found = tp.Features.from_arrays(xy=cpu[k].xy, descriptors=buffer, image_size=(96, 64))
                if way == "match":
                    assert all(map(np.array_equal, tp.nearest(found, found), nearest[k])), f"round {i}"
                del buffer
        how = rng.choice(["torch", "torch", "cupy", "interface", "columns", "host"])
        ways[way, how] = ways.get((way, how), 0) + 1
        if how == "host":
            results[i] = int((torch.from_numpy(found.descriptors.numpy()).long().flatten() * factors[: found.descriptors.size].cpu()).sum())  # fmt: skip
        elif how == "cupy" and consumer is not streams[0]:
            with cupy_streams[streams.index(consumer) - 1], torch.cuda.stream(consumer):
                if later:
                    torch.cuda._sleep(later)
                array = cupy.from_dlpack(found.descriptors)
                results[i] = (torch.from_dlpack(array).flatten().long() * factors[: array.size]).sum()
                del array
        else:
            with torch.cuda.stream(consumer):
                if how == "interface":
                    tensor = torch.as_tensor(found.descriptors, device="cuda")
                else:
                    tensor = torch.from_dlpack(found.descriptors)
                if later:
                    torch.cuda._sleep(later)
                if how == "columns":
                    xy = torch.from_dlpack(found.xy)
                    results[i] = -int(not bool((xy.cpu() == torch.from_numpy(cpu[k].xy.copy())).all()))
                results[i] += (tensor.flatten().long() * factors[: tensor.numel()]).sum()
                del tensor
        # Features are dropped while they are read, or later.
        if rng.random() < 0.3:
            kept.append(found)
        del found
        if len(kept) > 5:
            kept.pop(rng.randrange(len(kept)))
    torch.cuda.synchronize()
    wrong = [i for i, (found, wanted) in enumerate(zip(results.tolist(), expected, strict=True)) if found != wanted]
    assert not wrong, f"{len(wrong)} of {ROUNDS} rounds differ, the first is {wrong[0]}"
    assert len(ways) == 20, ways


def test_eight_threads_share_a_detector(torch, card):
    pictures = [picture("uint8", size=(320, 240), seed=seed) for seed in range(8)]
    sift = tp.Sift(device=card)
    wanted = [tp.Sift(device="cpu").detect(image) for image in pictures]
    failures = []

    def work(number):
        rng, stream = random.Random(number), torch.cuda.Stream()
        try:
            with torch.cuda.stream(stream):
                for _ in range(25):
                    k = rng.randrange(8)
                    there = torch.from_numpy(pictures[k]).to("cuda", non_blocking=True)
                    found = sift.detect(there)
                    del there
                    tensor = torch.from_dlpack(found.descriptors)
                    assert torch.equal(tensor.cpu(), torch.from_numpy(wanted[k].descriptors.copy()))
                    assert np.array_equal(found.xy.numpy(), wanted[k].xy)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_graphs_of_others_are_left_alone(torch, card):
    """A stream that records a graph is refused, and the graph still works."""
    sift, image = tp.Sift(device=card), torch.from_numpy(picture("uint8")).cuda()
    found = sift.detect(image)
    tensor, other = torch.from_dlpack(found.descriptors), torch.from_dlpack(sift.detect(image).descriptors)
    total = torch.zeros((), dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total.copy_(tensor.long().sum())
        with pytest.raises(tp.MismatchError, match="records a CUDA graph"):
            found.descriptors.__dlpack__(stream=torch.cuda.current_stream().cuda_stream)
        # Memory may be released while the graph is recorded.
        del other
    graph.replay()
    assert int(total) == int(tensor.long().sum())
    assert sift.detect(image) == found


def test_memory_comes_back(torch, card):
    """Neither side keeps memory that the other no longer uses."""
    sift, image = tp.Sift(device=card), torch.from_numpy(picture("uint8", size=(640, 480))).cuda()

    def once():
        there = image.clone()
        found = sift.detect(there)
        tensor = torch.from_dlpack(found.descriptors)
        del there, found
        return int(tensor.long().sum())

    sums = {once() for _ in range(20)}
    gc.collect()
    torch.cuda.synchronize()
    allocated, (free, _) = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()
    sums |= {once() for _ in range(200)}
    gc.collect()
    torch.cuda.synchronize()
    assert len(sums) == 1
    # PyTorch holds what it held before, and possibly the last image, which is released by the next call at the latest.
    assert torch.cuda.memory_allocated() <= allocated + image.nbytes
    assert free - torch.cuda.mem_get_info()[0] < 64 << 20


def child(queue):
    try:
        with pytest.raises(tp.DeviceError, match="forked"):
            FOUND.xy.numpy()
        with pytest.raises(tp.DeviceError, match="forked"):
            FOUND.descriptors.__dlpack__()
        with pytest.raises(tp.DeviceError, match="forked"):
            FOUND.to("cpu")
        with pytest.raises(tp.DeviceError, match="forked"):
            tp.Device("cuda:0")
        queue.put("errors")
    except BaseException as error:
        queue.put(repr(error))


FOUND = None


def test_a_fork_is_an_error(card):
    """A child process that uses features of a device opened before the fork gets errors and ends normally."""
    global FOUND
    FOUND = tp.Sift(device="cpu").detect(picture("uint8")).to(card)
    assert FOUND.xy.shape == (len(FOUND), 2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    told = queue.get(timeout=60)
    process.join(60)
    assert (told, process.exitcode) == ("errors", 0)
    FOUND = None


@pytest.mark.parametrize("held", ["found", "tensor", "capsule", "array", "borrowed", "thread", "everything"])
def test_objects_held_at_exit_do_no_harm(held):
    script = """
        import threading, time, numpy as np, torch, tiepoint as tp
        image = tp.synth.texture((160, 120))
        there = torch.from_numpy(image).cuda()
        found = tp.Sift(device="cuda:0").detect(there)
        held = "HELD"
        if held in ("tensor", "everything"):
            tensor = torch.from_dlpack(found.descriptors)
        if held in ("capsule", "everything"):
            capsule = found.xy.__dlpack__(max_version=(1, 0))
        if held in ("array", "everything"):
            array = found.response
        if held in ("borrowed", "everything"):
            borrowed = tp.Features.from_arrays(xy=np.zeros((50, 2)), descriptors=there[:50, :128].contiguous())
        if held in ("thread", "everything"):
            # Not through PyTorch, which aborts the process if a daemon thread uses it at exit.
            def work(array=found.scale):
                while True:
                    array.numpy()
            threading.Thread(target=work, daemon=True).start()
            time.sleep(0.1)
        if held not in ("found", "everything"):
            del found
        torch.cuda._sleep(1_000_000)
        print("done", flush=True)
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script).replace("HELD", held)], capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0 and told.stdout == "done\n", told
    assert told.stderr == "", told
