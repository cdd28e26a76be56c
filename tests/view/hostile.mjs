// SPDX-License-Identifier: BSD-2-Clause
// A trace that means harm: markup, endless and foul names, keys of objects' own, numbers out of any range, circles, lines that are none.
const markup = '</script><script>alert(1)</script><img src=x onerror=alert(2)>"\'`${alert(3)}<style>*{display:none}</style>';
const foul = 'a\u0000b\u001b[31m\u202ec\u2028d\ufeff\ud800' + markup;
const long = 'x'.repeat(10000);
const id = n => '0x' + n.toString(16);
const at = (ts, more = {}) => ({ts, pid: 7, tid: 7, ...more});

const event = (n, parent, more = {}) => ({
	recordType: 'event', type: 'ncclProfileColl', func: markup, gpuUuid: markup, commId: 1, commHash: markup, rank: 0, start: at(1000 + n), stop: at(1010 + n), duration: 10,
	myPid: 7, parentObj: parent, eventAddr: id(n), ctx: '0x1', details: {func: markup, seq: n, algo: foul, [markup]: markup, count: long}, ...more,
});

const records = [
	{recordType: 'header', schema: 1, host: markup, bootId: foul, pid: 7, hostPid: 7, comm: foul, clock: {realtimeOffset: -1}},
	{recordType: 'thread', tid: 7, comm: markup, role: 'constructor', start: 1},
	{recordType: 'thread', tid: 8, comm: long, role: '__proto__', start: 1},
	{recordType: 'state', eventAddr: id(1), ts: 1003, name: markup, id: 8, pid: 7, tid: 7},
	{recordType: 'state', eventAddr: id(1), ts: 1001, name: '__proto__', id: 8, pid: 7, tid: 7},
	event(1, id(2)), event(2, id(1)), event(3, id(3)), event(4, 'null'), // two circles
	event(4, 'null', {type: markup}), event(5, '0xzz', {type: '__proto__', func: '__proto__', details: {func: 'toString'}}),
	event(6, id(4), {details: null, sched: [], net: 'x', exec: {stop: 'never'}}), event(7, 7, {details: {seq: 1e308, channel: 1.5, peer: -1e300, isSend: 'yes'}}),
	event(8, id(4), {commHash: 5, rank: 1e300, sched: {onCpu: -1e300, runq: '5', blocked: null, wokenBy: [5, {comm: markup, pid: foul}], files: {file: markup}}}), event(9, id(4), {start: at(1e15), stop: at(-5)}),
	event(10, 'null', {stop: null, duration: null, unfinished: true, lastState: markup}),
	event(11, 'null', {type: 'ncclProfileProxyOp', details: {channel: 2 ** 40, peer: 2 ** 33, isSend: true}}),
	{recordType: 'slice', tid: 7, state: 'run', ts: 1000, dur: 500, cpu: 1e9, irq: 1e9},
	{recordType: 'slice', tid: 7, state: 'runq', ts: 1100, dur: 900, behind: {comm: markup, pid: 1}}, // over the one before
	{recordType: 'slice', tid: 7, state: 'blocked', ts: 900, dur: 10, why: long, wokenBy: {comm: markup, pid: 1e300}, file: foul, fs: 5, stack: [markup, 5, long, null, foul]}, // before it
	{recordType: 'flow', flow: markup, tid: 7, ts: 1000, tcp: {rtt: -5}, netns: 1},
	{recordType: 'flow', flow: markup, tid: 7, ts: 1500, tcp: {rtt: 1e300}, delta: {txBytes: -1e300, retrans: 1e300}, netns: 1, peerRank: 1, channel: 0, isSend: true},
	{recordType: 'drop', flow: markup, ts: 1200, reason: markup, n: 1e9, dir: foul},
	{recordType: 'lost', from: 1100, to: 1200, n: 3, cause: markup},
	{recordType: 'signal', ts: 1150, signal: markup, nr: 1e300, from: {comm: markup, pid: foul}}, {recordType: 'signal', ts: 1160, signal: 5, from: 'x'},
	{recordType: 'kmsg', ts: 1150, text: markup}, {recordType: 'kmsg', ts: 0, text: long},
	{recordType: 'gpu', ts: 1150, gpuUuid: markup, index: foul, name: markup, interval: 1e300, held: {[markup]: 1e300, x: -1, __proto__: 5}, smClock: -1e300, util: 1e300, errors: {[markup]: 1e300}},
	{recordType: 'gpu', ts: 1160, gpuUuid: 5, held: 7, errors: [1], lost: true},
	{recordType: '__proto__'}, {recordType: 'constructor', constructor: {prototype: 1}},
	{recordType: 'footer', end: markup, counts: {__proto__: 5}},
];

export const counts = {header: 1, thread: 2, state: 2, event: 12, slice: 3, flow: 2, drop: 1, lost: 1, signal: 2, kmsg: 2, gpu: 2, proto: 1, constructor: 1, footer: 1};

/* `bad` of them are lines that cannot be read. */
export const bad = 10;
export const text = records.map(r => JSON.stringify(r)).join('\n') + '\n' + [
	'{"__proto__":{"polluted":1},"recordType":"event","type":"ncclProfileGroup","rank":0,"commHash":"0x1","start":{"ts":1000,"pid":7,"tid":7},"stop":{"ts":1100,"pid":7,"tid":7},"myPid":7,"parentObj":"null","eventAddr":"0x99","details":{"__proto__":{"seq":5}}}',
	'{"recordType":"event","type":"ncclProfileColl"}', // no time
	'{"recordType":"event","start":{"ts":1e999}}', '{"recordType":"slice","tid":7,"state":"flying","ts":1.000,"dur":1.000}',
	'{"recordType":"slice","tid":7,"state":"run","ts":1.000,"dur":-1.000}', '{"recordType":"state","eventAddr":"0x1","ts":"now"}',
	'{"recordType":5}', 'null', '[[[[[[', '"text"', '{"recordType":"event","type"',
].join('\n');
