#!/usr/bin/env python3
"""Scans a generated archive of launch logs: how fast, in how much memory, and whether a scan that is killed loses anything.

  benches/scan.py make DIR [LOGS]    write LOGS (20,000) logs below DIR: launches of corpus/ with other hosts, pids,
                                     times, addresses, models and chatter
  benches/scan.py speed DIR          logs/s, MB/s and peak memory on 1 and on 2 cores, next to ripgrep
  benches/scan.py kill DIR           kill a scan half-way, interrupt the next one, resume: no record lost, none double
  benches/scan.py memory DIR         peak memory of scans of the first 1 %, 10 % and 100 % of the logs

BIN names the program (target/release/coroner), LITERALS a file of texts for ripgrep (as side_by_side.sh writes it).
"""
import hashlib, json, os, random, re, shutil, signal, subprocess, sys, tempfile, time
from datetime import datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = os.environ.get("BIN", str(ROOT / "target/release/coroner"))
LITERALS = os.environ.get("LITERALS")
PER_FOLDER = 250

PID = re.compile(rb"pid=\d+")
HOST = re.compile(rb"\b(node|gpu|worker|host)-([a-z]|\d{1,3})\b")
ADDRESS = re.compile(rb"0x[0-9a-f]{6,}")
STAMP = re.compile(rb"\b(?:(20\d\d)-)?(\d\d)-(\d\d)([ T])(\d\d):(\d\d):(\d\d)")
CHATTER = [
    b"INFO: 10.0.%d.%d:%d - \"GET /health HTTP/1.1\" 503 Service Unavailable\n",
    b"[monitor] sample %d: 0 running, %d waiting, port %d\n",
    b"telemetry sent %d of %d records in %d ms\n",
]


def varied(text, rng):
    """The log of the same failure of another launch."""
    names, shift = {}, timedelta(seconds=rng.randrange(86_400 * 300))

    def other(match, new):
        return names.setdefault(match.group(), new())

    def moved(match):
        year, month, day, gap, *clock = match.groups()
        try:
            then = datetime(int(year or 2024), int(month), int(day), *map(int, clock)) - shift
        except ValueError:
            return match.group()
        date = f"{then:%Y-}" if year else ""
        return f"{date}{then:%m-%d}{gap.decode()}{then:%H:%M:%S}".encode()

    text = PID.sub(lambda m: other(m, lambda: b"pid=%d" % rng.randrange(100, 4_000_000)), text)
    text = HOST.sub(lambda m: other(m, lambda: m.group(1) + b"-%d" % rng.randrange(1000)), text)
    text = ADDRESS.sub(lambda m: other(m, lambda: b"0x%012x" % rng.randrange(1 << 47)), text)
    text = STAMP.sub(moved, text)
    lines = text.splitlines(keepends=True)
    # Between what programs other than the engine say; never inside of a traceback, nor behind the end.
    spots = [n for n, line in enumerate(lines[1:], 1) if b" INFO " in line[:60] and b" INFO " in lines[n - 1][:60]]
    for at in sorted(rng.choices(spots, k=rng.randrange(40)) if spots else [], reverse=True):
        lines.insert(at, rng.choice(CHATTER) % tuple(rng.randrange(255) for _ in range(3)))
    return b"".join(lines)


def make(folder, logs):
    cases = sorted(p for p in (ROOT / "corpus").iterdir() if p.suffix == ".log")
    texts = [p.read_bytes() for p in cases]
    rng, size = random.Random(20), 0
    for n in range(logs):
        at = n % len(texts)
        path = Path(folder) / f"cluster-{n % 7}" / f"{n // PER_FOLDER:04}" / f"{n:06}-{cases[at].stem}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        size += path.write_bytes(varied(texts[at], rng))
    print(f"{logs} logs, {size / 1e6:.0f} MB")


def files(folder):
    found = [p for p in Path(folder).rglob("*") if p.is_file()]
    return len(found), sum(p.stat().st_size for p in found)


def run(*command):
    """Wall and CPU seconds and the peak of memory in MiB."""
    began = time.monotonic()
    with open(os.devnull, "w") as null:
        child = subprocess.Popen(command, stdout=null, stderr=null)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode in (0, 1, 4), f"{command}: status {child.returncode}"
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def row(name, logs, size, figures):
    wall, cpu, peak = figures
    print(f"{name:<16}{wall:8.1f} s {cpu:8.1f} s CPU {logs / wall:8.0f} logs/s {size / wall / 1e6:7.1f} MB/s "
          f"{logs / cpu:8.0f} logs/CPU s {size / cpu / 1e6:7.1f} MB/CPU s {peak:7.0f} MiB")


def speed(folder):
    logs, size = files(folder)
    print(f"{logs} logs, {size / 1e6:.0f} MB; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    for jobs in (1, 2):
        row(f"coroner, {jobs}", logs, size, run(BIN, "scan", "--jobs", str(jobs), folder))
    if LITERALS and shutil.which("rg"):
        for jobs in (1, 2):
            row(f"ripgrep, {jobs}", logs, size, run("rg", f"-j{jobs}", "-c", "-F", "-f", LITERALS, folder))
    else:
        print("without ripgrep: it is not there, or LITERALS names no texts")


def memory(folder):
    found = sorted(str(p) for p in Path(folder).rglob("*") if p.is_file())
    for part in (100, 10, 1):
        some = found[:: part]
        with tempfile.TemporaryDirectory() as links:
            for n, path in enumerate(some):
                at = Path(links) / str(n // PER_FOLDER)
                at.mkdir(exist_ok=True)
                os.link(path, at / f"{n}.log") if os.stat(links).st_dev == os.stat(path).st_dev else shutil.copy(path, at)
            row(f"{len(some)} logs", len(some), files(links)[1], run(BIN, "scan", links))


def lines(path):
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def broken_off(command, partial, until, sign):
    """Runs until the unfinished output holds so many records, then sends a signal."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None and (not partial.exists() or lines(partial) < until):
        time.sleep(0.05)
    assert child.poll() is None, "the scan was over before it could be broken off"
    child.send_signal(sign)
    status = child.wait()
    print(f"{signal.Signals(sign).name} at {lines(partial)} records: status {status}")
    return status


def kill(folder):
    logs, _ = files(folder)
    with tempfile.TemporaryDirectory() as out:
        whole, file = Path(out) / "whole.ndjson", Path(out) / "records.ndjson"
        command = [BIN, "scan", "--resume", "--output", str(file), folder]
        assert broken_off(command, file.with_name("records.ndjson.partial.1"), logs // 2, signal.SIGKILL) == -signal.SIGKILL
        assert broken_off(command, file.with_name("records.ndjson.partial.2"), logs * 3 // 4, signal.SIGINT) == 130
        began = time.monotonic()
        status = subprocess.run(command, stderr=subprocess.DEVNULL).returncode
        print(f"resumed to the end in {time.monotonic() - began:.1f} s: status {status}")
        began = time.monotonic()
        subprocess.run(command, stderr=subprocess.DEVNULL)
        print(f"resumed with nothing new in {time.monotonic() - began:.1f} s")
        subprocess.run([BIN, "scan", "--output", str(whole), folder], stderr=subprocess.DEVNULL)
        sources = [json.loads(line)["source"] for line in file.open()]
        assert len(sources) == len(set(sources)) == logs, f"{len(sources)} records, {len(set(sources))} sources, {logs} logs"
        same = hashlib.sha256(whole.read_bytes()).digest() == hashlib.sha256(file.read_bytes()).digest()
        assert same, "the resumed records are not those of one uninterrupted scan"
        assert sorted(p.name for p in Path(out).iterdir()) == ["records.ndjson", "whole.ndjson"]
        print(f"{logs} records, none lost, none double, byte by byte those of one uninterrupted scan")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", folder, *rest]:
            make(folder, int(rest[0]) if rest else 20_000)
        case ["speed", folder]:
            speed(folder)
        case ["kill", folder]:
            kill(folder)
        case ["memory", folder]:
            memory(folder)
        case _:
            sys.exit(__doc__)
