"""What the tests of the service share: a key, a process of its own, and what the small index behind it holds."""

import os
import signal
import socket
import subprocess
import sys

import httpx

KEY = "a key for tests only"
AUTHORISED = {"Authorization": f"Bearer {KEY}"}
THINGS = {
    "lamp": "A small lamp gives light for reading in bed.",
    "umbrella": "An umbrella keeps you dry when it rains.",
    "engine": "The engine of a car burns petrol.",
    "bread": "Bread is baked from flour, water and yeast.",
}
FILL = 560  # other documents


class Process:
    """`adawidth serve` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-c", "from adawidth.cli import main; main()", "serve", *arguments, "--port", str(self.port)]
        self.running = subprocess.Popen(command, env={**os.environ, "ADAWIDTH_API_KEY": KEY}, stderr=subprocess.PIPE, text=True)
        self.http = httpx.Client(base_url=self.url, headers=AUTHORISED, timeout=60, transport=httpx.HTTPTransport(retries=8))
        assert self.http.get("/readyz").status_code == 200

    def end(self, how: signal.Signals) -> str:
        """What it has logged."""
        self.http.close()
        self.running.send_signal(how)
        return self.running.communicate(timeout=60)[1]
