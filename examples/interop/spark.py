"""Lets delta-spark read, cluster and write a lake after Lakebed, and Lakebed after it.

usage: spark.py LAKE LAKEBED_ARGUMENTS…

Changes the tables. Fails with the first line that says NOT.
"""

import json
import os
import subprocess
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession

LAKE, LAKEBED = sys.argv[1], sys.argv[2:]
FAILURES = []


def lakebed(statement):
    """Returns standard output of one statement, as text."""
    command = [*LAKEBED, "--lake", LAKE, "--json", "sql", statement]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def check(what, passed, detail=""):
    """Prints a line, and remembers a failure."""
    print(f"{what}: {'yes' if passed else 'NOT'}{f' ({detail})' if detail else ''}")
    if not passed:
        FAILURES.append(what)


def session():
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", "io.delta:delta-spark_2.13:4.0.1")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.ansi.enabled", "false")
        .getOrCreate()
    )


def path(table):
    return f"delta.`{os.path.join(LAKE, table)}`"


def ours(spark, table, version, schema):
    """A version's rows as Lakebed reads them."""
    file = tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False)
    file.write(lakebed(f"SELECT * FROM {table} VERSION AS OF {version}"))
    file.close()
    text = ", ".join(f"`{field.name}` STRING" for field in schema)
    casts = [f"CAST(`{f.name}` AS {f.dataType.simpleString()}) AS `{f.name}`" for f in schema]
    return spark.read.schema(text).json(file.name).selectExpr(*casts)


def same_rows(spark, table, version):
    theirs = spark.sql(f"SELECT * FROM {path(table)} VERSION AS OF {version}")
    mine = ours(spark, table, version, theirs.schema)
    different = theirs.exceptAll(mine).count() + mine.exceptAll(theirs).count()
    check(f"{table} version {version} has the same rows", different == 0, f"{different} differ")


def detail(spark, table):
    return spark.sql(f"DESCRIBE DETAIL {path(table)}").first().asDict()


def newest(spark, table):
    return spark.sql(f"DESCRIBE HISTORY {path(table)} LIMIT 1").first()["version"]


def optimize(spark, table):
    return spark.sql(f"OPTIMIZE {path(table)}").first()["metrics"].asDict(recursive=True)


def check_clustered(spark, table):
    """Spark sees our keys, has nothing to do, and takes our files for clustered."""
    keys = json.loads(lakebed(f"DESCRIBE DETAIL {table}"))["clusteringColumns"]
    seen = detail(spark, table)["clusteringColumns"]
    check(f"{table}: Spark sees the keys", seen == keys, f"{seen}")
    if not keys:
        return
    before = newest(spark, table)
    metrics = optimize(spark, table)
    idle = metrics["numFilesAdded"] == 0 and metrics["numFilesRemoved"] == 0
    cubes = cubes_of(spark, table)
    if len(cubes) == 1 and None not in cubes:
        check(f"{table}: Spark's OPTIMIZE has nothing to do", idle and newest(spark, table) == before)
    spark.sql(f"INSERT INTO {path(table)} SELECT * FROM {path(table)} LIMIT 50")
    clustered = sum(1 for cube in files_by_cube(spark, table) if cube is not None)
    stats = optimize(spark, table).get("clusteringStats") or {}
    found = (stats.get("inputZCubeFiles") or {}).get("numFiles")
    check(f"{table}: Spark takes our files for clustered", found == clustered, f"{found} files")
    same_rows(spark, table, newest(spark, table))
    spark.sql(f"INSERT INTO {path(table)} SELECT * FROM {path(table)} LIMIT 50")
    lakebed(f"OPTIMIZE {table}")
    same_rows(spark, table, newest(spark, table))
    lakebed(f"OPTIMIZE {table} FULL")
    same_rows(spark, table, newest(spark, table))


def files_by_cube(spark, table):
    """The cube of each live file, from the log's own snapshot."""
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        spark._jsparkSession, os.path.join(LAKE, table)
    )
    files = log.update(False, spark._jvm.scala.Option.empty(), spark._jvm.scala.Option.empty())
    adds = DataFrame(files.allFiles().toDF(), spark)
    return [row["cube"] for row in adds.selectExpr("tags['ZCUBE_ID'] AS cube").collect()]


def cubes_of(spark, table):
    return set(files_by_cube(spark, table))


def main():
    spark = session()
    spark.sparkContext.setLogLevel("ERROR")
    tables = [
        table
        for table in sorted(os.listdir(LAKE))
        if os.path.isdir(os.path.join(LAKE, table, "_delta_log"))
    ]
    for table in tables:
        for version in range(newest(spark, table) + 1):
            same_rows(spark, table, version)
    for table in tables:
        check_clustered(spark, table)
    print("Spark agrees" if not FAILURES else f"{len(FAILURES)} lines say NOT")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
