// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lines into columns. Everything in a line is somebody else's: numbers are checked, text is only ever text, keys of objects
 * are looked up by names of ours. Slices and states, of which there are most, are read without making objects of them, if they
 * are written as record writes them; else as any other line.
 */

const TIME_MAX = 2 ** 53;
/* As report has it: what power limits and groups that keep step take is how GPUs are meant to work. */
const HELD_TROUBLE = ['swThermalSlowdown', 'hwThermalSlowdown', 'hwPowerBrakeSlowdown', 'thermal'];
const OPEN_MAX = 1000 /* of a process */, SIGNALS_MAX = 1000 /* likewise */, KMSG_MAX = 4096, GPUS_MAX = 64 /* likewise */, HELD_MAX = 10000 /* likewise */;

const num = v => typeof v === 'number' && Number.isFinite(v) ? v : 0;
const str = v => typeof v === 'string' ? v : '';
const whole = v => Number.isInteger(v) && Math.abs(v) < 2 ** 31 ? v : -1;
const objectOf = v => v !== null && typeof v === 'object' && !Array.isArray(v) ? v : {};
const own = (o, key) => Object.prototype.hasOwnProperty.call(o, key) ? o[key] : undefined;

class Bad extends Error {}

/* Words that drivers have for what goes wrong at a port of RDMA; report goes by whole names, and leaves out what it does not know. */
const isTrouble = name => !/flush/.test(name) && (/(^|[_ ])(errors?|err|r?to|oos|dup|rnr|naks?|downed|drops?|discards?|icrc)([_ ]|$)/i.test(name) ||
	/retrans|retry|retries|timeout|out_?of_seq|out of order|duplicate|unresponsive|impaired|slow_restart/i.test(name));
/* InfiniBand counts four bytes as one. */
const portBytes = (c, dir, short) => num(c['port_' + dir + '_data']) * 4 || num(c[short + '_bytes']);

/* As loader/read/seq.c has it: whether all ranks have the same numbers, where nothing but NCCL's version tells. */
function isSeqCommon(version)
{
	const m = version.length < 16 && /^(\d+)\.(\d+)/.exec(version);

	return !m || m[1] > 2 || m[2] > 25;
}

class Parser {
	/* One for each file. @pos of lines: where the text of the trace begins, counted over all files. */
	constructor(file)
	{
		this.file = file;
		this.proc = null;
		this.byPid = new Map(); // without headers
		this.thread = null;
	}

	/* A point in time, us to ns; relative to the first one of all. */
	time(us)
	{
		if (typeof us !== 'number' || !Number.isFinite(us) || Math.abs(us) > TIME_MAX)
			throw new Bad();
		if (trace.base === null)
			trace.base = Math.floor(us);
		return Math.round((us - trace.base) * 1000) + (this.proc ? this.proc.shift : 0);
	}

	seen(t, proc)
	{
		if (t < trace.t0)
			trace.t0 = t;
		this.goesOn(t, proc);
	}

	/* What is read every now and then, before there is anything to see, says only that it is still recorded. */
	goesOn(t, proc)
	{
		if (t > trace.t1)
			trace.t1 = t;
		if (!(t <= proc.last))
			proc.last = t;
		const recording = proc.recordings[proc.recordings.length - 1];

		if (recording && !(t <= recording.last))
			recording.last = t;
	}

	/* Where there is no header a process is its pid, in this file. */
	procOf(pid)
	{
		if (this.proc)
			return this.proc;
		let p = this.byPid.get(pid);

		if (!p) {
			p = newProc(this.file, {pid, host: this.file.name, bootId: 'file ' + trace.files.indexOf(this.file), comm: ''});
			this.byPid.set(pid, p);
		}
		return p;
	}

	header(o, text, pos)
	{
		trace.headers.push(pos);
		/* by messages, `merge` has moved times to another node's clock: they compare with that one's */
		const merged = objectOf(objectOf(o.clock).merged), clock = merged.error === undefined ? '' : str(merged.bootId);

		const head = {pid: whole(o.hostPid), host: str(o.host), bootId: str(o.bootId), clock, comm: str(o.comm), cmdline: JSON.stringify(o.cmdline ?? ''),
			started: typeof o.startTime === 'number' ? o.startTime : null};

		this.proc = sameProc(head) || newProc(this.file, head);
		this.proc.clockError = clock && clock !== this.proc.boot ? num(merged.error) * 1000 : 0;
		this.proc.record = o;
		this.proc.seqCommon = isSeqCommon(str(o.ncclVersion));
		this.proc.recordings.push({pos, last: -Infinity});
		this.thread = null;
		/* 2^51 us: as a double it has no ns any more */
		const m = /"realtimeOffset":(-?)(\d{1,18})\.(\d{3})[,}]/.exec(text), us = num(objectOf(o.clock).realtimeOffset);

		if (!m || Math.abs(Number(m[1] + m[2]) - us) > 2)
			return;
		const ns = BigInt(m[1] + m[2] + m[3]);

		if (trace.refOffset === null) {
			trace.refOffset = ns;
			trace.refBoot = this.proc.boot;
		}
		/* Its processes and recordings have one monotonic clock, whatever the real one was set to meanwhile: one says for all. */
		if (!trace.shifts.has(this.proc.boot))
			trace.shifts.set(this.proc.boot, this.proc.boot === trace.refBoot ? 0 : Number(ns - trace.refOffset));
		this.proc.shift = trace.shifts.get(this.proc.boot);
	}

	/* "0x2a0000000007" into hi and lo of `to`, columns named by @hi and @lo. */
	id(text, table, hi, lo, i)
	{
		if (typeof text !== 'string' || text.length < 3 || text.length > 18 || !text.startsWith('0x'))
			return;
		const h = text.length > 10 ? parseInt(text.slice(2, -8), 16) : 0, l = parseInt(text.length > 10 ? text.slice(-8) : text.slice(2), 16);

		if (h >= 0 && l >= 0) {
			table[hi][i] = h;
			table[lo][i] = l;
		}
	}

	hashOf(o, text)
	{
		if (typeof o.commHash === 'string')
			return o.commHash.slice(0, 32);
		/* a double has not all digits of it */
		const m = /"commId":(\d{1,20})[,}]/.exec(text);

		return m ? '0x' + BigInt(m[1]).toString(16) : '0x0';
	}

	event(o, text, pos)
	{
		const begin = objectOf(o.start), stop = objectOf(o.stop), details = objectOf(o.details), proc = this.procOf(whole(o.myPid ?? begin.pid));
		/* Where the GPU's clock is known, a kernel is where it ran, not where the host saw it. */
		const gpu = typeof details.gpuStart === 'number' && typeof details.gpuStop === 'number', exec = objectOf(o.exec);
		const start = this.time(gpu ? details.gpuStart : begin.ts), open = (o.stop === null || o.unfinished === true) && o.silent !== true, e = trace.events;
		const end = gpu ? this.time(details.gpuStop) : (open || o.silent === true) && typeof stop.ts !== 'number' ? start : this.time(stop.ts);
		const last = typeof exec.stop === 'number' ? Math.max(end, this.time(exec.stop)) : end;
		const thread = threadOf(proc, whole(typeof begin.hostTid === 'number' ? begin.hostTid : begin.tid));
		const type = typeIds.get(str(o.type)) ?? TYPE_OTHER, comm = commOf(this.hashOf(o, text));
		const i = e.add();

		e.start[i] = start;
		e.stop[i] = Math.max(start, end);
		e.end[i] = Math.max(start, last);
		e.type[i] = type;
		e.pos[i] = pos;
		e.proc[i] = proc.index;
		e.thread[i] = thread.index;
		e.comm[i] = comm.index;
		e.rank[i] = whole(o.rank);
		e.func[i] = textId(str(details.func) || str(o.func) || (type === TYPE_OTHER ? str(o.type) : ''));
		e.seq[i] = typeof details.seq === 'number' ? details.seq : -1;
		e.chan[i] = whole(details.channel);
		e.peer[i] = whole(details.peer);
		e.step[i] = whole(details.step);
		this.id(o.parentObj, e, 'pHi', 'pLo', i);
		this.id(o.eventAddr, e, 'aHi', 'aLo', i);
		if (proc.open.size)
			proc.open.delete(str(o.eventAddr).slice(0, 20));
		e.flags[i] = (open ? F_OPEN : 0) | (details.isSend === true ? F_SEND : 0) | (o.isPxn === true ? F_PXN : 0) |
			(o.orphan === true ? F_ORPHAN : 0) | (typeof exec.stop === 'number' ? F_EXEC : 0) | (num(o.lossNear) > 0 ? F_LOSS : 0) |
			(type === T_COLL && (own(details, 'seqCommon') ?? proc.seqCommon) !== true ? F_ALONE : 0) | (details.graphCaptured === true ? F_CAPTURED : 0);
		if (TYPES[type].op && typeof details.parentGroup === 'string')
			trace.groupOf.set(i, details.parentGroup.slice(0, 20));
		this.context(o, i);
		thread.events++;
		proc.events++;
		if (type === T_LIFE)
			this.lifecycle(o, details, comm);
		if (e.rank[i] >= 0 && proc.ranks.size < 4096)
			proc.ranks.add(e.rank[i]);
		if (proc.rank < 0)
			proc.rank = e.rank[i];
		if (e.rank[i] >= 0 && (proc.rankIn.get(comm.index) ?? e.rank[i]) !== e.rank[i])
			proc.many = true; // a thread for each GPU
		else if (proc.rankIn.size < 4096)
			proc.rankIn.set(comm.index, e.rank[i]);
		this.seen(start, proc);
		this.seen(e.end[i], proc);
	}

	/* What the kernel did meanwhile. */
	context(o, i)
	{
		const e = trace.events;

		if (o.sched !== undefined) {
			const s = objectOf(o.sched);

			e.flags[i] |= F_SCHED;
			e.run[i] = num(s.onCpu) * 1e3;
			e.runq[i] = num(s.runq) * 1e3;
			e.blocked[i] = num(s.blocked) * 1e3;
			e.unknown[i] = num(s.unknown) * 1e3;
			e.irq[i] = num(s.irq) * 1e3;
			e.behind[i] = this.culprit(s) || this.culprit(objectOf(s.proxy));
		}
		if (o.net !== undefined) {
			const n = objectOf(o.net), peer = objectOf(n.peer);

			/* What the peer had to send again is what a step that receives has waited for. */
			e.flags[i] |= (n.noData !== undefined ? F_NO_DATA : 0) | (num(n.retrans) > num(n.dsack) || num(peer.retrans) > num(peer.dsack) ? F_RETRANS : 0);
			e.noData[i] = num(n.noData) * 1e3;
			e.noRoom[i] = num(n.noRoom) * 1e3;
			e.flow[i] = textId(str(n.flow));
		}
	}

	/* Who ran most of the time instead. */
	culprit(s)
	{
		return Array.isArray(s.behind) ? textId(str(objectOf(s.behind[0]).comm)) : 0;
	}

	lifecycle(o, details, comm)
	{
		if (str(details.commName))
			comm.name = str(details.commName);
		comm.nranks = Math.max(comm.nranks, whole(details.nranks));
	}

	state(o)
	{
		const proc = this.procOf(whole(o.pid)), ts = this.time(o.ts), s = trace.states, i = s.add();

		s.ts[i] = ts;
		s.name[i] = textId(str(o.name));
		s.proc[i] = proc.index;
		this.id(o.eventAddr, s, 'aHi', 'aLo', i);
		this.seen(ts, proc);
	}

	addSlice(tid, state, us, durUs, cpu, irqUs, who, whoPid, pos)
	{
		const proc = this.proc || this.procOf(-1), t = this.time(us), d = durUs * 1000;

		if (state < 0 || !(d >= 0) || d > TIME_MAX)
			throw new Bad();
		if (!this.thread || this.thread.tid !== tid || this.thread.proc !== proc)
			this.thread = threadOf(proc, tid);
		const th = this.thread, s = th.slices || (th.slices = newSlices()), i = s.add();

		s.t[i] = t;
		s.d[i] = d;
		s.state[i] = state;
		s.cpu[i] = cpu < 32768 ? cpu : -1;
		s.irqNs[i] = irqUs * 1000;
		s.who[i] = who;
		s.whoPid[i] = whoPid;
		s.pos[i] = pos;
		if (i && t < s.t[i - 1] + s.d[i - 1] - 1)
			th.sorted = false;
		trace.slices++;
		this.seen(t, proc);
		this.seen(t + d, proc);
	}

	slice(o, pos)
	{
		const behind = objectOf(o.behind), woken = objectOf(o.wokenBy), state = SLICE_STATES.indexOf(o.state);
		const stack = Array.isArray(o.stack) ? o.stack.slice(0, 4).map(str).join(' < ') : '';
		const asleep = str(o.why) + (str(o.file) && ' on ' + str(o.file)) + (stack && ', at ' + stack) + (str(woken.comm) && ', until ' + str(woken.comm) + ' [' + num(woken.pid) + '] woke it');

		this.addSlice(whole(typeof o.hostTid === 'number' ? o.hostTid : o.tid), state, o.ts, typeof o.dur === 'number' ? o.dur : -1,
			typeof o.cpu === 'number' ? whole(o.cpu) : -1, Math.max(0, num(o.irq)), textId(str(behind.comm) || asleep), whole(behind.pid), pos);
	}

	flow(o, pos)
	{
		const proc = this.procOf(-1), t = this.time(o.ts), tcp = objectOf(o.tcp), d = objectOf(o.delta), f = flowOf(proc, str(o.flow), num(o.netns));
		const p = f.pts, i = p.add();

		p.t[i] = t;
		p.dt[i] = i && o.delta !== undefined ? Math.max(0, t - p.t[i - 1]) : 0; // the first since a window began, or of these addresses again
		p.tx[i] = num(d.txBytes);
		p.rx[i] = num(d.rxBytes);
		p.retrans[i] = num(d.retrans);
		p.needless[i] = Math.min(num(d.dsack), num(d.retrans));
		p.ooo[i] = num(d.rxOoo);
		p.rtt[i] = num(tcp.rtt) * 1e3;
		p.pos[i] = pos;
		f.tid = whole(o.tid);
		f.bytes += num(d.txBytes) + num(d.rxBytes);
		if (typeof o.peerRank === 'number') {
			f.peer = whole(o.peerRank);
			f.channel = whole(o.channel);
			f.isSend = o.isSend === true;
		}
		for (const entry of Array.isArray(o.resent) ? o.resent : []) {
			const again = objectOf(entry), k = f.resent.add();

			f.resent.t[k] = this.time(again.ts);
			f.resent.needless[k] = num(again.dsack) >= num(again.n) ? 1 : 0;
		}
		this.seen(t, proc);
	}

	node(o, pos)
	{
		const proc = this.procOf(-1), t = this.time(o.ts), dt = Math.max(0, num(o.interval) * 1e3);

		this.goesOn(t, proc);
		for (const entry of Array.isArray(o.rdma) ? o.rdma : []) {
			const e = objectOf(entry), counters = objectOf(e.counters), f = portOf(proc, str(e.device) + ':' + whole(e.port));

			if (!f)
				continue;
			const p = f.pts, i = p.add();

			p.t[i] = t;
			p.dt[i] = dt;
			p.tx[i] = portBytes(counters, 'xmit', 'tx');
			p.rx[i] = portBytes(counters, 'rcv', 'rx');
			p.pos[i] = pos;
			for (const [name, n] of Object.entries(counters))
				if (isTrouble(name))
					p.retrans[i] += num(n);
		}
	}

	drop(o, pos)
	{
		const proc = this.procOf(-1), t = this.time(o.ts);

		flowOf(proc, str(o.flow), o.netns === undefined ? null : num(o.netns)).drops.push({t, n: num(o.n), reason: str(o.reason), dir: str(o.dir), pos});
		this.seen(t, proc);
	}

	lost(o)
	{
		const proc = this.procOf(-1), cause = str(o.cause).slice(0, 64);

		trace.lost.set(cause, (trace.lost.get(cause) || 0) + num(o.n));
		proc.lost.push({from: this.time(o.from), to: this.time(o.to), n: num(o.n), cause});
	}

	/* By whom: nobody if the kernel did it on its own account. */
	signal(o)
	{
		const proc = this.procOf(-1), t = this.time(o.ts), from = own(o, 'from');

		if (proc.signals.length < SIGNALS_MAX)
			proc.signals.push({t, what: str(o.signal).slice(0, 20), by: from ? str(objectOf(from).comm).slice(0, 20) + '[' + num(objectOf(from).pid) + ']' : 'the kernel'});
		this.seen(t, proc);
	}

	/* A GPU of the process, for a second or so. */
	gpu(o)
	{
		const proc = this.procOf(-1), to = this.time(o.ts), from = to - Math.min(6e10, Math.max(0, num(o.interval) * 1e3)), uuid = str(o.gpuUuid).slice(0, 36);
		let g = proc.gpus.get(uuid);

		if (!g && proc.gpus.size < GPUS_MAX)
			proc.gpus.set(uuid, g = {index: whole(o.index), name: str(o.name).slice(0, 64), n: 0, clock: 0, hot: 0, watt: 0, time: 0, held: new Map(), errors: 0, lost: false, last: null});
		if (!g)
			return;
		if (num(o.smClock) > 0 && (typeof o.util === 'number' ? o.util > 0 : !(Array.isArray(o.reasons) && o.reasons.includes('gpuIdle')))) {
			g.n++;
			g.clock += num(o.smClock);
		}
		g.hot = Math.max(g.hot, num(o.temperature));
		g.watt = Math.max(g.watt, num(o.power) / 1e3);
		g.lost ||= o.lost === true;
		for (const [name, n] of Object.entries(objectOf(o.errors)))
			g.errors += name === 'eccCorrected' ? 0 : num(n);
		this.gpuHeld(proc, g, objectOf(o.held), from, to);
		if (o.lost === true)
			this.stretch(proc, g, 'lost', from, to, 1);
		this.seen(to, proc);
	}

	/* For how long by what. What is no trouble is in the sums only. */
	gpuHeld(proc, g, held, from, to)
	{
		let why = '', longest = 0;

		g.time += to - from;
		for (const [name, us] of Object.entries(held).slice(0, 32)) {
			const ns = Math.min(Math.max(0, num(us) * 1e3), to - from);

			if (g.held.size < 32 || g.held.has(name))
				g.held.set(name, (g.held.get(name) || 0) + ns);
			if (HELD_TROUBLE.includes(name) && ns > longest) {
				why = name;
				longest = ns;
			}
		}
		if (longest > (to - from) / 10)
			this.stretch(proc, g, why, from, to, longest / (to - from));
	}

	/* Seconds of the same, one behind the other, are one. */
	stretch(proc, gpu, why, from, to, share)
	{
		const last = gpu.last;

		if (last && last.why === why && from <= last.to + 1e8) {
			last.n++;
			last.share += share;
			last.to = Math.max(last.to, to);
		} else if (proc.held.length < HELD_MAX) {
			gpu.last = {gpu, why: why.slice(0, 40), from, to, n: 1, share};
			proc.held.push(gpu.last);
		}
	}

	/* All processes of a node tell of it. It may have been long before. */
	kmsg(o)
	{
		const proc = this.procOf(-1), t = this.time(o.ts), text = str(o.text).slice(0, 200), key = JSON.stringify([proc.host, t, text]);

		if (trace.kmsg.size < KMSG_MAX)
			trace.kmsg.set(key, {t, host: proc.host, text});
	}

	threadRecord(o)
	{
		const t = threadOf(this.procOf(-1), whole(typeof o.hostTid === 'number' ? o.hostTid : o.tid));

		t.comm = str(o.comm) || t.comm;
		t.role = str(o.role) || t.role;
		if (typeof o.onCpu === 'number')
			for (const [sum, us] of Object.entries({run: o.onCpu, runq: o.runq, blocked: o.blocked, irq: o.irq}))
				(t.sums ??= {run: 0, runq: 0, blocked: 0, irq: 0})[sum] += num(us) * 1e3;
		if (typeof o.stop === 'number')
			this.seen(this.time(o.stop), t.proc);
	}

	/* Shown only where the event itself never came, because the recording broke off. */
	open(o, pos)
	{
		const proc = this.procOf(whole(o.myPid));

		this.seen(this.time(o.ts), proc);
		const key = str(o.eventAddr).slice(0, 20);

		if (key && (proc.open.has(key) || proc.open.size < OPEN_MAX))
			proc.open.set(key, {o, pos});
	}

	addOpen({o, pos}, proc)
	{
		const id = {hi: [0], lo: [0]};

		this.id(o.eventAddr, id, 'hi', 'lo', 0);
		if (trace.ids.find(proc.index, id.hi[0], id.lo[0], Infinity) >= 0)
			return;
		this.proc = proc;
		try {
			this.event({...o, type: o.eventType, unfinished: true, stop: o.stop ?? null, exec: undefined}, '', pos);
			trace.schedTo.set(trace.events.n - 1, this.time(o.ts));
		} catch (err) {
			if (!(err instanceof Bad))
				throw err;
		}
	}

	/* Kinds that have nothing to draw are counted, like the others. */
	record(o, text, pos)
	{
		const kind = str(o.recordType) || (typeof o.type === 'string' ? 'event' : '');

		if (!kind)
			throw new Bad();
		switch (kind) {
		case 'header': this.header(o, text, pos); break;
		case 'event': this.event(o, text, pos); break;
		case 'state': this.state(o); break;
		case 'slice': this.slice(o, pos); break;
		case 'flow': this.flow(o, pos); break;
		case 'drop': this.drop(o, pos); break;
		case 'node': this.node(o, pos); break;
		case 'clock': this.goesOn(this.time(o.ts), this.procOf(-1)); break;
		case 'lost': this.lost(o); break;
		case 'signal': this.signal(o); break;
		case 'gpu': this.gpu(o); break;
		case 'kmsg': this.kmsg(o); break;
		case 'thread': this.threadRecord(o); break;
		case 'open': this.open(o, pos); break;
		case 'footer': this.procOf(-1).footer = {end: str(o.end)}; break;
		}
		this.counted(kind);
	}

	counted(kind)
	{
		trace.records++;
		trace.counts.set(kind, (trace.counts.get(kind) || 0) + 1);
	}

	/* ---- Lines ---- */

	line(text, from, to, pos)
	{
		if (this.fast(text, from, to, pos))
			return;
		const s = text.slice(from, to);

		if (!s.trim())
			return;
		try {
			this.whole(s, pos);
		} catch (err) {
			if (!(err instanceof Bad || err instanceof SyntaxError))
				throw err;
			trace.unreadable++;
		}
	}

	whole(s, pos)
	{
		let o;

		try {
			o = JSON.parse(s);
		} catch (err) {
			/* a recording that broke off, and the next file put behind it by cat */
			const at = s.indexOf('{"recordType":"header"', 1);

			if (at < 0)
				throw err;
			trace.unreadable++;
			s = s.slice(at);
			o = JSON.parse(s);
			pos += at;
		}
		if (o === null || typeof o !== 'object' || Array.isArray(o))
			throw new Bad();
		this.record(o, s, pos);
	}

	fast(text, from, to, pos)
	{
		if (text.charCodeAt(from + 15) !== 115 /* s */)
			return false;
		try {
			if (text.startsWith('{"recordType":"slice","tid":', from))
				return this.fastSlice(text, from + 28, to, pos);
			if (text.startsWith('{"recordType":"state","eventAddr":"0x', from))
				return this.fastState(text, from + 37, to);
		} catch (err) {
			if (!(err instanceof Bad))
				throw err;
		}
		return false;
	}

	/* A number at `this.at`, which is moved behind it. */
	number(text)
	{
		let v = 0, c, at = this.at, frac = 0;
		const from = at;

		while ((c = text.charCodeAt(at) - 48) >= 0 && c <= 9) {
			v = v * 10 + c;
			at++;
		}
		if (text.charCodeAt(at) === 46) {
			const dot = ++at;

			while ((c = text.charCodeAt(at) - 48) >= 0 && c <= 9) {
				frac = frac * 10 + c;
				at++;
			}
			if (at - dot !== 3)
				throw new Bad();
			v += frac / 1000;
		}
		if (at === from || at - from > 20)
			throw new Bad();
		this.at = at;
		return v;
	}

	skip(text, key)
	{
		if (!text.startsWith(key, this.at))
			return false;
		this.at += key.length;
		return true;
	}

	/* Text without escapes, up to its quote. */
	plain(text, to)
	{
		const end = text.indexOf('"', this.at);

		if (end < 0 || end >= to)
			throw new Bad();
		const s = text.slice(this.at, end);

		if (s.includes('\\'))
			throw new Bad();
		this.at = end + 1;
		return s;
	}

	fastSlice(text, at, to, pos)
	{
		let state, cpu = -1, irq = 0, who = 0, whoPid = -1;

		this.at = at;
		let tid = this.number(text);

		if (this.skip(text, ',"hostTid":'))
			tid = this.number(text);
		if (this.skip(text, ',"state":"runq"'))
			state = 1;
		else if (this.skip(text, ',"state":"run"'))
			state = 0;
		else if (this.skip(text, ',"state":"blocked"'))
			state = 2;
		else
			return false;
		if (!this.skip(text, ',"ts":'))
			return false;
		const ts = this.number(text);

		if (!this.skip(text, ',"dur":'))
			return false;
		const dur = this.number(text);

		if (this.skip(text, ',"cpu":'))
			cpu = this.number(text);
		if (this.skip(text, ',"behind":{"comm":"')) {
			who = textId(this.plain(text, to));
			if (!this.skip(text, ',"pid":'))
				return false;
			whoPid = this.number(text);
			if (!this.skip(text, '}'))
				return false;
		}
		if (this.skip(text, ',"irq":'))
			irq = this.number(text);
		this.skip(text, ',"preempted":true');
		if (this.skip(text, ',"throttled":'))
			this.number(text);
		if (this.skip(text, ',"why":"'))
			who = textId(this.plain(text, to));
		if (text.charCodeAt(this.at) !== 125 || this.at + 1 !== to)
			return false;
		this.addSlice(tid, state, ts, dur, cpu, irq, who, whoPid, pos);
		this.counted('slice');
		return true;
	}

	/* The simple ones; those with repeats and arguments go the other way. */
	fastState(text, at, to)
	{
		const quote = text.indexOf('"', at), id = text.slice(at - 2, quote);

		this.at = quote + 1;
		if (quote < at || quote - at > 16 || !this.skip(text, ',"ts":'))
			return false;
		const us = this.number(text);

		if (!this.skip(text, ',"name":"'))
			return false;
		const name = textId(this.plain(text, to));

		if (!this.skip(text, ',"id":'))
			return false;
		this.number(text);
		if (!this.skip(text, ',"pid":'))
			return false;
		const proc = this.procOf(this.number(text)), ts = this.time(us), end = text.indexOf('}', this.at);

		/* the rest is one object of numbers and plain text; what is not goes through the reader of JSON */
		if (end + 1 !== to || !/^(,"[A-Za-z]+":(-?\d+(\.\d+)?|"[0-9a-zx]*"))*$/.test(text.slice(this.at, end)))
			return false;
		const s = trace.states, i = s.add();

		s.ts[i] = ts;
		s.name[i] = name;
		s.proc[i] = proc.index;
		this.id(id, s, 'aHi', 'aLo', i);
		this.seen(ts, proc);
		this.counted('state');
		return true;
	}
}
