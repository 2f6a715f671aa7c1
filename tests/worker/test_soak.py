"""Long runs, for leaks. Not part of the normal tests: pytest -m soak."""

from pathlib import Path

import pytest
import trio

pytestmark = pytest.mark.soak

CHUNK, CHUNKS = 20_000, 10


def resident_megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


async def test_resident_memory_is_flat_over_two_hundred_thousand_jobs(boss):
    done = trio.open_memory_channel(CHUNK)
    sizes = []

    async def handle(job):
        done[0].send_nowait(None)

    await boss.create_queue("q", keep_completed=False)
    await boss.work("q", handle, concurrency=10, prefetch=200)
    for _ in range(CHUNKS):
        await boss.insert("q", ({"data": {"number": number}} for number in range(CHUNK)))
        with trio.fail_after(600):
            for _ in range(CHUNK):
                await done[1].receive()
        sizes.append(resident_megabytes())
        print(f"{sizes[-1]:.1f} MB")

    # The first chunks fill pools and caches; after them memory must not grow with the number of jobs.
    assert sizes[-1] - sizes[2] < 3
