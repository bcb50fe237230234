"""Runs a server and records every byte of its stdin and stdout.

    tee.py --record PREFIX -- CMD...

PREFIX.c2s holds what the client sent, PREFIX.s2c what the server answered and
PREFIX.exit the server's exit code (128+n when signal n ended it). The bytes
are passed on unchanged. Standard library only: it must run under any Python 3.
"""

import os
import signal
import subprocess
import sys
import threading


def main():
    at = sys.argv.index("--")
    if sys.argv[1] != "--record" or at != 3:
        sys.exit("usage: tee.py --record PREFIX -- CMD...")
    prefix, command = sys.argv[2], sys.argv[at + 1 :]
    # Opened before the server exists, so that a killed run still leaves all three.
    c2s, s2c = create(prefix + ".c2s"), create(prefix + ".s2c")
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: pass_on(server, n))
    threading.Thread(target=pump, args=(0, server.stdin.fileno(), c2s, server.stdin), daemon=True).start()
    outward = threading.Thread(target=pump, args=(server.stdout.fileno(), 1, s2c, None), daemon=True)
    outward.start()
    code = server.wait()
    # A grandchild can hold stdout open after the server is gone: wait, but not for ever.
    outward.join(DRAIN_SECONDS)
    code = 128 - code if code < 0 else code
    os.write(create(prefix + ".exit"), f"{code}\n".encode())
    os._exit(code)


def create(path):
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)


def pass_on(server, number):
    if server.poll() is None:
        server.send_signal(number)


def pump(source, sink, record, closing):
    """Copies until end of file. Recording comes first: what was passed on is always recorded."""
    open_sink = True
    while True:
        chunk = os.read(source, CHUNK_BYTES)
        if not chunk:
            break
        write_all(record, chunk)
        try:
            if open_sink:
                write_all(sink, chunk)
        except OSError:
            # The reader is gone. Keep draining, so that the writer ends by itself.
            open_sink = False
    if closing is not None:
        try:
            closing.close()
        except OSError:
            pass
    else:
        os.close(sink)


def write_all(sink, chunk):
    view = memoryview(chunk)
    while view:
        view = view[os.write(sink, view) :]


CHUNK_BYTES = 65536
DRAIN_SECONDS = 5

if __name__ == "__main__":
    main()
