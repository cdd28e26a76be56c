// SPDX-License-Identifier: BSD-2-Clause
// A trace of two million slices, to time the viewer with: big.mjs DIR [SLICES [OPERATIONS]]. Eight ranks, in each 500 operations with their
// proxy operations, steps and states, and what the kernel did to two threads meanwhile; to each fiftieth rank 3 comes 8 ms late. Made anew it is the same.
import {createWriteStream, mkdirSync} from 'node:fs';
import {once} from 'node:events';

const RANKS = 8, PERIOD = 20000, STEPS = 6; // us
const [dir, wanted = '2000000', ops = '500'] = process.argv.slice(2);
const OPS = Number(ops);
const slices = Math.ceil(Number(wanted) / RANKS);
let seed = 1;

const random = () => {
	seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x6d2b79f5 | 0;
	return ((seed ^ seed >>> 13) >>> 0) / 2 ** 32;
};
const us = v => v.toFixed(3);
const comm = '"commId":7,"commHash":"0x7"';

function event(r, type, func, start, stop, tid, parent, id, details, more = '') {
	const at = t => `{"ts":${us(t)},"pid":${1000 + r},"tid":${tid}}`;

	return `{"recordType":"event","type":"ncclProfile${type}","func":"${func}","gpuUuid":"",${comm},"rank":${r},"start":${at(start)},"stop":${at(stop)},` +
		`"duration":${us(stop - start)},"myPid":${1000 + r},"parentObj":"${parent}","eventAddr":"${id}","ctx":"0x1","details":${details}${more}}\n`;
}

function operation(r, n, id) {
	const app = 1000 + r, proxy = 2000 + r, t = 1e6 + n * PERIOD + random() * 500 + (n % 50 === 9 && r === 3 ? 8000 : 0), end = 1e6 + n * PERIOD + 9000 + (n % 50 === 9 ? 9000 : random() * 900);
	const coll = id(), sched = '{"onCpu":200.000,"runq":50.000,"blocked":50.000,"irq":4.000}';
	let out = '';

	for (const send of [true, false]) {
		for (const channel of [0, 1]) {
			const op = id(), a = t + 30 + channel;

			for (let s = 0; s < STEPS; s++) {
				const step = id(), from = a + (end - a) * s / STEPS, to = a + (end - a) * (s + 1) / STEPS, mid = from + (to - from) * random();

				for (const [ts, name, nr] of send ? [[from, 'ProxyStepSendGPUWait', 8], [mid, 'ProxyStepSendWait', 9]] : [[from, 'ProxyStepRecvWait', 10], [mid, 'ProxyStepRecvGPUWait', 12]])
					out += `{"recordType":"state","eventAddr":"${step}","ts":${us(ts)},"name":"${name}","id":${nr},"pid":${1000 + r},"tid":${proxy}}\n`;
				out += event(r, 'ProxyStep', '', from, to, proxy, op, step, `{"step":${s},"channel":${channel},"peer":${(r + 1) % RANKS},"isSend":${send},"transSize":524288}`, `,"sched":${sched}`);
			}
			out += event(r, 'ProxyOp', '', a, end, proxy, coll, op, `{"channel":${channel},"peer":${(r + (send ? 1 : RANKS - 1)) % RANKS},"steps":${STEPS},"chunkSize":524288,"isSend":${send},"eventPid":${1000 + r}}`);
		}
	}
	return out + event(r, 'Coll', 'AllReduce', t, t + 25, app, 'null', coll,
		`{"func":"AllReduce","seq":${n},"algo":"RING","proto":"SIMPLE","channels":2,"warps":16,"count":1048576,"root":0,"dtype":"ncclFloat32","sendBuff":"0x1","recvBuff":"0x2"}`,
		`,"exec":{"stop":${us(end)},"duration":${us(end - t)},"source":"proxy"}`);
}

async function rank(r) {
	const out = createWriteStream(`${dir}/trace_1_pid${1000 + r}.jsonl`), tids = [1000 + r, 2000 + r], at = [1e6, 1e6], mean = OPS * PERIOD * tids.length / slices;
	let ids = 0, n = 0, op = 0, buf = `{"recordType":"header","schema":1,"tool":"ncclscope","version":"0.1.0","host":"node${r >> 2}","bootId":"b","pid":${1000 + r},` +
		`"hostPid":${1000 + r},"comm":"train","clock":{"source":"tsc","realtimeOffset":1795314534860709.349,"realtimeError":0.025}}\n`;
	const id = () => '0x' + (0x2a0000000000 + ++ids).toString(16);

	tids.forEach((tid, k) => buf += `{"recordType":"thread","tid":${tid},"comm":"train","role":"${k ? 'proxy' : 'app'}","start":${us(1e6)}}\n`);
	while (n < slices) {
		const k = n++ & 1, dur = mean * (.2 + 1.6 * random()), kind = n % 3;

		buf += `{"recordType":"slice","tid":${tids[k]},"state":"${['run', 'runq', 'blocked'][kind]}","ts":${us(at[k])},"dur":${us(dur)}` +
			[`,"cpu":${r},"irq":1.250}\n`, `,"cpu":${r},"behind":{"comm":"kworker/${r}:1","pid":77},"preempted":true}\n`, ',"why":"futex"}\n'][kind];
		at[k] += dur;
		while (op < OPS && op * slices < n * OPS)
			buf += operation(r, op++, id);
		if (buf.length > 1 << 20) {
			if (!out.write(buf))
				await once(out, 'drain');
			buf = '';
		}
	}
	out.end(buf);
	await once(out, 'close');
}

mkdirSync(dir, {recursive: true});
for (let r = 0; r < RANKS; r++)
	await rank(r);
