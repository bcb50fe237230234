"""Frames that try to get a call of `danger` past a policy that denies it.

Each is (name, bytes) without the line end. The name is the argument `case` of
the call, so a server's ledger tells which one got through.
"""

import json

EXACT = "exact"
ALIAS = "alias"


def attacks():
    """(name, kind, frame). An alias names the tool in a way that a rule about `danger` does not
    match but a server may understand, so only a policy that denies by default keeps it away."""
    made = []

    def add(name, frame, kind=EXACT):
        made.append((name, kind, frame.encode("utf-8", "surrogatepass") if isinstance(frame, str) else frame))

    def call(case, id="7", method='"tools/call"', tool='"danger"', arguments="", more="", params_more=""):
        arguments = '{"case":"%s"%s}' % (case, arguments)
        params = '{"name":%s,"arguments":%s%s}' % (tool, arguments, params_more)
        id = "" if id is None else '"id":%s,' % id
        return '{"jsonrpc":"2.0",%s"method":%s,"params":%s%s}' % (id, method, params, more)

    add("plain", call("plain"))
    for name, id in [("no-id", None), ("null-id", "null"), ("float-id", "1.0"), ("string-id", '"7"'), ("object-id", "{}"),
                     ("array-id", "[7]"), ("true-id", "true"), ("huge-id", "1e400"), ("long-id", '"%s"' % ("i" * 100_000))]:
        add(name, call(name, id=id))
    add("no-jsonrpc", call("no-jsonrpc").replace('"jsonrpc":"2.0",', ""))
    add("escaped-name", call("escaped-name", tool=r'"\u0064anger"'))
    add("escaped-method", call("escaped-method", method=r'"tools\/\u0063all"'))
    add("params-first", '{"params":{"arguments":{"case":"params-first"},"name":"danger"},"method":"tools/call","id":7,"jsonrpc":"2.0"}')
    add("with-result", call("with-result", more=',"result":{}'))
    add("with-error", call("with-error", more=',"error":{"code":1,"message":"x"}'))

    ping = '{"jsonrpc":"2.0","id":8,"method":"ping"}'
    for name, between in [("cr-split", "\r"), ("crcr-split", "\r\r"), ("nul-split", "\0"), ("rs-split", "\x1e"),
                          ("vt-split", "\x0b"), ("ff-split", "\x0c"), ("nel-split", "\x85"), ("ls-split", "\u2028"),
                          ("space-split", " "), ("comma-split", ",")]:
        add(name, ping + between + call(name))
    add("cr-before", "\r" + call("cr-before"))
    add("cr-inside-array", "[\r" + call("cr-inside-array") + "\r]")
    add("cr-as-blank", ping[:-1] + ',"x":\r' + call("cr-as-blank") + "\r}")
    add("content-length", "Content-Length: 99\r\r" + call("content-length"))

    def twice(name, first, second):
        add(name, call(name).replace('"method":"tools/call"', f'{first},{second}'))

    twice("method-last", '"method":"ping"', '"method":"tools/call"')
    twice("method-first", '"method":"tools/call"', '"method":"ping"')
    twice("method-escaped-twice", '"method":"ping"', r'"m\u0065thod":"tools/call"')
    for name, tools in [("name-last", ("safe", "danger")), ("name-first", ("danger", "safe"))]:
        add(name, call(name, tool='"%s","name":"%s"' % tools))
    add("params-last", call("params-last").replace('"params":', '"params":{"name":"safe"},"params":'))
    add("params-first-twice", call("params-first-twice", more=',"params":{"name":"safe"}'))
    for name, old, new in [("Method", '"method"', '"Method"'), ("METHOD", '"method"', '"METHOD"'), ("Params", '"params"', '"Params"'),
                           ("Name", '"name"', '"Name"'), ("method-blank", '"method"', '" method"'), ("method-nul", '"method"', r'"method\u0000"')]:
        add(f"key-{name}", call(f"key-{name}").replace(old, new))
    add("both-methods", call("both-methods").replace('"method":', '"method":"ping","Method":'))
    add("proto", '{"jsonrpc":"2.0","id":7,"__proto__":%s}' % call("proto"))
    add("proto-params", call("proto-params").replace('"params":{', '"params":{"__proto__":{"name":"danger","arguments":{"case":"proto-params"}},"x":{').replace("}}}", "}}}}"))

    for name, method in [("method-upper", '"TOOLS/CALL"'), ("method-space", '"tools/call "'), ("method-tab", r'"\ttools/call"'),
                         ("method-nul-tail", r'"tools/call\u0000x"'), ("method-nul-head", r'"\u0000tools/call"'),
                         ("method-bom-head", r'"\ufefftools/call"'), ("method-bom-tail", r'"tools/call\ufeff"'), ("method-array", '["tools/call"]')]:
        add(name, call(name, method=method))

    for name, value in [("nan", "NaN"), ("infinity", "Infinity"), ("minus-infinity", "-Infinity"), ("hex", "0x10"), ("plus", "+1"),
                        ("octal", "01"), ("bare-dot", ".5"), ("single-quotes", "'x'"), ("comment", "/**/1"),
                        ("lone-surrogate", r'"\ud800"'), ("raw-control", '"\x01"'), ("raw-tab", '"\t"')]:
        add(name, call(name, arguments=',"x":' + value))
    add("trailing-comma", call("trailing-comma", arguments=","))
    add("big-exponent", call("big-exponent", arguments=',"x":1e999999'))
    for depth in (65, 200, 5000):
        add(f"deep-{depth}", call(f"deep-{depth}", arguments=',"x":' + "[" * depth + "]" * depth))
    add("bom", "\ufeff" + call("bom"))
    add("two-boms", "\ufeff\ufeff" + call("two-boms"))
    add("utf16", call("utf16").encode("utf-16").replace(b"\n", b""))
    add("invalid-utf8", call("invalid-utf8", arguments=',"x":"?"').encode().replace(b"?", b"\xff"))
    add("overlong-utf8", call("overlong-utf8", arguments=',"x":"?"').encode().replace(b"?", b"\xc0\xaf"))
    add("raw-surrogate", call("raw-surrogate", arguments=',"x":"\ud800"'))

    add("array", "[" + call("array") + "]")
    add("array-with-ping", "[" + ping + "," + call("array-with-ping") + "]")
    add("nested-array", "[[" + call("nested-array") + "]]")
    add("nested-in-batch", "[" + ping + ",[" + call("nested-in-batch") + "]]")
    add("in-a-string", json.dumps(call("in-a-string")))
    for name, before, after in [("garbage-after", "", "x"), ("brace-after", "", "}"), ("text-after", "", " true"), ("comma-after", "", ","),
                                ("nul-after", "", "\0"), ("garbage-before", "x", ""), ("guard-before", ")]}',", ""), ("nul-before", "\0", "")]:
        add(name, before + call(name) + after)
    add("params-array", '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["danger",{"case":"params-array"}]}')
    add("long-blank", " " * 200_000 + call("long-blank"))
    add("huge", call("huge", arguments=',"x":"%s"' % ("h" * 9_000_000)))
    add("huge-name-last", '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"case":"huge-name-last","x":"%s"},"name":"danger"}}' % ("h" * 9_000_000))
    add("task", call("task", params_more=',"task":{"ttl":1000}'))
    add("modern", call("modern", params_more=',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'))

    for name, tool in [("alias-case", '"Danger"'), ("alias-space", '" danger "'), ("alias-tab", r'"danger\t"'), ("alias-array", '["danger"]')]:
        add(name, call(name, tool=tool), ALIAS)
    names = [name for name, _, _ in made]
    assert len(names) == len(set(names)) and not any(b"\n" in frame for _, _, frame in made)
    return made
