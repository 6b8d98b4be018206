"""Writes a log of many clustered files and times `OPTIMIZE` on it; see README.md.

Usage: bench.py COMMAND FOLDER [FILES]
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

VERSIONS = 9  # so that the first commit of ours is version 9 and the next one makes a checkpoint
FILE_BYTES = 128 << 20
ROWS_PER_FILE = 1_000_000
FEATURES = ["appendOnly", "invariants", "clustering", "domainMetadata"]
COLUMNS = {
    "id": "long",
    "customer": "long",
    "day": "date",
    "at": "timestamp",
    "kind": "string",
    "amount": "decimal(12,2)",
    "note": "string",
    "score": "double",
}


def schema():
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in COLUMNS.items()
    ]
    return json.dumps({"type": "struct", "fields": fields})


def first_actions():
    domain = {"clusteringColumns": [["id"], ["customer"]], "domainName": "delta.clustering"}
    yield {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE", "operationParameters": {}}}
    yield {
        "protocol": {
            "minReaderVersion": 1,
            "minWriterVersion": 7,
            "writerFeatures": FEATURES,
        }
    }
    yield {
        "metaData": {
            "id": "5f0ddc5e-6e0a-4a3c-9d5c-6a1c5a4f2b11",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema(),
            "partitionColumns": [],
            "configuration": {"delta.targetFileSize": str(FILE_BYTES)},
            "createdTime": 1,
        }
    }
    yield {
        "domainMetadata": {
            "domain": "delta.clustering",
            "configuration": json.dumps(domain),
            "removed": False,
        }
    }


def statistics(column, row):
    """Bounds of a file that holds one tile of a grid over the two keys."""
    low = {
        "id": column * 1_000,
        "customer": row * 1_000,
        "day": f"20{column % 90 + 10}-01-01",
        "at": f"20{row % 90 + 10}-01-01T00:00:00.000Z",
        "kind": f"kind-{column % 7}",
        "amount": row + 0.25,
        "note": f"a note of some length that begins every file {column:06}",
        "score": column / 8,
    }
    high = {
        "id": column * 1_000 + 999,
        "customer": row * 1_000 + 999,
        "day": f"20{column % 90 + 10}-12-31",
        "at": f"20{row % 90 + 10}-12-31T23:59:59.999Z",
        "kind": f"kind-{column % 7 + 2}",
        "amount": row + 900.75,
        "note": f"a note of some length that ends every file {column:06}",
        "score": column / 8 + 100,
    }
    nulls = {name: 0 for name in COLUMNS}
    return json.dumps(
        {"numRecords": ROWS_PER_FILE, "minValues": low, "maxValues": high, "nullCount": nulls}
    )


def add(number, side):
    tags = {
        "ZCUBE_ID": "c0000000-0000-0000-0000-000000000001",
        "ZCUBE_ZORDER_BY": '["id","customer"]',
        "LAKEBED_REWRITE": "r0",
        "LAKEBED_PLANNED_BYTES": str(FILE_BYTES),
    }
    return {
        "add": {
            "path": f"part-{number:06}-5f0ddc5e-6e0a-4a3c-9d5c-6a1c5a4f2b11-c000.zstd.parquet",
            "partitionValues": {},
            "size": FILE_BYTES,
            "modificationTime": 1,
            "dataChange": False,
            "stats": statistics(number % side, number // side),
            "tags": tags,
            "clusteringProvider": "liquid",
        }
    }


def write_log(table, files):
    log = table / "_delta_log"
    log.mkdir(parents=True)
    side = max(1, round(files**0.5))
    for version in range(VERSIONS):
        numbers = range(files * version // VERSIONS, files * (version + 1) // VERSIONS)
        with open(log / f"{version:020}.json", "w", encoding="utf-8") as out:
            actions = first_actions() if version == 0 else iter(
                [{"commitInfo": {"timestamp": 1 + version, "operation": "OPTIMIZE", "operationParameters": {}}}]
            )
            for action in actions:
                out.write(json.dumps(action) + "\n")
            for number in numbers:
                out.write(json.dumps(add(number, side)) + "\n")


def run(command, lake, statement):
    """Runs one statement; returns its report, wall seconds, CPU seconds and peak memory in MiB."""
    started = time.monotonic()
    child = subprocess.Popen(
        [command, "--lake", str(lake), "--json", "sql", statement], stdout=subprocess.PIPE
    )
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - started
    if status != 0:
        sys.exit(f"error: `{statement}` failed")
    return json.loads(text), wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    command, folder = sys.argv[1], Path(sys.argv[2])
    files = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    write_log(folder / "t", files)
    insert = (
        "INSERT INTO t SELECT x, x % 1000, DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00', "
        "'kind', 1.25, 'note', 0.5 FROM (SELECT unnest(generate_series(1, 1000)) AS x)"
    )
    steps = [
        ("log as JSON, nothing to do", "OPTIMIZE t", 0),
        ("log as JSON, an append of 1 file", insert, None),
        ("log as JSON, one new file laid out", "OPTIMIZE t", 1),
        ("checkpoint, nothing to do", "OPTIMIZE t", 0),
        ("checkpoint, an append of 1 file", insert, None),
        ("checkpoint, one new file laid out", "OPTIMIZE t", 1),
    ]
    print(f"{files} files\n{'':38}{'wall s':>8}{'CPU s':>8}{'peak MiB':>10}")
    for what, statement, bins in steps:
        report, wall, cpu, peak = run(command, folder, statement)
        if bins is not None and len(report["bins"]) != bins:
            sys.exit(f"error: {what}: expected {bins} bins, found {report['bins']}")
        print(f"{what:38}{wall:8.2f}{cpu:8.2f}{peak:10.0f}")


if __name__ == "__main__":
    main()
