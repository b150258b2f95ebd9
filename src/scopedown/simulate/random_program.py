"""Random programs for property tests: several threads, streams and devices, causes on the path and beside it."""

from __future__ import annotations

from scopedown.simulate.program import Program, Script
from scopedown.trace.model import CopyKind


def random_program(seed: int, steps: int = 12, queue_depth: int = 1022) -> Program:
    """A program whose thread 0 has the marks "begin" and "end"; every duration that can be a cause has a tag.

    Each thread feeds streams of its own: order on a stream, and what a device-wide wait covers, stay the same when a
    cause is removed. A small ``queue_depth`` makes launch calls block, which no record of a tool shows.
    """
    program = Program(seed, devices=("NVIDIA H100 80GB HBM3",) * (1 + seed % 2), queue_depth=queue_depth)
    rng = program.rng
    threads = [program.thread(f"worker {n}") for n in range(rng.randint(1, 3))]
    threads[0].mark("begin")
    for step in range(steps):
        for n, thread in enumerate(threads):
            with thread.range(f"step {step}"):
                for _ in range(rng.randint(1, 5)):
                    _something(thread, n, step)
        if len(threads) > 1 and rng.random() < 0.5:
            giver, taker = rng.sample(range(len(threads)), 2)
            threads[giver].signal(f"hand over {step}")
            threads[taker].wait_for(f"hand over {step}")
    threads[0].sync(stream=7, device=0)
    threads[0].mark("end")
    return program


def _something(thread: Script, n: int, step: int) -> None:
    """One of the things that a step may do, on the thread's own two streams."""
    rng = thread.program.rng
    device = n % len(thread.program.devices)
    main, side = 7 + 10 * n, 8 + 10 * n
    # Device-wide waits cover other threads' streams on that device: only where a thread has a device to itself.
    alone = len(thread.program.threads) == 1
    match rng.randrange(11):
        case 0 | 1:
            thread.host(rng.randrange(2_000, 900_000), tag=f"host {n}")
        case 2:
            for _ in range(rng.randint(1, 20)):
                thread.host(rng.randrange(1_000, 9_000), tag=f"dispatch {n}")
                thread.kernel(
                    "small_kernel<float>(int)", rng.randrange(1_500, 8_000), f"small {n}", stream=main, device=device
                )
        case 3 | 4:
            ns = rng.randrange(20_000, 900_000)
            thread.kernel("gemm_kernel<float>(int)", ns, f"gemm {n}", stream=main, device=device)
        case 5:
            thread.sync(stream=main, device=device)
        case 6:
            ns = rng.randrange(5_000, 600_000)
            pageable = rng.random() < 0.5
            stage = rng.randrange(0, 40_000) if pageable else 0
            thread.copy(
                CopyKind.HTOD, ns * 20, ns, f"copy {n}", pageable=pageable, stage_ns=stage, stream=side, device=device
            )
        case 7:
            event = f"event {n} {step} {len(thread.instructions)}"
            thread.record(event, stream=side, device=device)
            thread.wait_event(event, stream=main, device=device)
        case 8:
            thread.os_wait(rng.randrange(10_000, 400_000), tag=f"sleep {n}", call="clock_nanosleep")
        case 9:
            if rng.random() < 0.5 and alone:
                thread.free(rng.randrange(20_000, 200_000), f"alloc {n}", device=device)
            else:
                thread.alloc(rng.randrange(20_000, 300_000), f"alloc {n}")
        case _:
            nodes = [("node_kernel<float>(int)", rng.randrange(3_000, 60_000)) for _ in range(rng.randint(1, 6))]
            thread.graph(nodes, f"graph {n}", whole=rng.random() < 0.3, stream=main, device=device)
