"""Times OPTIMIZE of Lakebed, delta-rs and delta-spark on the same files and prints ratios.

Every job runs in a process of its own. Wall time is that of the statement (Spark and Python are started
and warm before the clock starts; for Lakebed it is the whole process), CPU seconds and the peak of the
resident memory are those of the process and its children, and of the statement where it can be told.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import deltalake
import duckdb
import duckdb_extension_tpch
import psutil

KEYS = ["l_partkey", "l_shipdate"]
FILE_BYTES = 64 << 20
RANGES = 200
SPARK_JARS = "io.delta:delta-spark_2.13:4.0.1"


def measured(command, environment=None):
    """Runs a command; returns its standard output, wall and CPU seconds, and the peak of its memory."""
    started = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    peak = 0
    done = threading.Event()

    def watch():
        nonlocal peak
        root = psutil.Process(process.pid)
        while not done.is_set():
            resident = 0
            try:
                for member in [root, *root.children(recursive=True)]:
                    resident += member.memory_info().rss
            except psutil.Error:
                pass
            peak = max(peak, resident)
            done.wait(0.02)

    before = os.times()
    watcher = threading.Thread(target=watch)
    watcher.start()
    out, err = process.communicate()
    done.set()
    watcher.join()
    after = os.times()
    if process.returncode != 0:
        sys.exit(f"error: {' '.join(command)} failed with exit code {process.returncode}\n{err}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return out, {"wall": time.monotonic() - started, "cpu": cpu, "peak": peak}


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = os.path.join(options.work, f"sf{options.scale_factor:g}")
        os.makedirs(self.work, exist_ok=True)
        self.base = os.path.join(self.work, "base", "lineitem")
        self.rows = {}
        self.domains = None

    def sql(self, lake, *statements):
        command = [self.options.lakebed, "--lake", lake, "sql", *statements, "--json"]
        return measured(command)

    def generate(self):
        """Writes the table that everybody starts from, in the order that TPC-H's generator has."""
        if os.path.exists(os.path.join(self.work, "base", "done")):
            return
        shutil.rmtree(os.path.join(self.work, "base"), ignore_errors=True)
        connection = duckdb.connect(
            config={"memory_limit": "4GB", "allow_unsigned_extensions": "true"}
        )
        folder = os.path.join(os.path.dirname(duckdb_extension_tpch.__file__), "extensions")
        extension = os.path.join(folder, f"v{duckdb.__version__}", "tpch.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"CALL dbgen(sf = {self.options.scale_factor})")
        reader = connection.execute("SELECT * FROM lineitem").to_arrow_reader(100_000)
        deltalake.write_deltalake(
            self.base,
            reader,
            target_file_size=FILE_BYTES,
            configuration={"delta.targetFileSize": str(FILE_BYTES)},
        )
        open(os.path.join(self.work, "base", "done"), "w").close()

    def copy(self, name):
        """Gives an engine a table of its own; data files are never changed in place, so links do."""
        lake = os.path.join(self.work, name)
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(self.base, os.path.join(lake, "lineitem"), copy_function=os.link)
        return lake

    def files(self, lake):
        table = deltalake.DeltaTable(os.path.join(lake, "lineitem"))
        return table.get_add_actions(flatten=True)

    def digest(self, lake):
        """A checksum of the table's rows that their order does not change."""
        table = deltalake.DeltaTable(os.path.join(lake, "lineitem"))
        rows = duckdb.read_parquet([p.removeprefix("file://") for p in table.file_uris()])
        rows = rows.project(", ".join(sorted(rows.columns)))
        return duckdb.sql("SELECT count(*), bit_xor(hash(rows)) FROM rows").fetchone()

    def skipping(self, lake):
        """Mean share of rows that the files' bounds spare a query, over random ranges of the keys."""
        actions = self.files(lake)
        columns = {name: actions.column(name).to_pylist() for name in actions.schema.names}
        rows = columns["num_records"]
        bounds = {key: list(zip(columns[f"min.{key}"], columns[f"max.{key}"])) for key in KEYS}
        spared = []
        for wanted in self.ranges():
            read = 0
            for position, count in enumerate(rows):
                meets = all(
                    low <= bounds[key][position][1] and bounds[key][position][0] <= high
                    for key, (low, high) in wanted.items()
                )
                read += count if meets else 0
            spared.append(1 - read / sum(rows))
        return sum(spared) / len(spared)

    def ranges(self):
        """Ranges over one key or both, of a thousandth to a tenth of each key's values."""
        dice = random.Random(7)
        if self.domains is None:
            paths = [p.removeprefix("file://") for p in deltalake.DeltaTable(self.base).file_uris()]
            base = duckdb.read_parquet(paths)
            sample = duckdb.sql(
                f"SELECT {', '.join(KEYS)} FROM base USING SAMPLE reservoir(10001 ROWS) REPEATABLE (7)"
            ).fetchall()
            self.domains = {key: sorted(column) for key, column in zip(KEYS, zip(*sample))}
        result, domains = [], self.domains
        for _ in range(RANGES):
            chosen = dice.choice([[KEYS[0]], [KEYS[1]], KEYS])
            wanted = {}
            for key in chosen:
                width = int(10_000 * 10 ** dice.uniform(-3, -1))
                start = dice.randrange(0, 10_000 - width)
                wanted[key] = (domains[key][start], domains[key][start + width])
            result.append(wanted)
        return result

    def outcome(self, name, lake, figures):
        actions = self.files(lake)
        sizes = actions.column("size_bytes").to_pylist()
        figures.update(files=len(sizes), bytes=sum(sizes), skipping=self.skipping(lake))
        self.rows[name] = self.digest(lake)
        return figures


def lakebed_copy(bench):
    lake = bench.copy("copy")
    statement = (
        "CREATE TABLE plain_copy TBLPROPERTIES ('delta.targetFileSize' = '%d') AS SELECT * FROM lineitem"
        % FILE_BYTES
    )
    _, figures = bench.sql(lake, statement)
    return figures


def lakebed_full(bench):
    lake = bench.copy("lakebed")
    bench.sql(lake, f"ALTER TABLE lineitem CLUSTER BY ({', '.join(KEYS)})")
    _, figures = bench.sql(lake, "OPTIMIZE lineitem FULL")
    return bench.outcome("lakebed", lake, figures)


def child(bench, name, lake):
    """Runs one of the functions below in a process of its own; the statement's figures come from it."""
    options = bench.options
    command = [sys.executable, __file__, "--lakebed", options.lakebed, "--work", options.work]
    command += ["--scale-factor", str(options.scale_factor), "--child", name, "--lake", lake]
    out, whole = measured(command)
    figures = json.loads(out.splitlines()[-1])
    return {"peak": whole["peak"], **figures}


def tree_cpu():
    used = 0.0
    root = psutil.Process()
    for member in [root, *root.children(recursive=True)]:
        times = member.cpu_times()
        used += times.user + times.system
    return used


def timed(work):
    cpu, started = tree_cpu(), time.monotonic()
    work()
    return {"wall": time.monotonic() - started, "cpu": tree_cpu() - cpu}


def delta_rs_child(lake):
    table = deltalake.DeltaTable(os.path.join(lake, "lineitem"))
    return timed(lambda: table.optimize.z_order(KEYS, target_size=FILE_BYTES))


def spark_child(lake):
    from pyspark.sql import SparkSession

    memory = max(2, min(12, psutil.virtual_memory().total // 2 >> 30))
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", SPARK_JARS)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.driver.memory", f"{memory}g")
        .config("spark.ui.enabled", "false")
        .config("spark.databricks.delta.optimize.minFileSize", str(FILE_BYTES))
        .config("spark.databricks.delta.optimize.maxFileSize", str(FILE_BYTES))
        .getOrCreate()
    )
    table = f"delta.`{os.path.join(lake, 'lineitem')}`"
    spark.sql(f"SELECT count(*), max(l_comment) FROM {table}").collect()
    return timed(lambda: spark.sql(f"OPTIMIZE {table} FULL").collect())


def delta_rs_full(bench):
    lake = bench.copy("delta-rs")
    return bench.outcome("delta-rs", lake, child(bench, "delta-rs", lake))


def spark_full(bench):
    lake = bench.copy("delta-spark")
    bench.sql(lake, f"ALTER TABLE lineitem CLUSTER BY ({', '.join(KEYS)})")
    return bench.outcome("delta-spark", lake, child(bench, "delta-spark", lake))


def bins(out):
    document = json.loads(out)
    reports = document if isinstance(document, list) else [document]
    return [b for report in reports for b in report.get("bins", [])]


def table_bytes(bench, lake):
    return sum(bench.files(lake).column("size_bytes").to_pylist())


def append_statement(bench, share, seed):
    """A share of the table's rows, spread over all of it."""
    modulus = round(1 / share)
    source = bench.base
    return (
        f"INSERT INTO lineitem SELECT * FROM delta.`{source}` "
        f"WHERE (l_orderkey * 31 + l_linenumber * 17 + {seed}) % {modulus} = 0"
    )


def append_one(bench, full):
    """One per cent more rows into the clustered table, then OPTIMIZE."""
    lake = os.path.join(bench.work, "lakebed")
    before = table_bytes(bench, lake)
    bench.sql(lake, append_statement(bench, 0.01, 0))
    out, figures = bench.sql(lake, "OPTIMIZE lineitem")
    rewritten = sum(b["bytes_in"] for b in bins(out))
    return {
        "append_rewritten_share": rewritten / before,
        "append_time_share": figures["wall"] / full["wall"],
    }


def append_many(bench, rounds):
    """Appends of one per cent each, with OPTIMIZE after each."""
    lake = bench.copy("appends")
    bench.sql(lake, f"ALTER TABLE lineitem CLUSTER BY ({', '.join(KEYS)})", "OPTIMIZE lineitem FULL")
    start, rewritten = table_bytes(bench, lake), 0
    appended = 0
    for seed in range(rounds):
        before = table_bytes(bench, lake)
        bench.sql(lake, append_statement(bench, 0.01, seed + 1))
        appended += table_bytes(bench, lake) - before
        out, _ = bench.sql(lake, "OPTIMIZE lineitem")
        rewritten += sum(b["bytes_in"] for b in bins(out))
    skipping, files = bench.skipping(lake), bench.files(lake).num_rows
    bench.sql(lake, "OPTIMIZE lineitem FULL")
    full_skipping = bench.skipping(lake)
    return {
        "appends": rounds,
        "appends_bytes_per_byte_before": appended / start,
        "appends_rewritten_per_appended": rewritten / max(1, appended),
        "appends_files": files,
        "appends_files_after_full": bench.files(lake).num_rows,
        "appends_skipping": skipping,
        "appends_skipping_after_full": full_skipping,
        "appends_skipping_share_lost": 1 - skipping / full_skipping,
    }


CHILDREN = {"delta-rs": delta_rs_child, "delta-spark": spark_child}
ENGINES = {"lakebed": lakebed_full, "delta-rs": delta_rs_full, "delta-spark": spark_full}
GOALS = [
    ("wall_vs_delta_rs", 1 / 3),
    ("wall_vs_delta_spark", 1 / 4),
    ("wall_vs_copy", 1.5),
    ("bytes_vs_delta_spark", 1.0),
    ("append_rewritten_share", 0.03),
    ("append_time_share", 0.05),
    ("appends_rewritten_per_appended", 4.0),
    ("appends_skipping_share_lost", 0.1),
]


def compare(bench, options):
    results = {"copy": lakebed_copy(bench)}
    for name in options.engines:
        results[name] = ENGINES[name](bench)
        print(f"{name}: {results[name]}", file=sys.stderr)
    if len(set(bench.rows.values())) != 1:
        sys.exit(f"error: the engines left different rows: {bench.rows}")
    ours = results["lakebed"]
    figures = {"wall_vs_copy": ours["wall"] / results["copy"]["wall"]}
    figures["cpu_vs_copy"] = ours["cpu"] / results["copy"]["cpu"]
    for name in options.engines:
        if name == "lakebed":
            continue
        other, label = results[name], name.replace("-", "_")
        for figure in ["wall", "cpu", "peak", "bytes"]:
            figures[f"{figure}_vs_{label}"] = ours[figure] / other[figure]
        figures[f"skipping_minus_{label}"] = ours["skipping"] - other["skipping"]
    figures.update(append_one(bench, ours))
    if options.appends:
        figures.update(append_many(bench, options.appends))
    return results, figures


def show(results, figures):
    print("| job | wall | CPU | peak memory | files | output | rows skipped |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    ours = results["lakebed"]
    for name, row in results.items():
        cells = [f"{row['wall'] / ours['wall']:.2f}", f"{row['cpu'] / ours['cpu']:.2f}"]
        cells.append(f"{row['peak'] / ours['peak']:.2f}")
        if "files" in row:
            cells += [str(row["files"]), f"{row['bytes'] / ours['bytes']:.2f}", f"{row['skipping']:.3f}"]
        else:
            cells += ["", "", ""]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\nWall, CPU, memory and output as multiples of Lakebed's.\n")
    for figure, value in figures.items():
        goal = dict(GOALS).get(figure)
        verdict = "" if goal is None else f"  goal at most {goal:.3f}: {'met' if value <= goal else 'NOT MET'}"
        print(f"{figure} = {value:.3f}{verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lakebed", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--scale-factor", type=float, default=1.0)
    parser.add_argument("--appends", type=int, default=0, help="also this many appends, each with OPTIMIZE")
    parser.add_argument("--engines", default="lakebed,delta-rs,delta-spark")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--lake", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(CHILDREN[options.child](options.lake)))
        return
    options.engines = options.engines.split(",")
    if shutil.which("java") is None and "delta-spark" in options.engines:
        print("note: no Java, so delta-spark is left out", file=sys.stderr)
        options.engines.remove("delta-spark")
    bench = Bench(options)
    bench.generate()
    results, figures = compare(bench, options)
    if options.json:
        print(json.dumps({"results": results, "figures": figures}))
    else:
        show(results, figures)


if __name__ == "__main__":
    main()
