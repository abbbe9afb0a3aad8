#!/usr/bin/env python3
"""Tests tools/action. `check` reads its files. `run PREFIX` runs its steps as a job of another repository,
tests/install/stencil, with redblue already installed in PREFIX."""

import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTION = ROOT / "tools/action"


def require(holds, why):
    if not holds:
        sys.exit("action: " + why)


def documents():
    """Returns the action, the jobs of GitLab, and the workflows that docs/gate.md shows."""
    page = (ROOT / "docs/gate.md").read_text()
    shown = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.S)]
    require(len(shown) >= 5, "docs/gate.md shows no workflows")
    return (yaml.safe_load((ACTION / "action.yml").read_text()),
            yaml.safe_load((ACTION / "gitlab.yml").read_text()), shown)


def comment_action():
    return yaml.safe_load((ACTION / "comment/action.yml").read_text())


def scripts(action, gitlab, shown):
    """Yields each text that a shell runs, with its place."""
    for step in action["runs"]["steps"] + comment_action()["runs"]["steps"]:
        if "run" in step:
            yield "action.yml, " + step["name"], step["run"]
    for name in ("before_script", "script"):
        for k, line in enumerate(gitlab[".redblue-gate"][name]):
            yield f"gitlab.yml, {name} {k + 1}", line
    yield "gitlab.yml, GATE_BUILD", gitlab[".redblue-gate"]["variables"]["GATE_BUILD"]
    for document in shown:
        for job in document.get("jobs", {}).values():
            for step in job["steps"]:
                if "run" in step:
                    yield "docs/gate.md", step["run"]
                if "build" in step.get("with", {}):
                    yield "docs/gate.md", step["with"]["build"]


def check():
    action, gitlab, shown = documents()
    options = {  # for each program, the text that defines its options
        "check": (ROOT / "tools/gate/gate.cpp").read_text(),
        "setup": (ROOT / "tools/setup").read_text(),
        "install": (ROOT / "CMakeLists.txt").read_text() + (ACTION / "install").read_text(),
    }
    for place, text in scripts(action, gitlab, shown):
        said = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
        require(said.returncode == 0, f"{place}: {said.stderr}")
        for file in re.findall(r"\btools/[a-z/]+", text):
            require((ROOT / file).exists(), f"{place}: {file} is not there")
        for file in re.findall(r"\$GITHUB_ACTION_PATH/([a-z./]+)", text):
            folders = (ACTION, ACTION / "comment")
            require(any(os.access((folder / file).resolve(), os.X_OK) for folder in folders),
                    f"{place}: {file} is no program")
        if "setup" in text:
            for option in re.findall(r"setup\"? (--[a-z]+)", text):
                require(option + ")" in options["setup"], f"{place}: setup has no {option}")
        if " check " in text:
            for option in re.findall(r" (--[a-z]+)", text[text.index(" check "):]):
                known = options["check"] + (ROOT / "tools/gate/part.cpp").read_text()
                require(f'"{option}"' in known, f"{place}: check has no {option}")
    for option in re.findall(r"-D(REDBLUE_\w+)=", options["install"]):
        require(f"option({option} " in options["install"], f"install: CMake has no {option}")
    # Inputs must come as variables: an input in the text of a script could be any command.
    steps = action["runs"]["steps"]
    used = str(steps)
    for step in steps:
        require("${{" not in step.get("run", ""), f"action.yml, {step['name']}: an expression in run")
        require("uses" in step or step["shell"] == "bash", f"action.yml, {step['name']}: no shell")
    for name in re.findall(r"\binputs\.(\w+)\b", used):
        require(name in action["inputs"], f"action.yml has no input {name}")
    for name in action["inputs"]:
        require(f"inputs.{name} " in used, f"action.yml does not use the input {name}")
    for document in shown:
        for job in document.get("jobs", {}).values():
            for step in job["steps"]:
                file = re.fullmatch(r"OWNER/redblue/(tools/action[a-z/]*)@TAG", step.get("uses", ""))
                if file:
                    used_action = yaml.safe_load((ROOT / file[1] / "action.yml").read_text())
                    for name in step.get("with", {}):
                        require(name in used_action["inputs"], f"docs/gate.md: no input {name}")
                for file in re.findall(r"\btools/\w+", step.get("run", "")):
                    require(False, f"docs/gate.md runs {file}, which another repository has not")
        for name, job in document.items():
            if isinstance(job, dict) and job.get("extends") == ".redblue-gate":
                for variable in job["variables"]:
                    require(variable in gitlab[".redblue-gate"]["variables"],
                            f"docs/gate.md: no variable {variable}")
    require(gitlab[".redblue-gate"]["artifacts"]["when"] == "always", "no report of a failure")
    variables = set(gitlab[".redblue-gate"]["variables"])
    for _, line in scripts({"runs": {"steps": []}}, gitlab, []):
        for variable in re.findall(r"\$(GATE_\w+)", line):
            require(variable in variables, f"gitlab.yml: no variable {variable}")


class Job:
    """A job on a GitHub machine: its folders, the files through which steps communicate, and its variables."""

    def __init__(self, workspace, temp, shell=("env", "-i"), action=ACTION):
        self.workspace, self.temp, self.shell, self.action = workspace, temp, list(shell), action
        self.variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(temp)}
        self.outputs, self.said, self.path, self.output = {}, [], [], {}
        self.summary = temp / "summary"

    def expression(self, text, inputs):
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: self.value(match[1], inputs), text)

    def value(self, of, inputs):
        name = of.split(".")
        return inputs[name[1]] if name[0] == "inputs" else self.outputs[name[1]].get(name[3], "")

    def holds(self, condition, inputs, failed):
        """Returns whether a step runs. GitHub adds success() to a condition without such a function."""
        terms = condition.split(" && ")
        if failed and "always()" not in terms:
            return False
        for term in terms:
            if term not in ("always()", ""):
                of, relation, text = re.fullmatch(r"([\w.]+) (==|!=) '(.*)'", term).groups()
                if (self.value(of, inputs) == text) != (relation == "=="):
                    return False
        return True

    def run(self, script, more=None, seen=lambda path: path):
        """Runs a step and returns its exit code. `seen` translates a path to the path that the shell sees."""
        files = {name: self.temp / name for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT")}
        for file in files.values():
            file.write_text("")
        variables = {**self.variables, **(more or {})}
        variables["PATH"] = ":".join(self.path + [variables["PATH"]])
        variables.update({name: str(seen(path)) for name, path in files.items()})
        variables.update(GITHUB_ACTION_PATH=str(seen(self.action)), RUNNER_TEMP=str(seen(self.temp)),
                         GITHUB_STEP_SUMMARY=str(seen(self.summary)))
        ended = subprocess.run(
            self.shell + [f"{name}={value}" for name, value in variables.items()] +
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c",
             f"cd '{seen(self.workspace)}'\n{script}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said.append(ended.stdout)
        for line in files["GITHUB_ENV"].read_text().splitlines():
            name, value = line.split("=", 1)
            self.variables[name] = value
        self.path = files["GITHUB_PATH"].read_text().splitlines()[::-1] + self.path
        self.output = dict(line.split("=", 1)
                           for line in files["GITHUB_OUTPUT"].read_text().splitlines())
        return ended.returncode

    def use(self, inputs, seen=lambda path: path, report=lambda *step: None, action=None):
        """Runs the steps of the action with these inputs. Returns the first exit code that is not 0."""
        action = action or documents()[0]
        inputs = {name: inputs.get(name, its["default"]) for name, its in action["inputs"].items()}
        first = 0
        for step in action["runs"]["steps"]:
            if "run" not in step or not self.holds(step.get("if", ""), inputs, first != 0):
                continue
            variables = {name: self.expression(value, inputs)
                         for name, value in step.get("env", {}).items()}
            code = self.run(step["run"], variables, seen)
            report(step["name"], step["run"], variables, code, self.said[-1])
            if "id" in step:
                self.outputs[step["id"]] = {"outputs": self.output, **self.output}
            first = first or code
        return first


class Service:
    """Keeps the comments of pull request 7: a stand-in for the part of GitHub's interface that the action uses."""

    def __init__(self):
        service = self
        self.comments, self.asked, self.head = [], [], "abc"

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length))["body"] if length else None
                code, found = service.reply(self.command, self.path, body, self.headers["Authorization"])
                self.send_response(code)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, method, path, body, token):
        if token != "Bearer secret":
            return 403, {}
        path = path.removeprefix("/repos/me/kernels/")
        if method != "GET":
            self.asked.append(f"{method} {path}")
        if method == "GET" and path == "pulls/7":
            return 200, {"head": {"sha": self.head}}
        if method == "GET" and path.startswith("issues/7/comments?per_page=100&page="):
            page = int(path.rsplit("=", 1)[1]) - 1
            return 200, self.comments[100 * page:100 * page + 100]
        if method == "POST" and path == "issues/7/comments":
            self.comments.append({"id": 1000 + len(self.comments), "user": {"type": "Bot"}, "body": body})
            return 201, {}
        if method == "PATCH":
            comment = next(each for each in self.comments if path == f"issues/comments/{each['id']}")
            comment["body"] = body
            return 200, {}
        return 404, {}


def comments(job, gate, break_it, mend_it):
    """A pull request has one comment: posted when a count has changed, replaced when the report has changed."""
    service = Service()
    event = job.temp / "event.json"
    job.variables.update(GITHUB_EVENT_PATH=str(event), GITHUB_API_URL=service.address,
                         GITHUB_REPOSITORY="me/kernels")

    def pull_request(of):
        event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"repo": {"full_name": of}}}}))

    def expect(code, got, asked):
        said = "".join(job.said)
        job.said.clear()
        require(got == code, f"exit {got} in place of {code}:\n{said}")
        require(service.asked == asked, f"{service.asked} in place of {asked}:\n{said}")
        service.asked.clear()

    # Comments of other people, with the same beginning as the action's comment.
    service.comments = [{"id": k, "user": {"type": "User"}, "body": "<!-- redblue: build/stencil check "
                         "baseline.json -->"} for k in range(150)]
    gate = {**gate, "comment": "true", "token": "secret"}
    pull_request("me/kernels")
    expect(0, job.use(gate), [])
    break_it()
    expect(3, job.use(gate), ["POST issues/7/comments"])
    posted = service.comments[-1]["body"]
    require("### redblue: DIFFERENT" in posted and "| sweep |" in posted and
            "--accept 'stencil/strips" in posted, posted)
    expect(3, job.use(gate), [])
    mend_it()
    expect(0, job.use(gate), ["PATCH issues/comments/1150"])
    require("### redblue: same" in service.comments[-1]["body"], service.comments[-1]["body"])
    expect(1, job.use({**gate, "token": "another"}), [])

    # From a fork: the first workflow may not write, so it keeps the comment. The other workflow posts it, to
    # this pull request only.
    del service.comments[-1]
    pull_request("somebody/kernels")
    break_it()
    expect(3, job.use(gate), [])
    kept = pathlib.Path(job.outputs["comment"]["kept"])
    shutil.copytree(kept, job.temp / "redblue-comments/redblue-comment-1")
    job.action = ROOT / "tools/action/comment"
    after = lambda: job.use({"token": "secret"}, action=comment_action())  # noqa: E731
    event.write_text(json.dumps({"workflow_run": {"head_sha": "older"}}))
    expect(0, after(), [])
    event.write_text(json.dumps({"workflow_run": {"head_sha": "abc"}}))
    expect(0, after(), ["POST issues/7/comments"])
    require(service.comments[-1]["body"] == posted, service.comments[-1]["body"])
    expect(0, after(), [])
    (job.temp / "redblue-comments/redblue-comment-1/number").write_text("7/../../other")
    expect(1, after(), [])
    service.server.shutdown()


def run(prefix):
    with tempfile.TemporaryDirectory() as folder:
        workspace, temp = pathlib.Path(folder, "work"), pathlib.Path(folder, "temp")
        shutil.copytree(ROOT / "tests/install/stencil", workspace)
        temp.mkdir()
        key = subprocess.run([ACTION / "key"], stdout=subprocess.PIPE, text=True, check=True).stdout
        require(re.fullmatch(r"redblue-[a-z0-9.]+-\w+-[A-Za-z0-9.-]+-[0-9a-f]{16}\n", key), key)
        # The installation is where the action looks for it, as a cache leaves it. The checkout has no sources
        # and the current key, so the action must not build.
        checkout = pathlib.Path(folder, "redblue")
        shutil.copytree(ACTION, checkout / "tools/action")
        shutil.copy(ROOT / "tools/setup", checkout / "tools/setup")
        (checkout / "tools/action/key").write_text(f"#!/bin/sh\necho {key}")
        (temp / "redblue").symlink_to(prefix)
        pathlib.Path(prefix, "redblue-key").write_text(key)
        job = Job(workspace, temp, action=checkout / "tools/action")
        build = "cmake -B build >/dev/null && cmake --build build"
        gate = {"build": build, "command": "build/stencil", "baseline": "baseline.json"}

        def expect(code, got, *texts):
            said = "".join(job.said)
            job.said.clear()
            require(got == code, f"exit {got} in place of {code}:\n{said}")
            for text in texts:
                require(re.search(text, said), f"nothing is said of '{text}':\n{said}")

        expect(0, job.use({"build": build}), f"install: {key.strip()} is there")
        require(not job.summary.exists(), "a summary of nothing")
        expect(0, job.run("build/stencil record suite.json -o baseline.json"))
        expect(0, job.use(gate), "redblue: same")
        require("### redblue: same" in job.summary.read_text(), "no summary")

        # GitLab's lines, except the lines that fetch git and redblue's sources.
        template = documents()[1][".redblue-gate"]
        (workspace / ".redblue").mkdir()
        (workspace / ".redblue/source").symlink_to(checkout)
        (workspace / ".redblue/prefix").symlink_to(prefix)
        lines = [line for line in template["before_script"] + template["script"]
                 if not line.startswith(("apt-get ", "rm -rf "))]
        require(len(lines) == len(template["before_script"] + template["script"]) - 2, "other lines")
        variables = {**template["variables"], "GATE_BUILD": build, "GATE_COMMAND": "build/stencil"}
        expect(0, job.run("\n".join(lines), variables), "is there", "stencil|same, all")
        require("<testsuites" in (workspace / "redblue.xml").read_text(), "no report of GitLab's")

        # Each program is built once, and kept. A further change of the kernel puts the other program in its place.
        program = workspace / "build/stencil"
        shutil.copy2(program, temp / "same")
        source = workspace / "stencil.cpp"
        text = source.read_text()
        before = 'const Phase phase(machine, "sweep");'
        require(before in text, "nothing to break")
        broken = text.replace(
            before, before + " { const Tile once_more = machine.read(grid.block({0, 1}, {0, 1})); }")
        source.write_text(broken)
        expect(3, job.use({**gate, "suite": "suite.json"}),
               r"::error file=suite.json,line=[0-9]+,title=.*stencil/strips.*"
               r"sweep reads 11,058 -> 11,059 words")
        require("11,059" in job.summary.read_text(), "no summary of what differs")
        shutil.copy2(program, temp / "broken")
        gate["build"] = "test -x build/stencil"
        shutil.copy2(temp / "same", program)

        baseline = workspace / "baseline.json"
        recorded = baseline.read_text()
        baseline.write_text(recorded.replace('"total":', '"at_most":{"words":1},"total":', 1))
        line = recorded[:recorded.index('"total":')].count("\n") + 1
        expect(3, job.use(gate), f"::error file=baseline.json,line={line},title=.*words [0-9,]+, at most 1")
        baseline.unlink()
        expect(1, job.use(gate), "cannot read 'baseline.json'")
        baseline.write_text(recorded)
        comments(job, gate, lambda: shutil.copy2(temp / "broken", program),
                 lambda: shutil.copy2(temp / "same", program))


def install_prebuilt(prefix):
    """tools/action/install takes an installation with its key from a folder, and reports a missing one."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(ACTION, folder / "redblue/tools/action")
        (folder / "redblue/tools/action/key").write_text("#!/bin/sh\necho redblue-of-today")
        install = folder / "redblue/tools/action/install"

        def installed(key):
            with tarfile.open(folder / f"{key}.tar.gz", "w:gz", dereference=True, compresslevel=1) as archive:
                archive.add(pathlib.Path(prefix, "bin/redblue"), "bin/redblue")
            shutil.rmtree(folder / "prefix", ignore_errors=True)
            ended = subprocess.run([install, folder / "prefix"], stdout=subprocess.PIPE, text=True,
                                   stderr=subprocess.STDOUT, env={**os.environ, "GATE_PREBUILT": f"file://{folder}"})
            return ended.returncode, ended.stdout

        code, said = installed("redblue-of-yesterday")
        require(code != 0 and "redblue-of-today.tar.gz: redblue is built" in said, said)  # there are no sources
        code, said = installed("redblue-of-today")
        require(code == 0 and "redblue-of-today.tar.gz is unpacked" in said, said)
        require((folder / "prefix/redblue-key").read_text() == "redblue-of-today\n", said)


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        check()
    elif len(sys.argv) == 3 and sys.argv[1] == "run":
        run(sys.argv[2])
        install_prebuilt(sys.argv[2])
    else:
        sys.exit("usage: action.py check | run PREFIX")
