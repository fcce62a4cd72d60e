#!/usr/bin/env python3
"""Reads the records of one scan back, as NDJSON and as Parquet, with DuckDB or else Polars, and compares them.

usage: tests/read_back.py CORONER PATH...      CORONER is built with `--features parquet`
Without DuckDB and Polars it says so and ends well.
"""
import json, subprocess, sys, tempfile
from pathlib import Path

QUERY = "SELECT source, outcome, cause, root_line, bytes FROM '{}' ORDER BY source"


def by_duckdb(ndjson, parquet):
    import duckdb
    wide = f"read_ndjson('{ndjson}', maximum_object_size=100000000, union_by_name=true, sample_size=-1)"
    left = duckdb.sql(f"SELECT source, outcome, cause.id, root.line, examined.bytes FROM {wide} ORDER BY source")
    right = duckdb.sql(QUERY.format(parquet))
    print(duckdb.sql(f"DESCRIBE SELECT * FROM '{parquet}'"))
    return left.fetchall(), right.fetchall()


def by_polars(ndjson, parquet):
    import polars
    lines = polars.read_ndjson(ndjson, infer_schema_length=None)
    inner = lambda name, field: polars.col(name).struct.field(field)
    left = lines.select("source", "outcome", inner("cause", "id"), inner("root", "line").alias("at"),
                        inner("examined", "bytes").alias("bytes"))
    right = polars.read_parquet(parquet).select("source", "outcome", "cause", "root_line", "bytes")
    print(polars.read_parquet_schema(parquet))
    return left.sort("source").rows(), right.sort("source").rows()


def main(coroner, *paths):
    for reader in (by_duckdb, by_polars):
        with tempfile.TemporaryDirectory() as folder:
            ndjson, parquet = Path(folder) / "records.ndjson", Path(folder) / "records.parquet"
            for form, file in (("json", ndjson), ("parquet", parquet)):
                done = subprocess.run([coroner, "scan", "-q", "--format", form, "--output", file, *paths])
                assert done.returncode in (0, 4), f"{form}: status {done.returncode}"
            try:
                left, right = reader(ndjson, parquet)
            except ImportError as missing:
                print(f"skipped: {missing}")
                continue
            written = [json.loads(line) for line in ndjson.open()]
            assert left == right, [pair for pair in zip(left, right) if pair[0] != pair[1]][:3]
            assert len(left) == len(written) > 0
            print(f"{reader.__name__[3:]}: {len(left)} records, equal in both forms")
            return


if __name__ == "__main__":
    sys.exit(__doc__) if len(sys.argv) < 3 else main(*sys.argv[1:])
