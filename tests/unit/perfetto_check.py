#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Holds a trace in Perfetto's format against what Perfetto's reader expects of one, with a decoder of its own: words and tracks are told
# of before they are used, ids are of one sequence, slices of a track begin and end like brackets in the order of time. Prints
# what is wrong, or what the trace has, as JSON. --no-cpu: threads may be on a CPU at the same time (traces that are made up).
#
# Usage: perfetto_check.py [--no-cpu] FILE
import collections
import json
import sys

errors = []


def wrong(what):
    if len(errors) < 20:
        errors.append(what)


def varint(b, i):
    v = shift = 0
    while True:
        c = b[i]
        i += 1
        v |= (c & 0x7F) << shift
        if c < 0x80:
            return v, i
        shift += 7
        if shift > 63:
            raise ValueError('a varint of more than 10 bytes')


def fields(b):
    """(number, wire type, value) of a message; bytes for what is of variable length."""
    i = 0
    while i < len(b):
        tag, i = varint(b, i)
        wire = tag & 7
        if wire == 0:
            v, i = varint(b, i)
        elif wire == 1:
            v, i = int.from_bytes(b[i:i + 8], 'little'), i + 8
        elif wire == 2:
            n, i = varint(b, i)
            v, i = b[i:i + n], i + n
        else:
            raise ValueError('wire type %d' % wire)
        if i > len(b):
            raise ValueError('a field beyond its message')
        yield tag >> 3, wire, v


def one(b, number, default=None):
    for n, _, v in fields(b):
        if n == number:
            default = v
    return default


class Sequence:
    def __init__(self):
        self.words = None  # {(kind, iid): text} since the state was cleared


class Track:
    def __init__(self, seq, parent, desc):
        self.seq, self.parent = seq, parent
        self.counter = one(desc, 8) is not None
        self.name = (one(desc, 2) or b'').decode()
        self.thread, self.process = one(desc, 4), one(desc, 3)
        if self.thread is not None:
            self.name = (one(self.thread, 5) or b'').decode()
        self.events = []  # (ts, type)


sequences, tracks = {}, {}
found = collections.Counter()
slices, instants, keys, times = collections.Counter(), collections.Counter(), collections.Counter(), []
machines, flows, cpus = set(), collections.Counter(), collections.defaultdict(list)
names = collections.Counter()


def take_words(seq, b):
    for kind, _, entry in fields(b):
        iid, text = one(entry, 1), one(entry, 2)
        if not iid or text is None:
            wrong('a word without number or text')
        if seq.words.setdefault((kind, iid), text) != text:
            wrong('word %d of kind %d is told twice, differently' % (iid, kind))


def take_track(seq_id, b):
    uuid, parent = one(b, 1), one(b, 5)
    if not uuid:
        wrong('a track without uuid')
    if parent is not None and parent not in tracks:
        wrong('the parent of track %d is not told of before it' % uuid)
    t = Track(seq_id, parent, b)
    old = tracks.get(uuid)
    if old:
        if (old.seq, old.parent, old.counter) != (t.seq, t.parent, t.counter):
            wrong('track %d is two different ones' % uuid)
        old.name = t.name
        return
    tracks[uuid] = t
    found['processes'] += t.process is not None
    found['threads'] += t.thread is not None
    found['counters'] += t.counter


def word(seq, kind, iid):
    if (kind, iid) not in seq.words:
        wrong('word %d of kind %d is not told of before it is used' % (iid, kind))
        return '?'
    return seq.words[(kind, iid)].decode()


def check_annotation(seq, b):
    named = False
    for n, wire, v in fields(b):
        if n == 1:
            word(seq, 3, v)
            named = True
        elif n == 10:
            named = True
        elif n == 11 or n == 12:
            check_annotation(seq, v)
        elif n == 5 and wire != 1:
            wrong('a double that is none')
    return named


def take_event(seq, ts, b):
    kind, uuid, cat, name, n_keys = one(b, 9), one(b, 11), None, None, 0
    for n, wire, v in fields(b):
        if n == 3:
            cat = word(seq, 1, v)
        elif n == 22:
            cat = v.decode()
        elif n == 10:
            name = word(seq, 2, v)
        elif n == 23:
            name = v.decode()
        elif n == 47:
            if wire != 1:
                wrong('an id of an arrow that is no fixed64')
            flows[v] += 1
        elif n == 4:
            n_keys += 1
            if not check_annotation(seq, v):
                wrong('an annotation without a name')
    track = tracks.get(uuid)
    if not track:
        return wrong('an event on a track that is not told of: %s' % uuid)
    if ts is None:
        return wrong('an event without a time')
    times.append(ts)
    if track.counter != (kind == 4):
        wrong('a counter on a track of slices, or the other way round: %s' % track.name)
    if kind == 1:
        slices[cat] += 1
        keys[cat] += n_keys
    elif kind == 3:
        instants[cat] += 1
        keys[cat] += n_keys
    elif kind == 4:
        found['values'] += 1
        if one(b, 44) is None:
            wrong('a counter without a value')
    if kind in (1, 3):
        names[name] += 1
        if not cat or not name:
            wrong('an event without category or name')
    if kind in (1, 2):
        track.events.append((ts, kind))


def take_ftrace(machine, b):
    cpu = (machine, one(b, 1))
    for n, _, ev in fields(b):
        if n != 2:
            continue
        ts, switch, waking = one(ev, 1), one(ev, 4), one(ev, 20)
        times.append(ts)
        if switch is not None:
            found['switches'] += 1
            cpus[cpu].append((ts, one(switch, 2), one(switch, 6)))
            if one(ev, 2) != one(switch, 2):
                wrong('a switch that is not by the thread that ran')
        if waking is not None:
            found['wakings'] += 1


def take_packet(b):
    seq_id, flags, ts = one(b, 10), one(b, 13, 0), one(b, 8)
    if not seq_id:
        return wrong('a packet of no sequence')
    seq = sequences.setdefault(seq_id, Sequence())
    if flags & 1:
        seq.words = {}
    elif seq.words is None or not flags & 2:
        return wrong('a packet before the state of its sequence is cleared')
    machines.add(one(b, 98, 0))
    for n, _, v in fields(b):
        if n == 12:
            take_words(seq, v)
        elif n == 60:
            take_track(seq_id, v)
        elif n == 11:
            take_event(seq, ts, v)
        elif n == 1:
            take_ftrace(one(b, 98, 0), v)
        elif n == 6:
            found['clocks'] += 1


def check_brackets():
    """As a reader has them: sorted by time, what is at the same time in the order of the file."""
    for uuid, t in tracks.items():
        depth = 0
        if t.events != sorted(t.events, key=lambda e: e[0]):
            wrong('track %s (%d) is not in the order of time' % (t.name, uuid))
        for ts, kind in t.events:
            depth += 1 if kind == 1 else -1
            if depth < 0:
                wrong('an end without a beginning on track %s at %d' % (t.name, ts))
                break
        if depth > 0:
            wrong('%d slices without an end on track %s' % (depth, t.name))


def check_cpus():
    for cpu, switches in cpus.items():
        now = 0
        for ts, prev, following in sorted(switches, key=lambda s: s[0]):
            if prev != now:
                wrong('on CPU %d at %d thread %d stops, but %d runs' % (cpu[1], ts, prev, now))
            now = following
        if now:
            wrong('thread %d never stops on CPU %d' % (now, cpu[1]))


def main():
    args = [a for a in sys.argv[1:] if a != '--no-cpu']
    with open(args[0], 'rb') as f:
        data = f.read()
    for n, wire, packet in fields(data):
        if (n, wire) != (1, 2):
            wrong('no packet')
            continue
        found['packets'] += 1
        take_packet(packet)
    check_brackets()
    if '--no-cpu' not in sys.argv:
        check_cpus()
    for e in errors:
        print('wrong: ' + e)
    if errors:
        return 1
    print(json.dumps({**found, 'sequences': len(sequences), 'tracks': len(tracks), 'slices': slices, 'instants': instants,
                      'keys': keys, 'names': names, 'machines': sorted(machines), 'joined': sum(n > 1 for n in flows.values()),
                      'pids': sorted({one(t.process, 1) for t in tracks.values() if t.process is not None}),
                      'tids': sorted({one(t.thread, 2) for t in tracks.values() if t.thread is not None}), 'first': min(times, default=0), 'last': max(times, default=0),
                      'ended': max((ts for t in tracks.values() for ts, kind in t.events if kind == 2), default=0)}))
    return 0


sys.exit(main())
