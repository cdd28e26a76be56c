// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where traces come from: blocks in this file, or files that are dropped on the page. Both come as blocks of whole lines, which
 * are kept as they are, compressed or on disk, and unpacked again when somebody wants to see a line. Reading makes way
 * for drawing every 12 ms; what has come so far is drawn meanwhile.
 */

const SLOT_MS = 12;
const BLOCK_BYTES = 4 << 20; // of dropped files; those in the page are about as large
const BLOCK_MAX = 64 << 20; // more text than that is in no block that we have made
const LINE_MAX = 1 << 20;
const HEAD_MAX = 2 * LINE_MAX; // of a dropped file: a whole record is in it, if it is a trace

const loading = {at: 0, total: 0, done: false, full: false, dropped: false, begun: performance.now(), parsed: 0};

const unpack = stream => stream.pipeThrough(new DecompressionStream('gzip'));

async function all(stream, max)
{
	const reader = stream.getReader(), parts = [];
	let n = 0;

	for (;;) {
		const {done, value} = await reader.read();

		if (done)
			break;
		n += value.length;
		if (n > max) {
			reader.cancel();
			throw new Error('a block is too large');
		}
		parts.push(value);
	}
	const whole = new Uint8Array(n);

	n = 0;
	for (const p of parts) {
		whole.set(p, n);
		n += p.length;
	}
	return whole;
}

/*
 * One reads at a time, as there is one trace to read into. Who comes has the one before stop, and begins when that has: it looks
 * at `turn.over` wherever it has waited, and then leaves what it has read to be thrown away.
 */
let turn = {over: false, ended: Promise.resolve()};

function takeTurn(read)
{
	const mine = {over: false, ended: null}, begin = () => mine.over ? null : read(mine);

	turn.over = true;
	mine.ended = turn.ended.then(begin, begin);
	turn = mine;
}

const textOf = raw => new TextDecoder().decode(raw);

/* A block of lines, for as long as the page is open: @get gives its text again. */
function addSource(text, get)
{
	const last = trace.sources.at(-1), from = last ? last.from + last.len : 0;

	trace.sources.push({from, len: text.length, get});
	return from;
}

/* The line that is at a position of the trace. */
async function lineAt(pos)
{
	const at = trace.sources.findIndex(s => pos < s.from + s.len), s = trace.sources[at];

	if (!s)
		throw new Error('not in the trace');
	const text = await s.get(), from = pos - s.from, to = text.indexOf('\n', from);

	return text.slice(from, to < 0 ? text.length : to);
}

/* Work that can be paused, to its end or until somebody else's turn; drawing comes in between. */
async function inSlots(work, mine)
{
	let until = performance.now() + SLOT_MS;

	while (!mine.over && !work.next().done) {
		if (performance.now() < until)
			continue;
		await breathe();
		until = performance.now() + SLOT_MS;
	}
}

async function parseBlock(parser, text, pos, mine)
{
	let from = 0, n = 0, until = performance.now() + SLOT_MS;

	while (from < text.length && !mine.over) {
		let to = text.indexOf('\n', from);

		if (to < 0)
			to = text.length;
		if (to > from)
			parser.line(text, from, to, pos + from);
		from = to + 1;
		if (++n % 256 || performance.now() < until)
			continue;
		await progressed(mine);
		until = performance.now() + SLOT_MS;
	}
}

/* What has come is drawn first as soon as there is something, then whenever it has doubled. */
async function progressed(mine)
{
	if (trace.records > 2 * loading.parsed + 20000) {
		loading.parsed = trace.records;
		await inSlots(digest(), mine);
		await inSlots(changed(), mine);
	}
	showProgress();
	await breathe();
}

/* What takes memory of the trace's size. Browsers give some GB to a page: where that is at its end, what has been read by then is shown. */
async function withRoom(work)
{
	try {
		await work();
	} catch (err) {
		if (!(err instanceof RangeError))
			throw err;
		loading.full = true;
	}
}

const noRoom = () => 'This browser has no memory for all of the trace: what is shown is what was read first' +
	(loading.total > 1 ? ', ' + percent(loading.at / loading.total) + ' of it. ' : '. ') + 'Make pages of fewer of its files each (ncclscope view FILE...).';

function beginLoading(total, dropped = false)
{
	clearTrace();
	trace.ids = null;
	Object.assign(loading, {at: 0, total, done: false, full: false, dropped, begun: performance.now(), parsed: 0});
	document.documentElement.dataset.state = 'loading';
}

async function endLoading(mine)
{
	await withRoom(async () => {
		await inSlots(digest(), mine);
		const procs = trace.procs.filter(p => p.open.size);

		if (procs.length && !mine.over) {
			for (const p of procs)
				for (const open of [...p.open.values()])
					new Parser(p.file).addOpen(open, p);
			await inSlots(digest(), mine);
		}
	});
	loading.done = true;
	await withRoom(() => inSlots(changed(), mine));
	if (mine.over)
		return;
	if (loading.full)
		showNotice([noRoom()]);
	showProgress();
	document.documentElement.dataset.state = 'ready';
	performance.mark('ncclscope-ready');
}

/* ---- In the page ------------------------------------------------------------------------------------ */

function fromBase64(s)
{
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(s);
	const bin = atob(s), to = new Uint8Array(bin.length);

	for (let i = 0; i < to.length; i++)
		to[i] = bin.charCodeAt(i);
	return to;
}

const parsedPage = () => new Promise(resolve => {
	if (document.readyState !== 'loading')
		resolve();
	else
		setTimeout(resolve, 4);
});

/* The next data element that the browser has read to its end. */
async function nextBlock()
{
	for (;;) {
		const e = document.querySelector('script[data-kind]');

		if (e && (e.nextElementSibling || document.readyState !== 'loading'))
			return e;
		if (document.readyState !== 'loading')
			return null;
		await parsedPage();
	}
}

/* Apart from whoever reads a block: what is kept for as long as the page is open must not keep its text as well. */
const unpacker = packed => async () => textOf(await all(unpack(new Blob([packed]).stream()), BLOCK_MAX));

async function loadPage(mine)
{
	let parser = null, seen = 0;

	beginLoading(document.readyState === 'loading' ? 0 : 1);
	for (let e; !mine.over && (e = await nextBlock()); loading.at += !loading.full) {
		const {kind, name} = e.dataset;
		let text, get;

		if (document.readyState !== 'loading' && loading.total <= 1)
			loading.total = seen + document.querySelectorAll('script[data-kind]').length;
		seen++;
		e.remove();
		if (loading.full)
			continue;
		try {
			get = unpacker(fromBase64(e.textContent));
			text = await get();
		} catch (err) {
			if (err instanceof RangeError)
				loading.full = true;
			else // the file has broken off in it
				trace.truncated++;
			continue;
		}
		if (kind === 'report') {
			takeReport(text);
			continue;
		}
		if (name !== undefined || !parser) {
			trace.files.push({name: name || ''});
			parser = new Parser(trace.files.at(-1));
		}
		await withRoom(() => parseBlock(parser, text, addSource(text, get), mine));
	}
	if (mine.over)
		return;
	if (!trace.files.length)
		showEmpty();
	await endLoading(mine);
}

function takeReport(text)
{
	try {
		const r = JSON.parse(text);

		if (r && typeof r === 'object' && r.schema === 1)
			trace.report = r;
	} catch (err) {
		trace.truncated++;
	}
}

/* ---- Dropped ------------------------------------------------------------------------------------------ */

/* Blocks of whole lines; @emit gets their bytes and where they are in the stream. */
async function blocksOf(stream, mine, emit)
{
	const reader = stream.getReader();
	let parts = [], n = 0, at = 0, cut = false;

	const flush = async (end) => {
		const raw = new Uint8Array(n);
		let to = 0;

		for (const p of parts) {
			raw.set(p, to);
			to += p.length;
		}
		const nl = end ? n : raw.lastIndexOf(10) + 1;

		if (nl)
			await emit(raw.subarray(0, nl), at);
		at += nl;
		parts = nl < n ? [raw.slice(nl)] : [];
		n -= nl;
		if (n > 2 * BLOCK_BYTES) { // no line that we know
			trace.unreadable += !cut;
			cut = true;
			at += n;
			parts = [];
			n = 0;
		} else if (nl) {
			cut = false;
		}
	};

	while (!mine.over) {
		const {done, value} = await reader.read();

		if (done)
			break;
		parts.push(value);
		n += value.length;
		if (n >= BLOCK_BYTES)
			await flush(false);
	}
	if (mine.over)
		await reader.cancel();
	else if (n)
		await flush(true);
}

const begins = (raw, ...bytes) => bytes.every((b, n) => raw[n] === b);
const isGzip = raw => begins(raw, 0x1f, 0x8b);
const isZstd = raw => begins(raw, 0x28, 0xb5, 0x2f, 0xfd);
const firstBytes = async file => new Uint8Array(await file.slice(0, 4).arrayBuffer());

/* The first of a stream's bytes, as far as they come: it may be damaged behind them. */
async function headOf(stream)
{
	const reader = stream.getReader(), decoder = new TextDecoder();
	let text = '';

	try {
		while (text.length < HEAD_MAX) {
			const {done, value} = await reader.read();

			if (done)
				break;
			text += decoder.decode(value, {stream: true});
		}
		await reader.cancel();
	} catch (err) {
		return text;
	}
	return text;
}

function isRecord(line)
{
	try {
		const o = objectOf(JSON.parse(line));

		return typeof own(o, 'recordType') === 'string' || typeof own(o, 'type') === 'string';
	} catch (err) {
		return false;
	}
}

/* Why a file cannot take the place of what is shown, and what to do about it; '' if it can. */
async function faultOf(file)
{
	const name = '\u2018' + clean(file.name, 80) + '\u2019';

	try {
		const first = await firstBytes(file);

		if (isZstd(first))
			return name + ' is compressed by zstd, which browsers do not unpack: make a page of it (ncclscope view FILE), or drop what zstd -d FILE makes of it.';
		if (!(await headOf(isGzip(first) ? unpack(file.stream()) : file.stream())).split('\n').some(isRecord))
			return name + ' is no trace: there are no records in it. Drop the .jsonl or .jsonl.gz files of a recording.';
	} catch (err) {
		return name + ' cannot be read. Drop files; of a directory, those in it.';
	}
	return '';
}

async function loadFile(file, mine)
{
	const info = {name: file.name}, parser = new Parser(info), before = loading.at;

	trace.files.push(info); // first: what goes wrong is said of it
	const packed = isGzip(await firstBytes(file));

	await blocksOf(packed ? unpack(file.stream()) : file.stream(), mine, async (raw, at) => {
		let get;

		if (packed) {
			const again = await all(new Blob([raw]).stream().pipeThrough(new CompressionStream('gzip')), BLOCK_MAX);

			get = unpacker(again);
		} else {
			const part = file.slice(at, at + raw.length);

			get = () => part.text();
			loading.at = before + at + raw.length;
		}
		const text = textOf(raw);

		await parseBlock(parser, text, addSource(text, get), mine);
	});
	loading.at = before + file.size;
}

async function loadTraces(traces, mine)
{
	beginLoading(traces.reduce((n, f) => n + f.size, 0), true);
	resetView();
	for (const f of traces) {
		try {
			await loadFile(f, mine);
		} catch (err) {
			if (err instanceof RangeError) {
				loading.full = true;
				break;
			}
			trace.truncated++;
			trace.files.at(-1).error = err instanceof Error ? err.message : 'cannot be read';
		}
		if (mine.over)
			return;
	}
	await endLoading(mine);
}

let looked = Promise.resolve();

/* What are traces takes the place of what is shown, or is being read. Looked into in the order in which they came, so that the last stays. */
function loadFiles(files)
{
	const list = [...files].filter(f => f.size > 0 || f.name);

	if (!list.length)
		return;
	looked = looked.then(async () => {
		const faults = await Promise.all(list.map(faultOf)), traces = list.filter((f, n) => !faults[n]);

		showNotice(faults.filter(Boolean));
		if (traces.length)
			takeTurn(mine => loadTraces(traces, mine));
		else
			showEmpty();
	});
}
