"""A server that executes whatever it can make a call of: lenient.py LEDGER

No real server is as lenient in all ways at once; each way is one that some real
parser or framework has. An executed `danger` is a row of the ledger.
"""

import json
import re
import sys

sys.setrecursionlimit(100_000)


def first_wins(pairs):
    found = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def case_folded(pairs):
    return {key.lower().strip(" \t\0"): value for key, value in pairs}


def flattened(pairs):
    """What JavaScript's assignment makes of a prototype."""
    found = {}
    for key, value in pairs:
        found.update(value if key == "__proto__" and isinstance(value, dict) else {key: value})
    return found


# What JavaScript and Java trim between them.
BLANKS = "".join(map(chr, range(0x21))) + "\u00a0\u1680\u2028\u2029\u3000\ufeff"
HOOKS = [dict, first_wins, case_folded, flattened]


def texts(frame):
    """The lines that some reader sees in a frame."""
    for encoding in ("utf-8", "utf-16", "latin-1"):
        text = frame.decode(encoding, "replace")
        yield text
        yield text.replace('\\"', '"')
        yield from text.splitlines()
        yield from re.split("[\0\x1e]", text)


def values(text, hook):
    """Every value that stands in a text, garbage around it or not."""
    text = re.sub(r"/\*.*?\*/|,(?=\s*[}\]])", "", text)
    text = text.replace("\ufeff", " ").replace("'", '"')
    text = re.sub(r"(?<=[:\[,])\s*(0x[0-9a-f]+|\+\d+|0\d+|\.\d+)(?=[,}\]])", "1", text)
    decoder = json.JSONDecoder(object_pairs_hook=hook, strict=False)
    at = 0
    while (at := min((i for i in (text.find("{", at), text.find("[", at)) if i >= 0), default=-1)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):
            at += 1
            if at > 4096:
                return


def messages(value):
    if isinstance(value, list):
        for element in value:
            yield from messages(element)
    elif isinstance(value, dict):
        yield value


def word(value):
    if isinstance(value, list) and value:
        value = value[0]
    return str(value).lstrip("\0").split("\0")[0].strip(BLANKS).lower()


def called(message):
    params = message.get("params")
    if word(message.get("method")) != "tools/call":
        return None
    if isinstance(params, list):
        params = dict(zip(("name", "arguments"), params))
    return (word(params.get("name")), params.get("arguments")) if isinstance(params, dict) else None


def main():
    ledger = open(sys.argv[1], "a", buffering=1, encoding="utf-8")
    for line in sys.stdin.buffer:
        done = set()
        for text in dict.fromkeys(texts(line)):
            for hook in HOOKS:
                for value in values(text, hook):
                    for message in messages(value):
                        name, arguments = called(message) or (None, None)
                        if name == "danger" and "danger" not in done:
                            done.add("danger")
                            case = arguments.get("case") if isinstance(arguments, dict) else "?"
                            ledger.write(f"{case}\n")
                        if name == "safe" and "safe" not in done:
                            done.add("safe")
                            answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": {"content": []}}
                            print(json.dumps(answer), flush=True)


main()
