#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# A long trace of real lines, to time `report` with: those of a recording again and again, with ids, times and seq moved on.
#
# Usage: long_trace.py DIR OUT BYTES, then: /usr/bin/time -v ncclscope report OUT
import sys, re, glob, os
src, out, total = sys.argv[1], sys.argv[2], int(sys.argv[3])
files = sorted(glob.glob(src + '/*.jsonl'))
size = sum(os.path.getsize(f) for f in files)
n = total // size + 1
ts = re.compile(rb'"(ts|stop|lastTs|start|from|to|since|lastStateTs)":(\d{4,}\.\d{3})')
addr = re.compile(rb'"0x([0-9a-f]{12,16})"')
seq = re.compile(rb'"seq":(\d+)')
times = [float(m.group(2)) for f in files for m in ts.finditer(open(f, 'rb').read())]
span = max(times) - min(times) + 1000
os.makedirs(out, exist_ok=True)
for f in files:
    lines = open(f, 'rb').read().splitlines()
    body = [l for l in lines if not l.startswith((b'{"recordType":"header"', b'{"recordType":"footer"')) and b'Lifecycle' not in l]
    head = [l for l in lines if l.startswith(b'{"recordType":"header"') or b'ProfilerInit' in l]
    text = b'\n'.join(body) + b'\n'
    nseq = max(int(m.group(1)) for m in seq.finditer(text)) + 1
    comm = re.search(rb'"commHash":"(0x[0-9a-f]+)"', text).group(1)
    with open(out + '/' + os.path.basename(f), 'wb') as o:
        for l in head: o.write(l + b'\n')
        for i in range(n):
            t = ts.sub(lambda m: b'"%s":%.3f' % (m.group(1), float(m.group(2)) + i * span), text)
            t = seq.sub(lambda m: b'"seq":%d' % (int(m.group(1)) + i * nseq), t)
            t = addr.sub(lambda m: m.group(0) if b'0x' + m.group(1) == comm else b'"0x%x"' % ((int(m.group(1), 16) + i * 0x1000000) & (2**64-1)), t)
            o.write(t)
