"""Embedded in a trio program that serves HTTP: each request becomes a job, and the answer is its result."""

import json

import trio

import trioboss


async def resize(job: trioboss.RunningJob) -> dict[str, object]:
    await trio.sleep(0.01)
    return {"image": job.data["image"], "size": [100, 100]}


async def answer(boss: trioboss.Boss, stream: trio.SocketStream) -> None:
    async with stream:
        request = await stream.receive_some(4096)
        image = request.split(b" ")[1].decode().lstrip("/")
        id = await boss.send("resize", {"image": image})
        job = await boss.wait_for("resize", id, timeout=10)
        # A job that failed has ended, too. Its output is the error with the stack, which is not for the client.
        is_done = job.state == "completed"
        status = b"200 OK" if is_done else b"500 Internal Server Error"
        body = json.dumps(job.output if is_done else {"error": "the image could not be resized"}).encode()
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
            status,
            len(body),
        )
        await stream.send_all(head + body)


async def main() -> None:
    async with trioboss.open_boss() as boss, trio.open_nursery() as nursery:
        await boss.create_queue("resize")
        await boss.work("resize", resize, concurrency=10)

        async def handle(stream: trio.SocketStream) -> None:
            await answer(boss, stream)

        listeners = await nursery.start(trio.serve_tcp, handle, 0)
        port = listeners[0].socket.getsockname()[1]
        print(f"listening on port {port}")

        stream = await trio.open_tcp_stream("127.0.0.1", port)
        await stream.send_all(b"GET /cat.png HTTP/1.1\r\n\r\n")
        print((await stream.receive_some(4096)).decode().splitlines()[-1])
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
