"""Writes which base columns statements equate, as sqlglot's scopes tell it.

Usage: python sqlglot_pairs.py SCHEMA TEXTS FILE

SCHEMA is the schema file of the tests, TEXTS what texts.py wrote. FILE gets, by suite, a list of
[name, text, pairs]: the queries of TPC-DS, and statements that this script makes up (the same ones
each time). An equality counts where it must hold for a row to pass: a conjunct of WHERE or ON, or a
part of every branch of an OR.
"""

import json
import random
import sys

from sqlglot import exp, parse_one
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope


def read_schema(path):
    kinds = {"i": "INT", "t": "TEXT", "d": "DATE", "m": "DECIMAL(7,2)"}
    schema, table = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if not line.startswith(" "):
                table = schema.setdefault(line.strip(), {})
                continue
            for column in line.split():
                name, kind = column.split(":")
                table[name] = kinds[kind]
    return schema


def plain(node):
    while isinstance(node, (exp.Paren, exp.Cast, exp.TryCast, exp.Alias)):
        node = node.this
    return node


def stated(node):
    """The equalities and memberships that hold wherever a condition does, by their text."""
    if node is None:
        return {}
    if isinstance(node, exp.Paren):
        return stated(node.this)
    if isinstance(node, exp.And):
        return {**stated(node.left), **stated(node.right)}
    if isinstance(node, exp.Or):
        left, right = stated(node.left), stated(node.right)
        return {key: value for key, value in left.items() if key in right}
    if isinstance(node, exp.Not) and isinstance(plain(node.this), exp.In):
        return {node.sql(): plain(node.this)}
    if isinstance(node, (exp.EQ, exp.In, exp.NullSafeEQ)):
        return {node.sql(): node}
    return {}


def outputs_of(scope, position):
    """The base columns of a query's column."""
    if scope.set_operation_scopes:
        left, right = scope.set_operation_scopes
        found = outputs_of(left, position)
        if isinstance(scope.expression, exp.Union):
            found = found | outputs_of(right, position)
        return found
    selects = scope.expression.selects
    if position >= len(selects):
        return set()
    return origins(selects[position], scope)


def origins(node, scope, seen=0):
    node = plain(node)
    if not isinstance(node, exp.Column) or seen > 50:
        return set()
    at = scope
    while at is not None:
        source = at.sources.get(node.table)
        if isinstance(source, exp.Table):
            return {f"{source.name}.{node.name}"}
        if isinstance(source, Scope):
            names = [select.alias_or_name for select in source.expression.selects]
            if node.name not in names:
                return set()
            return outputs_of(source, names.index(node.name))
        at = at.parent
    return set()


def pairs_of(sql, schema, dialect):
    tree = qualify(
        parse_one(sql, read=dialect),
        schema=schema,
        dialect=dialect,
        validate_qualify_columns=False,
        expand_alias_refs=False,
    )
    pairs = set()
    for scope in traverse_scope(tree):
        select = scope.expression
        if not isinstance(select, exp.Select):
            continue
        conditions = [join.args.get("on") for join in select.args.get("joins") or []]
        where = select.args.get("where")
        conditions.append(where.this if where else None)
        for condition in conditions:
            for node in stated(condition).values():
                if isinstance(node, exp.In):
                    query = node.args.get("query")
                    if query is None:
                        continue
                    inner = next(
                        (s for s in scope.subquery_scopes if s.expression is query.unnest()), None
                    )
                    right = outputs_of(inner, 0) if inner else set()
                    left = origins(node.this, scope)
                else:
                    left, right = origins(node.left, scope), origins(node.right, scope)
                    same = (
                        isinstance(plain(node.left), exp.Column)
                        and isinstance(plain(node.right), exp.Column)
                        and plain(node.left).table == plain(node.right).table
                    )
                    if same:
                        continue
                pairs |= {tuple(sorted((a, b))) for a in left for b in right}
    return sorted(pairs)


def made_up(count):
    """Statements over four tables, with what scopes are about."""
    choose = random.Random(7)
    tables = {"ta": ["id", "x", "k"], "tb": ["id", "y", "k"], "tc": ["id", "z", "x"], "td": ["id", "k", "w"]}

    def column(names):
        alias = choose.choice(list(names))
        return f"{alias}.{choose.choice(names[alias])}"

    def source(depth, number):
        alias = f"s{number}"
        kind = choose.random()
        if kind < 0.6 or depth <= 0:
            table = choose.choice(list(tables))
            return f"{table} AS {alias}", alias, tables[table]
        if kind < 0.8:
            inner, columns = query(depth - 1, number * 10)
            return f"({inner}) AS {alias}", alias, columns
        left, columns = query(depth - 1, number * 10)
        right, _ = query(depth - 1, number * 10 + 5, len(columns))
        return f"({left} UNION ALL {right}) AS {alias}", alias, columns

    def condition(names, outer, depth, number):
        kind = choose.random()
        if kind < 0.45:
            return f"{column(names)} = {column(names)}"
        if kind < 0.6:
            return f"{column(names)} = {choose.randint(1, 9)}"
        if kind < 0.7:
            return f"({column(names)} = {column(names)} OR {column(names)} > 3)"
        if kind < 0.85 and depth > 0:
            inner, _ = query(depth - 1, number * 10 + 7, 1)
            negation = choose.choice(["", "NOT "])
            return f"{column(names)} {negation}IN ({inner})"
        if depth > 0:
            alias = f"e{number}"
            table = choose.choice(list(tables))
            negation = choose.choice(["", "NOT "])
            inside = f"{alias}.{choose.choice(tables[table])} = {column(names)}"
            return f"{negation}EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {inside})"
        return f"{column(names)} < 5"

    def query(depth, number, width=None):
        names, text = {}, ""
        for index in range(choose.randint(1, 3)):
            item, alias, columns = source(depth, number * 10 + index)
            names[alias] = columns
            if index == 0:
                text = item
                continue
            join = choose.choice(["JOIN", "LEFT JOIN", "CROSS JOIN"])
            if join == "CROSS JOIN":
                text += f" CROSS JOIN {item}"
            else:
                left = {name: value for name, value in names.items() if name != alias}
                text += f" {join} {item} ON {column(left)} = {alias}.{choose.choice(columns)}"
        wheres = [condition(names, None, depth, number * 10 + index) for index in range(choose.randint(0, 2))]
        where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
        width = width or choose.randint(1, 3)
        columns = [f"c{index}" for index in range(width)]
        items = ", ".join(f"{column(names)} AS {name}" for name in columns)
        return f"SELECT {items} FROM {text}{where}", columns

    texts = []
    for number in range(count):
        inner, _ = query(2, 1)
        if choose.random() < 0.3:
            body, _ = query(1, 1)
            # The common table has the name of a table, which it hides.
            inner = f"WITH ta AS (SELECT id AS id, y AS x, k AS k FROM tb) {body}"
        texts.append((f"made-up {number}", inner))
    schema = {table: {name: "INT" for name in columns} for table, columns in tables.items()}
    return texts, schema


def main(schema_path, texts_path, out_path):
    with open(texts_path, encoding="utf-8") as file:
        tpcds = [(f"q{number}", sql) for number, sql in json.load(file)["tpcds"]]
    found = {"tpcds": [], "made_up": []}
    schema = read_schema(schema_path)
    for name, sql in tpcds:
        found["tpcds"].append([name, sql, pairs_of(sql, schema, "duckdb")])
    texts, schema = made_up(400)
    for name, sql in texts:
        found["made_up"].append([name, sql, pairs_of(sql, schema, "duckdb")])
    with open(out_path, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
