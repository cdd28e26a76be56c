#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes of a process' trace that of a process on another node, whose clocks are others.

Usage: other_node.py SCHEMA HOST AHEAD REAL [DRIFT] <TRACE >OTHER

HOST is its name and, as a number in hex, its boot. Its CLOCK_MONOTONIC is AHEAD us ahead, its CLOCK_REALTIME wrong by REAL us, and the
former runs faster by DRIFT of a million from ORIGIN on (environment; us, default: the first time of this trace). What is a point in
time is the schema's word ("moment").
"""
import json
import os
import re
import sys
from decimal import Decimal

with open(sys.argv[1], encoding='utf-8') as f:
    defs = json.load(f)['$defs']
host = sys.argv[2]
ahead, real, drift = (Decimal(a) for a in (sys.argv[3:] + ['0'])[:3])
origin = Decimal(os.environ['ORIGIN']) if 'ORIGIN' in os.environ else None
boot = '%08x-0000-4000-8000-000000000000' % int(re.sub('[^0-9a-f]', '', host) or '0', 16)


def moved(at):
    global origin
    if origin is None:
        origin = at
    return at + ahead + ((at - origin) * drift / 1000000).quantize(Decimal('0.001'))


def refs(schema):
    """What a key's value may be, without the arrays and choices around it."""
    if '$ref' in schema:
        yield schema['$ref'].rsplit('/', 1)[1]
    for inner in schema.get('oneOf', []) + [schema[k] for k in ('items',) if k in schema]:
        yield from refs(inner)


def move(value, name, details):
    if isinstance(value, list):
        return [move(v, name, details) for v in value]
    if name == 'moment' and isinstance(value, Decimal):
        return moved(value)
    if not isinstance(value, dict) or name not in defs:
        return value
    known = defs[name].get('properties', {})
    for key, inner in value.items():
        for ref in [details] if key == 'details' else refs(known.get(key, {})):
            value[key] = move(inner, ref, details)
    return value


def text(value):
    """As it was, which json.dumps does not do to numbers."""
    if isinstance(value, dict):
        return '{' + ','.join(json.dumps(k, ensure_ascii=False) + ':' + text(v) for k, v in value.items()) + '}'
    if isinstance(value, list):
        return '[' + ','.join(text(v) for v in value) + ']'
    return format(value, '.3f') if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


for line in sys.stdin:
    record = json.loads(line, parse_float=Decimal)
    kind = record['recordType']
    move(record, kind, 'details.' + record.get('type', record.get('eventType', '')).replace('ncclProfile', ''))
    if kind == 'header':
        record['host'], record['bootId'] = host, boot
        record['clock']['realtimeOffset'] += real - ahead
    if kind == 'clock':
        record['realtimeOffset'] += real - ahead
        if 'gpu' in record:
            record['gpu']['offset'] -= ahead
    sys.stdout.write(text(record) + '\n')
