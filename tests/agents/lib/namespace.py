"""The closed room of a case: a network namespace with loopback only, and a PID namespace that ends everything with it."""
import fcntl
import os
import shutil
import socket
import struct
import subprocess

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def command():
    """The words to put before a command so that it runs inside."""
    as_user = [] if os.geteuid() == 0 else ["--map-root-user"]
    # The end of the first process in a PID namespace ends all others: no agent, hook or tmux outlives its case.
    return [shutil.which("unshare") or "unshare", *as_user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def missing():
    """The reason why this machine cannot make one, or nothing."""
    done = subprocess.run([*command(), "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"no network namespace can be made ({done.stderr.strip()})"


def bring_loopback_up():
    """Switches `lo` on, and refuses to go on where there is any other interface."""
    with open("/proc/net/dev", encoding="ascii") as table:
        links = [line.split(":")[0].strip() for line in table.readlines()[2:]]
    if links != ["lo"]:
        raise SystemExit(f"refusing to run: this place has the network interfaces {links}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = b"lo".ljust(16, b"\0")
        answer = fcntl.ioctl(sock, SIOCGIFFLAGS, struct.pack("16sH14x", name, 0))
        flags = struct.unpack("16sH14x", answer)[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", name, flags | IFF_UP))
