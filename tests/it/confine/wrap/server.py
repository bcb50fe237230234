import json, os, signal, socket, ssl, subprocess, sys, time


def read(path):
    with open(path) as file:
        return file.read()


def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"


def chmod(path):
    os.chmod(path, 0o600)
    return "changed"


def dial(host, port, say=""):
    with socket.create_connection((host, port), 20) as peer:
        peer.sendall(say.encode())
        return peer.recv(100).decode()


def proxied(url):
    host, port = os.environ["HTTP_PROXY"].removeprefix("http://").split(":")
    return dial(host, int(port), f"GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


def tls(host, port, trusted, by_proxy):
    context = ssl.create_default_context(cadata=trusted)
    at = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":") if by_proxy else (host, port)
    with socket.create_connection((at[0], int(at[1])), 20) as peer:
        if by_proxy:
            peer.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += peer.recv(1)
        with context.wrap_socket(peer, server_hostname=host) as secured:
            return secured.recv(100).decode()


def resolve(name):
    return socket.getaddrinfo(name, 80)[0][4][0]


def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        return str(peer.sendto(b"x", (host, port)))


def unix():
    socket.socket(socket.AF_UNIX).close()
    return "made"


def environment():
    return json.dumps(dict(os.environ))


def kill(pid):
    os.kill(pid, signal.SIGTERM)
    return "killed"


def pid():
    return str(os.getpid())


def grandchild():
    return str(subprocess.Popen(["sleep", "600"]).pid)


def hold(host, port):
    held.append(socket.create_connection((host, port), 20))
    return held[-1].recv(1).decode()


def shut():
    directory = os.path.join(os.environ["TMPDIR"], "shut")
    os.mkdir(directory)
    open(os.path.join(directory, "file"), "w").close()
    descriptor = os.open(directory, os.O_RDONLY)
    os.fchmod(descriptor, 0)
    return directory


def leave(code):
    os._exit(code)


def forbidden():
    # A call of another architecture, in bytes: int 0x80 for getpid.
    import ctypes, mmap

    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return str(call())


held = []
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") != "tools/call":
        continue
    asked = message["params"]
    try:
        text, failed = globals()[asked["name"]](**asked["arguments"]), False
    except Exception as error:
        text, failed = f"{type(error).__name__}: {error}", True
    content = [{"type": "text", "text": text}]
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content, "isError": failed}}
    print(json.dumps(answer), flush=True)
