#!/usr/bin/env python3
"""check_schema.py SCHEMA REPORT...: holds JSON reports to a schema. It knows the part of JSON Schema
that docs/report.schema.json uses and refuses any other word, so that no rule is passed over. Where the
package jsonschema is installed, that has to come to the same verdict. Exit 1 if a report breaks a rule."""

import json
import re
import sys

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
NOTES = {"$schema", "$defs", "title", "description"}


def unique(pairs):
    """An object whose keys come once each: readers take the first or the last of two."""
    if len(dict(pairs)) < len(pairs):
        sys.exit(f"a key comes twice among {[key for key, _ in pairs]}")
    return dict(pairs)


def is_kind(value, kind):
    if kind in ("number", "integer"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (kind == "number" or value == int(value))
    return isinstance(value, KINDS[kind])


def faults(value, rule, root, at):
    """What is wrong with `value`, a line each."""
    for word, wanted in rule.items():
        if word in NOTES or word == "then":
            continue
        if word == "$ref":
            yield from faults(value, root["$defs"][wanted.removeprefix("#/$defs/")], root, at)
        elif word == "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            if not any(is_kind(value, kind) for kind in kinds):
                yield f"{at}: {value!r:.60} is not of type {wanted}"
        elif word == "const" or word == "enum":
            if value not in ([wanted] if word == "const" else wanted):
                yield f"{at}: {value!r:.60} is not {wanted}"
        elif word == "minimum":
            if is_kind(value, "number") and value < wanted:
                yield f"{at}: {value} is below {wanted}"
        elif word in ("minItems", "maxItems"):
            if isinstance(value, list) and (len(value) < wanted if word == "minItems" else len(value) > wanted):
                yield f"{at}: {len(value)} items, {word} is {wanted}"
        elif word == "pattern":
            if isinstance(value, str) and not re.search(wanted, value):
                yield f"{at}: {value!r} does not match {wanted}"
        elif word == "required":
            for key in wanted:
                if isinstance(value, dict) and key not in value:
                    yield f"{at}: no {key}"
        elif word == "properties":
            for key, inner in wanted.items():
                if isinstance(value, dict) and key in value:
                    yield from faults(value[key], inner, root, f"{at}.{key}")
        elif word == "items":
            for i, item in enumerate(value if isinstance(value, list) else []):
                yield from faults(item, wanted, root, f"{at}[{i}]")
        elif word == "allOf":
            for inner in wanted:
                yield from faults(value, inner, root, at)
        elif word == "anyOf":
            ways = [list(faults(value, inner, root, at)) for inner in wanted]
            if all(ways):
                yield from min(ways, key=len)
        elif word == "if":
            if not list(faults(value, wanted, root, at)):
                yield from faults(value, rule["then"], root, at)
        else:
            sys.exit(f"the schema uses {word!r}, which check_schema.py does not know; teach it")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    try:
        import jsonschema

        judge = jsonschema.Draft202012Validator(schema) if hasattr(jsonschema, "Draft202012Validator") else None
    except ImportError:
        judge = None
    bad = 0
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as file:
            report = json.load(file, object_pairs_hook=unique)
        found = list(faults(report, schema, schema, "report"))
        bad += bool(found)
        print("\n".join(f"{name}: {line}" for line in found), end="\n" if found else "")
        if judge and judge.is_valid(report) == bool(found):
            sys.exit(f"{name}: jsonschema does not agree: {[e.message for e in judge.iter_errors(report)][:3]}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
