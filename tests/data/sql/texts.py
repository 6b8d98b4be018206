"""Writes the queries of TPC-H and TPC-DS as DuckDB prints them, for tests that read them.

Usage: python texts.py FILE

Needs duckdb==1.5.5, duckdb-extension-tpch and duckdb-extension-tpcds from PyPI (MIT). The texts are
not kept in this repository: TPC's templates have terms of their own.
"""

import glob
import json
import os
import sys

import duckdb
import duckdb_extension_tpcds
import duckdb_extension_tpch


def main(path):
    connection = duckdb.connect()
    for module in (duckdb_extension_tpch, duckdb_extension_tpcds):
        folder = os.path.dirname(module.__file__)
        (extension,) = glob.glob(f"{folder}/extensions/**/*.duckdb_extension", recursive=True)
        connection.execute(f"INSTALL '{extension}'")
        connection.execute(f"LOAD '{extension}'")
    texts = {
        suite: connection.execute(f"SELECT query_nr, query FROM {suite}_queries() ORDER BY 1").fetchall()
        for suite in ("tpch", "tpcds")
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(texts, file)


if __name__ == "__main__":
    main(sys.argv[1])
