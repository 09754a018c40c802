"""Compares requests with the Bot API as the package `aiogram` describes it: every method and every type.

Reads lines of JSON from the file that is named; prints what does not fit, and how many did.
"""

import json
import re
import sys

import aiogram.methods
from pydantic import BaseModel, ValidationError


def model_of(method):
    name = re.sub(r"^.", lambda first: first.group().upper(), method)
    return getattr(aiogram.methods, name, None)


def plain(body):
    """A form as it would be in JSON: Telegram reads what looks like JSON in its fields, and files by their names."""
    for name, value in body.items():
        if isinstance(value, dict) and {"file", "bytes"} <= value.keys():
            yield name, f"attach://{name}"
        elif isinstance(value, str) and value[:1] in "[{":
            try:
                yield name, json.loads(value)
            except ValueError:
                yield name, value
        elif value in ("true", "false"):
            yield name, value == "true"
        else:
            yield name, value


def strangers(value, where):
    """Fields that no type has."""
    if isinstance(value, BaseModel):
        for name in value.model_extra or {}:
            yield f"{where}.{name}"
        for name in type(value).model_fields:
            yield from strangers(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, (list, tuple)):
        for place, one in enumerate(value):
            yield from strangers(one, f"{where}[{place}]")


def problems(asked):
    model = model_of(asked["path"])
    if model is None:
        return [f"{asked['path']} is no method"]
    body = dict(plain(asked["body"] or {}))
    # A part that a field names is the file and no field.
    named = set(re.findall(r'attach://([^"]+)', json.dumps({k: v for k, v in body.items() if v != f"attach://{k}"})))
    body = {name: value for name, value in body.items() if name not in named}
    try:
        read = model.model_validate(body)
    except ValidationError as error:
        return [f"{asked['path']}: {one['loc']}: {one['msg']}" for one in error.errors()]
    return [f"{unknown} is unknown" for unknown in strangers(read, asked["path"])]


fit, found = 0, {}
for line in open(sys.argv[1]):
    asked = json.loads(line)
    wrong = problems(asked)
    fit += not wrong
    for one in wrong:
        found.setdefault(one, asked)
for one, asked in found.items():
    print(one, json.dumps(asked["body"])[:400])
print(f"{fit} requests fit")
sys.exit(bool(found) or fit == 0)
