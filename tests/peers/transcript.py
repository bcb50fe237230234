"""What a run looked like, without the things that differ between any two runs.

A transcript is JSON: what the client program printed, its exit code, the exit
code of what it spawned, and every frame in both directions. Clocks and random
ids are masked, long strings stand as their length and digest.
"""

import base64
import binascii
import hashlib
import json
import re


def build(client_stdout, client_exit, spawned_exit, tee, leave_out):
    """The transcript as text; frames for which `leave_out` holds are not in it."""
    seen = {
        "client": [normal(line) for line in lines_of(client_stdout)],
        "client_exit": client_exit,
        "spawned_exit": spawned_exit,
        "c2s": [normal(f) for f in tee.c2s_frames() if not leave_out(f)],
        "s2c": [normal(f) for f in tee.s2c_frames() if not leave_out(f)],
    }
    return json.dumps(seen, indent=1, sort_keys=True) + "\n"


class Tee:
    """The three files that tee.py leaves."""

    def __init__(self, prefix):
        self.c2s = read(f"{prefix}.c2s")
        self.s2c = read(f"{prefix}.s2c")
        code = read(f"{prefix}.exit")
        self.exit = int(code) if code else None

    def c2s_frames(self):
        return lines_of(self.c2s)

    def s2c_frames(self):
        return lines_of(self.s2c)

    def tool_calls(self):
        flat = [m for f in self.c2s_frames() for m in (f if isinstance(f, list) else [f])]
        return sum(1 for m in flat if isinstance(m, dict) and m.get("method") == "tools/call")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def lines_of(data):
    """Each line as JSON, or as its text where it is none; an unfinished last line is marked."""
    *whole, rest = data.split(b"\n")
    parsed = [parse(line) for line in whole]
    return parsed + [{"unfinished": parse(rest)}] if rest else parsed


def parse(line):
    try:
        return json.loads(line)
    except ValueError:
        return {"text": line.decode("utf-8", "backslashreplace")}


def normal(value):
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, dict):
        if SIMULATED.fullmatch(str(value.get("data"))):
            value = value | {"data": "<random>", "level": "<random>"}
        return {name: masked(name, item) for name, item in value.items()}
    return shortened(value) if isinstance(value, str) else value


def masked(name, value):
    """Members that are random by nature go by name, everything else by shape."""
    if name in RANDOM_MEMBERS and isinstance(value, str):
        return f"<{name}>"
    if name == "blob" and isinstance(value, str):
        try:
            return {"base64": normal(base64.b64decode(value, validate=True).decode())}
        except (binascii.Error, UnicodeDecodeError):
            pass
    return normal(value)


def shortened(text):
    for pattern, mask in MASKS if len(text) <= MASKED_CHARS else ():
        text = pattern.sub(mask, text)
    if len(text) <= SHOWN_CHARS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:40]}… <{len(text)} characters, sha256 {digest}>"


RANDOM_MEMBERS = {"requestState", "taskId"}
SIMULATED = re.compile(r"\w+[- ]level[- ]message")
MASKS = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4}( \([^)]*\))?"), "<time>"),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d [AP]M\b"), "<time>"),
    (re.compile(r'"day_of_week": *"\w+"'), '"day_of_week": "<day>"'),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
]
SHOWN_CHARS = 4096
# Nothing longer carries a clock, and the patterns would take seconds.
MASKED_CHARS = 1 << 20
