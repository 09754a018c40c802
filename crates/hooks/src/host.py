"""Keeps one handler.py warm: a line of JSON in, a line of JSON out, as many at once as are asked for."""

import sys

# The folder that it runs in is the hook's: what is named like a module of Python there is not that module.
sys.path[:] = [place for place in sys.path if place]

import asyncio
import importlib.util
import inspect
import json
import os
import signal
import threading
import traceback

LONGEST = 8 << 20


def load(path):
    # Behind Python's own modules, which this program goes on to need, and before what was installed.
    installed = (n for n, place in enumerate(sys.path) if place.endswith("-packages"))
    sys.path.insert(next(installed, len(sys.path)), os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("handler", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["handler"] = module
    spec.loader.exec_module(module)
    return module.handle


def listen(hear):
    # Not sys.stdin: Python would wait for whoever reads from it when it ends.
    with os.fdopen(os.dup(0), "rb") as lines:
        while line := lines.readline(LONGEST):
            hear(line)
    # Whoever would hear an answer is gone, so nothing is waited for that a handler still does. What it started
    # goes with it, as far as that has stayed in its group.
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


class Host:
    def __init__(self, handle, out):
        self.handle = handle
        self.out = out
        self.lock = threading.Lock()

    async def answer(self, call):
        said = {"id": call["id"]}
        try:
            if inspect.iscoroutinefunction(self.handle):
                result = await self.handle(call["event"], call["context"])
            else:
                result = await asyncio.to_thread(self.handle, call["event"], call["context"])
            said["result"] = result
            line = json.dumps(said)
        except Exception as error:
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
            line = json.dumps({"id": call["id"], "error": reason[:160]})
        with self.lock:
            self.out.write(line.encode() + b"\n")

    async def serve(self, lines):
        running = set()
        while True:
            line = await lines.get()
            task = asyncio.create_task(self.answer(json.loads(line)))
            running.add(task)
            task.add_done_callback(running.discard)


if __name__ == "__main__":
    # What a handler prints must not be taken for an answer.
    out = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    lines = asyncio.Queue()
    # Not every event loop can watch a pipe, and none does while a handler is loaded or holds it up. The thread has
    # nothing that it would have to finish.
    hear = lambda line: loop.call_soon_threadsafe(lines.put_nowait, line)
    threading.Thread(target=listen, args=(hear,), daemon=True).start()
    loop.run_until_complete(Host(load(sys.argv[1]), out).serve(lines))
