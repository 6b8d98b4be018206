"""Reads a lake with deltalake (Python) and DuckDB and compares every row with what Lakebed reads.

usage: check.py LAKE LAKEBED_ARGUMENTS…
"""

import json
import os
import subprocess
import sys
import tempfile

import deltalake
import duckdb
import duckdb_extension_delta

LAKE, LAKEBED = sys.argv[1], sys.argv[2:]


def lakebed(statement):
    """Returns standard output of one statement, as bytes."""
    command = [*LAKEBED, "--lake", LAKE, "--json", "sql", statement]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def connect():
    """Opens DuckDB with its delta extension, from the package and not from the network."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    root = os.path.dirname(duckdb_extension_delta.__file__)
    name = os.path.join(root, "extensions", f"v{duckdb.__version__}", "delta.duckdb_extension")
    connection.execute(f"LOAD '{name}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def differing_rows(connection, table, version):
    """Counts rows that one of the two has and the other has not."""
    scan = f"delta_scan('{LAKE}/{table}', version = {version})"
    columns = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(lakebed(f"SELECT * FROM {table} VERSION AS OF {version}"))
        file.flush()
        types = ", ".join(f"\"{name}\": 'VARCHAR'" for name, *_ in columns)
        casts = ", ".join(
            f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind, *_ in columns
        )
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE ours AS SELECT {casts} FROM read_json('{file.name}', "
            f"format = 'newline_delimited', columns = {{{types}}})"
        )
    theirs = f"SELECT * FROM {scan}"
    rows, missing, extra = connection.execute(
        f"SELECT (SELECT count(*) FROM ours), "
        f"(SELECT count(*) FROM ({theirs} EXCEPT ALL SELECT * FROM ours)), "
        f"(SELECT count(*) FROM (SELECT * FROM ours EXCEPT ALL {theirs}))"
    ).fetchone()
    return rows, missing + extra


def counted_by_deltalake(table, version):
    """Counts a version's rows with deltalake."""
    opened = deltalake.DeltaTable(os.path.join(LAKE, table), version=version)
    answer = deltalake.QueryBuilder().register("t", opened).execute("SELECT count(*) AS n FROM t")
    return sum(batch.column("n")[0].as_py() for batch in answer)


def main():
    connection = connect()
    failures = 0
    for table in sorted(os.listdir(LAKE)):
        if not os.path.isdir(os.path.join(LAKE, table, "_delta_log")):
            continue
        newest = json.loads(lakebed(f"DESCRIBE DETAIL {table}"))["version"]
        for version in range(newest + 1):
            rows, different = differing_rows(connection, table, version)
            counted = counted_by_deltalake(table, version)
            same = different == 0 and counted == rows
            failures += not same
            print(
                f"{table} version {version}: {rows} rows; DuckDB: {different} differ; "
                f"deltalake: {counted} rows{'' if same else '  <-- NOT THE SAME'}"
            )
    print("every row is the same" if failures == 0 else f"{failures} versions differ")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
