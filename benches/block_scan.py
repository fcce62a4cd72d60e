#!/usr/bin/env python3
"""Seconds that Hyperscan takes to find every literal of a file in a log, in blocks of 1 MiB; nothing where it is missing.

usage: benches/block_scan.py LITERALS LOG      needs the PyPI package hyperscan
User and system time of reading and scanning, without the start of Python and the compilation of the literals.
"""
import resource
import sys

try:
    import hyperscan
except ImportError:
    sys.exit(0)


def used():
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime


literals, log = sys.argv[1:]
with open(literals, "rb") as file:
    texts = [text for text in file.read().split(b"\n") if text]
database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
database.compile(expressions=texts, ids=list(range(len(texts))), flags=[0] * len(texts), literal=True)
began = used()
with open(log, "rb", buffering=0) as file:
    while block := file.read(1 << 20):
        database.scan(block, match_event_handler=lambda *_: None)
print(f"{used() - began:.3f}")
