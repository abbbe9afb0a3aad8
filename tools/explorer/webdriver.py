"""A headless Chromium, driven through ChromeDriver's WebDriver protocol."""

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request


class Browser:
    def __init__(self):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if "successfully on port" in line:
                self.at = f"http://127.0.0.1:{int(line.split()[-1].rstrip('.'))}/session"
                break
        options = {"binary": "/usr/bin/chromium",
                   "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
                        "timeouts": {"script": 300000, "pageLoad": 60000}}
        session = self._send("POST", "", {"capabilities": {"alwaysMatch": capabilities}})
        self.at += "/" + session["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._send("DELETE", "")
        self.driver.terminate()
        self.driver.wait()

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.at + path, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=400) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self._send("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script, *arguments):
        """Runs a script that gives a promise, and returns the value of the promise."""
        script = ("const done = arguments[arguments.length - 1], give = async (...a) => {" + script +
                  "}; give(...arguments).then(value => done({value}), error => done({error: String(error)}))")
        result = self._send("POST", "/execute/async", {"script": script, "args": list(arguments)})
        if "error" in result:
            raise RuntimeError(result["error"])
        return result.get("value")

    def until(self, script, seconds=300):
        end = time.monotonic() + seconds
        while not self.run("return " + script):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(.05)

    def command(self, name, parameters):
        return self._send("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def resize(self, width, height, phone=False):
        self.command("Emulation.setDeviceMetricsOverride",
                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})

    def dark(self, on=True):
        self.command("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]})

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def errors(self):
        lines = self._send("POST", "/se/log", {"type": "browser"})
        return [line["message"] for line in lines if line["level"] in ("SEVERE", "WARNING")]

    def picture(self, file):
        size = self.command("Page.getLayoutMetrics", {})["cssContentSize"]
        shot = self.command("Page.captureScreenshot", {
            "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}})
        with open(file, "wb") as out:
            out.write(base64.b64decode(shot["data"]))
