#!/usr/bin/env python3
"""browser.py CHROMIUM PAGE.html...: looks at pages of report.py as a reader does.

Chromium, headless, lays each page out as on a phone (390 pixels) and on a desk (1280), light and dark; browser.js is run
in it and names what is amiss. A line a view says how many figures it has and how much is amiss, a line each what.
Exit 0: nothing. With PICTURES=PREFIX in the environment the four views of the first page are kept as PNG. Standard
library only: the browser is spoken to through its pipe, by the DevTools protocol.
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile


class Browser:
    """One window of a headless Chromium, with a folder of its own."""

    def __init__(self, program, folder):
        there, self.write = os.pipe()
        self.read, back = os.pipe()

        def at_3_and_4():
            a, b = os.dup(there), os.dup(back)  # so that neither stands where the other goes
            os.dup2(a, 3)
            os.dup2(b, 4)

        words = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--disable-background-networking", "--no-first-run", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen([program, *words], close_fds=False, preexec_fn=at_3_and_4, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        self.count, self.left, self.session = 0, b"", None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def message(self):
        while b"\0" not in self.left:
            more = os.read(self.read, 1 << 20)
            if not more:
                raise SystemExit("Chromium ended")
            self.left += more
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **words):
        self.count += 1
        request = {"id": self.count, "method": method, "params": words}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address):
        self.call("Page.enable")
        self.call("Page.navigate", url=address)
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def look(self, width, scheme):
        """The page at this width on light or dark paper."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise SystemExit(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def picture(self, path):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self):
        self.call("Browser.close")
        self.process.wait(20)


def main():
    program, *pages = sys.argv[1:]
    checks = pathlib.Path(__file__).with_name("browser.js").read_text(encoding="utf-8")
    bad = False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        for page in pages:
            browser.open(pathlib.Path(page).resolve().as_uri())
            for width in (390, 1280):
                for scheme in ("light", "dark"):
                    browser.look(width, scheme)
                    found = browser.run(checks)
                    view = f"{page} {found['width']} {'dark' if found['dark'] else 'light'}:"
                    print(view, found["figures"], "figures,", len(found["amiss"]), "amiss")
                    for what in found["amiss"][:8]:
                        print(view, what)
                    bad |= bool(found["amiss"]) or (found["width"], found["dark"]) != (width, scheme == "dark")
                    if page == pages[0] and "PICTURES" in os.environ:
                        browser.picture(f"{os.environ['PICTURES']}-{width}-{scheme}.png")
        browser.close()
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
