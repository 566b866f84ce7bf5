"""A headless Chromium for tests of pages, driven by the DevTools protocol over a pipe."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MISSING = "no Chromium here: `make browser` installs Debian's"
_SECONDS = 60.0
# Where a page tells of a mistake: what its script throws, and what the browser itself reports.
_COMPLAINTS = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")


def chromium() -> str | None:
    """Return the path of a Chromium, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page of a running browser."""

    def __init__(self, browser: "subprocess.Popen[bytes]", to: int, from_: int) -> None:
        self._browser = browser
        self._to, self._from = to, from_
        self._rest = b""
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")

    def open(self, path: Path, width: int, height: int, *, dark: bool = False) -> None:
        """Load a file in a window of that many CSS pixels, and wait until it is there."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._send("Emulation.setDeviceMetricsOverride", **screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self._send("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + _SECONDS
        while self.run("document.readyState") != "complete" or self.run("location.href") == "":
            assert time.monotonic() < deadline, f"{path} did not load"

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page and return its value; an exception fails."""
        answer = self._send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def write_screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what the window shows, or the whole page, as PNG."""
        taken = self._send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._from, 1 << 16)
            assert read, f"the browser ended with status {self._browser.poll()}"
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") in _COMPLAINTS:
            self.complaints.append(json.dumps(event["params"]))
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])


@contextmanager
def opened_browser(program: str) -> Iterator[Page]:
    """Run a browser with an empty profile and yield a page of it."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()

    def give_pipes() -> None:
        high_in, high_out = os.dup(theirs_in), os.dup(theirs_out)
        os.dup2(high_in, 3)
        os.dup2(high_out, 4)

    with tempfile.TemporaryDirectory(prefix="trivet-browser-", ignore_cleanup_errors=True) as home:
        options = ("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu")
        profile = f"--user-data-dir={home}"
        browser = subprocess.Popen(
            [program, *options, "--no-first-run", "--disable-dev-shm-usage", profile],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=give_pipes,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Page(browser, ours_out, ours_in)
        finally:
            browser.terminate()
            browser.wait(timeout=20)
            os.close(ours_out)
            os.close(ours_in)
