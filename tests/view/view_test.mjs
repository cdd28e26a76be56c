// SPDX-License-Identifier: BSD-2-Clause
// The page of `view` in a browser: view_test.mjs OUT NCCLSCOPE BROWSER TOP TMP, from view.sh.
import {execFileSync, spawnSync} from 'node:child_process';
import {appendFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {gzipSync} from 'node:zlib';
import {launch, open, ready, settle, info, t, ok, same, end} from './browser.mjs';
import * as hostile from './hostile.mjs';

const [out, scope, executable, top, tmp] = process.argv.slice(2);
const OPS = 200, LATE = OPS / 50;
const here = new URL('.', import.meta.url).pathname;

/* The page of some traces. */
function view(name, ...traces)
{
	execFileSync(scope, ['view', '-q', '-o', `${tmp}/${name}.html`, ...traces]);
	return `${tmp}/${name}.html`;
}

const read = files => files.flatMap(f => readFileSync(f, 'utf8').split('\n').filter(Boolean).map(l => JSON.parse(l)));

/* By another program than ours. */
function countsByJq(files)
{
	const text = execFileSync('jq', ['-n', 'reduce inputs as $r ({}; .[$r.recordType // "event"] += 1)', ...files], {encoding: 'utf8'});

	return sorted(JSON.parse(text));
}

const sorted = o => Object.fromEntries(Object.entries(o).sort());
const countsOf = async page => sorted(await page.evaluate(() => window.ncclscope.counts()));
const $text = (page, selector) => page.$eval(selector, e => e.textContent);
const lanes = page => page.evaluate(() => window.ncclscope.lanes());
const lanesBox = page => page.$eval('#lanes', e => (({x, y, width, height}) => ({x, y, width, height}))(e.getBoundingClientRect()));
const key = async (page, k) => {
	await page.keyboard.press(k);
	await settle(page);
};

/* Files as if somebody had dropped them; @read: and wait until they are shown. */
async function drop(page, files, read = true)
{
	await page.evaluate(list => {
		const data = new DataTransfer();

		for (const [name, b64] of list)
			data.items.add(new File([Uint8Array.from(atob(b64), c => c.charCodeAt(0))], name));
		document.documentElement.dataset.state = 'dropped';
		document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
	}, files.map(([name, raw]) => [name, Buffer.from(raw).toString('base64')]));
	if (read)
		await ready(page);
}

async function clickAt(page, x, y)
{
	const box = await lanesBox(page);

	await page.mouse.click(box.x + x, box.y + y);
	await settle(page);
}

/* The middle of the nth event of a row that has so many, when all of it is in sight. */
async function eventPlace(page, match, n = 0)
{
	const all = await lanes(page), at = all.findIndex(l => l.kind === 'events' && l.label === match);
	const box = await page.evaluate((lane, k) => window.ncclscope.place(lane, k), at, n);

	return [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2];
}

/* The colour of a lane at a time, below its words, and those that the style sheet has by name. */
const inkAt = (page, lane, ns, ...names) => page.evaluate((lane, ns, names) => {
	const canvas = document.getElementById('lanes'), box = canvas.getBoundingClientRect(), d = canvas.width / box.width, i = window.ncclscope.info(), row = window.ncclscope.lanes()[lane];
	const x = 208 + (i.from + ns - i.t0) / (i.t1 - i.t0) * (box.width - 208), px = canvas.getContext('2d').getImageData(Math.round(x * d), Math.round((row.y + row.h - 3) * d), 1, 1).data;

	return ['#' + [...px.slice(0, 3)].map(v => v.toString(16).padStart(2, '0')).join(''), ...names.map(n => getComputedStyle(document.documentElement).getPropertyValue(n).trim())];
}, lane, ns, names);

const recordShown = page => page.$$eval('#record tr', rows => Object.fromEntries(rows.map(r => [r.cells[0].title, r.cells[1].textContent])));

/* One rank with operations [start, end, more], us; more: keys of its record. */
function oneRank(file, ops)
{
	const line = o => JSON.stringify(o) + '\n';

	writeFileSync(file, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: 1, hostPid: 1, comm: 'job'}) + ops.map(([start, end, more], seq) =>
		line({recordType: 'event', type: 'ncclProfileColl', commHash: '0xabc', rank: 0, start: {ts: 1e6 + start, pid: 1, tid: 1}, stop: {ts: 1e6 + start + 1}, eventAddr: '0x' + (16 + seq).toString(16),
			details: {func: 'AllReduce', seq, count: 4, dtype: 'ncclFloat32'}, exec: {stop: 1e6 + end, source: 'proxy'}, ...more})).join(''));
	return file;
}

execFileSync('node', [here + 'big.mjs', tmp + '/small', '4000', String(OPS)]);
mkdirSync(tmp + '/all', {recursive: true});
const unit = readdirSync(top + '/tests/unit/traces').filter(f => f.endsWith('.jsonl') && f !== 'running.jsonl').map(f => top + '/tests/unit/traces/' + f);
const seed = top + '/tests/data/nccl-2.28-4xh100-allreduce.jsonl';
const small = readdirSync(tmp + '/small').map(f => tmp + '/small/' + f);
const records = read(small);
const browser = await launch(out, executable);
const page = await open(browser, view('small', tmp + '/small'));

await t('loads, and says nothing in the console', async () => same(page.told, []));
await t('asks for nothing but itself', async () => same(page.asked.length, 1));
await t('all records are there, by kind', async () => same(await countsOf(page), countsByJq(small)));
await t('the table shows them', async () => {
	await page.click('#tab-trace');
	const rows = await page.$$eval('#counts tbody tr', trs => trs.map(r => [r.cells[0].textContent, Number(r.cells[1].textContent.replaceAll(',', ''))]));

	same(sorted(Object.fromEntries(rows)), countsByJq(small));
});
await t('a policy is there, and is kept', async () => {
	const policy = await page.$eval('meta[http-equiv=Content-Security-Policy]', m => m.content);

	ok(/^default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]{43}='; style-src 'sha256-[A-Za-z0-9+/]{43}=';/.test(policy), policy);
	const broken = await page.evaluate(async () => {
		const seen = [], wait = () => new Promise(r => setTimeout(r, 200));

		document.addEventListener('securitypolicyviolation', e => seen.push(e.effectiveDirective));
		const script = document.createElement('script'), image = new Image(), style = document.createElement('style');

		try {
			script.textContent = 'window.broken = 1';
		} catch (err) {
			seen.push('trusted ' + err.name);
		}
		try {
			document.body.innerHTML += '<b onclick="1">x</b>';
		} catch (err) {
			seen.push('markup ' + err.name);
		}
		image.src = 'https://example.invalid/x.png';
		style.textContent = 'body { color: red }';
		document.head.append(style);
		document.body.append(image);
		await fetch('https://example.invalid/').catch(() => seen.push('fetch failed'));
		await wait();
		style.remove();
		image.remove();
		return [...new Set(seen)];
	});

	for (const what of ['img-src', 'connect-src', 'style-src-elem', 'markup TypeError', 'fetch failed'])
		ok(broken.includes(what), `${what} is not among ${broken}`);
	same(await page.evaluate(() => window.broken), undefined);
	/* the browser tells of what it does not send, too */
	same(page.asked.filter(u => !u.startsWith('file:')), page.refused.filter(r => r.includes('csp')).map(r => r.split(' ')[0]));
});

await t('slow operations are listed, and lead to their place', async () => {
	const want = JSON.parse(execFileSync(scope, ['report', '--json', tmp + '/small'], {encoding: 'utf8'})).slow;

	await page.click('#tab-slow');
	same((await page.$$('#slow button')).length, want.length, 'operations');
	ok(want.length >= LATE && want.some(s => s.code === 'late-rank' && s.rank === 3), 'the planted fault: ' + JSON.stringify(want.slice(0, 2)));
	await page.click('#slow li:first-child button');
	await settle(page);
	const {t0, t1, from} = await info(page), longest = want.sort((a, b) => b.duration - a.duration)[0];
	const colls = records.filter(r => r.type === 'ncclProfileColl' && r.details.seq === longest.seq), first = Math.min(...records.filter(r => r.start?.ts).map(r => r.start.ts), 1e6);
	const a = (Math.min(...colls.map(r => r.start.ts)) - first) * 1e3, b = (Math.max(...colls.map(r => r.exec.stop)) - first) * 1e3;

	ok(t0 - from < a && t1 - from > b && t1 - t0 < 2 * (b - a), `in sight ${t0 - from}..${t1 - from}, it is ${a}..${b}`);
	await page.screenshot({path: out + '/slow.png'});
});

await t('wheel, keys and drag zoom and move', async () => {
	await key(page, '0');
	const box = await lanesBox(page), whole = await info(page);

	await page.mouse.move(box.x + 500, box.y + 200);
	await page.keyboard.down('Control');
	await page.mouse.wheel({deltaY: -400});
	await page.keyboard.up('Control');
	await settle(page);
	const near = await info(page);

	ok(near.t1 - near.t0 < .5 * (whole.t1 - whole.t0), 'ctrl + wheel');
	await key(page, 'd');
	const right = await info(page);

	ok(right.t0 > near.t0 && Math.abs(right.t1 - right.t0 - near.t1 + near.t0) < 1, 'D');
	await key(page, 'a');
	await key(page, 'w');
	ok((await info(page)).t1 - (await info(page)).t0 < right.t1 - right.t0, 'W');
	await key(page, 's');
	const before = await info(page);

	await page.mouse.move(box.x + 600, box.y + 300);
	await page.mouse.down();
	await page.mouse.move(box.x + 500, box.y + 250, {steps: 4});
	await page.mouse.up();
	await settle(page);
	const after = await info(page), moved = (after.t0 - before.t0) / (before.t1 - before.t0) * (box.width - 208);

	ok(Math.abs(moved - 100) < 2 && Math.abs(after.scroll - before.scroll - 50) < 2, `drag: ${moved} ${after.scroll}`);
	await page.mouse.wheel({deltaY: -2000});
	await key(page, '0');
	same((await info(page)).scroll, 0, 'wheel');
});

await t('with Shift A and D glide faster, and end with their key', async () => {
	const start = async () => (await info(page)).t0;
	const glide = async (...keys) => {
		const before = await start();

		for (const k of keys)
			await page.keyboard.down(k);
		await new Promise(done => setTimeout(done, 400));
		for (const k of keys.reverse())
			await page.keyboard.up(k);
		await settle(page);
		const after = await start();

		await new Promise(done => setTimeout(done, 100));
		same(await start(), after, keys + ' goes on');
		return after - before;
	};

	await key(page, '0');
	for (let i = 0; i < 6; i++)
		await key(page, 'w');
	const slow = await glide('d'), fast = await glide('Shift', 'D'), back = await glide('Shift', 'A');

	ok(slow > 0 && fast > 1.5 * slow && -back > 1.5 * slow, `${slow} ${fast} ${back}`);
	await key(page, '0');
});

await t('a click shows all of an event', async () => {
	await key(page, '0');
	await clickAt(page, ...await eventPlace(page, 'ch0 \u2192 rank 1', 7));
	await page.waitForSelector('#record');
	const shown = await recordShown(page), want = records.find(r => r.eventAddr === shown.eventAddr && r.type === 'ncclProfileProxyOp' && r.myPid === Number(shown.myPid));

	ok(want, 'no such event: ' + JSON.stringify(shown).slice(0, 300));
	same([shown['start.ts'], shown.duration, shown['details.chunkSize'], shown['details.isSend']].map(String), [want.start.ts.toFixed(3), want.duration.toFixed(3), want.details.chunkSize, want.details.isSend].map(String));
	const states = await page.evaluate(() => document.getElementById('pane').textContent);

	ok(states.includes('Parent') && states.includes('6 children'), states.slice(0, 400));
	await page.screenshot({path: out + '/selected.png'});
});

await t('of two events in a row the second is shown, however long the first takes to unpack', async () => {
	const other = (await recordShown(page)).eventAddr, at = await eventPlace(page, 'ch0 \u2192 rank 1', 7), next = await eventPlace(page, 'ch0 \u2192 rank 1', 9);

	await page.evaluate(() => {
		const Real = window.DecompressionStream;

		window.DecompressionStream = function (format) {
			const real = new Real(format), late = new TransformStream({start: () => new Promise(done => setTimeout(done, 600))});

			window.DecompressionStream = Real;
			return {writable: real.writable, readable: real.readable.pipeThrough(late)};
		};
	});
	await clickAt(page, ...at);
	await clickAt(page, ...next);
	await page.waitForSelector('#record');
	const shown = await recordShown(page);

	ok(shown.eventAddr !== other, 'the second is another');
	await new Promise(r => setTimeout(r, 1500));
	await page.click('#tab-slow');
	await page.click('#tab-selected');
	same(await recordShown(page), shown);
	await clickAt(page, ...at);
	await settle(page);
});

await t('children and parents lead to each other', async () => {
	const buttons = await page.$$('#pane .links button');

	await buttons.at(-1).click();
	await page.waitForSelector('#record');
	await settle(page);
	same((await recordShown(page)).type, 'ncclProfileProxyStep');
	ok((await $text(page, '#pane')).includes('ProxyStepSendWait'), 'its states');
	same(await page.evaluate(() => document.activeElement.id), 'pane', 'the keyboard stays in the panel');
});

await t('the ruler sums what threads did, exactly', async () => {
	await key(page, 'Escape');
	await key(page, '0');
	const box = await lanesBox(page);

	await page.keyboard.down('Shift');
	await page.mouse.move(box.x + 400, box.y + 300);
	await page.mouse.down();
	await page.mouse.move(box.x + 600, box.y + 300, {steps: 3});
	await page.mouse.up();
	await page.keyboard.up('Shift');
	await settle(page);
	const {t0, t1} = await info(page), k = (t1 - t0) / (box.width - 208), a = t0 + (400 - 208) * k, b = t0 + (600 - 208) * k;
	const sum = (tid, state) => records.filter(r => r.recordType === 'slice' && r.tid === tid && r.state === state)
		.reduce((s, r) => s + Math.max(0, Math.min(b, (r.ts - 1e6 + r.dur) * 1e3) - Math.max(a, (r.ts - 1e6) * 1e3)), 0);
	const words = await page.$$eval('.sums > li', list => list.map(li => li.textContent)), first = words.find(w => w.includes('[1000]'));
	const shown = /running([\d.]+) (.?s)runnable([\d.]+) (.?s)blocked([\d.]+) (.?s)/.exec(first);

	ok(shown, first);
	for (const [n, state] of [[1, 'run'], [3, 'runq'], [5, 'blocked']]) {
		const got = Number(shown[n]) * {s: 1e9, ms: 1e6}[shown[n + 1]], want = sum(1000, state);

		ok(Math.abs(got - want) <= .006 * want, `${state}: ${got}, want ${want}`);
	}
	await page.screenshot({path: out + '/ruler.png'});
});

await t('kernel lanes have the colours of their slices', async () => {
	const slices = records.filter(r => r.recordType === 'slice' && r.tid === 1000), all = await lanes(page), lane = all.find(l => l.kind === 'kernel');

	for (const [state, name] of [['run', '--run'], ['runq', '--runq'], ['blocked', '--blocked']]) {
		const s = slices.filter(r => r.state === state)[20];

		await key(page, '0');
		const got = await page.evaluate(async (mid, lane, name, dur) => {
			const canvas = document.getElementById('lanes'), box = canvas.getBoundingClientRect();

			for (let n = 0; n < 400; n++) {
				const i = window.ncclscope.info(), x = 208 + (mid - i.t0) / (i.t1 - i.t0) * (box.width - 208);

				if (i.t1 - i.t0 < dur * 3)
					break;
				canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: -100, ctrlKey: true, clientX: box.x + x, clientY: box.y + 100, cancelable: true}));
			}
			window.ncclscope.draw();
			const i = window.ncclscope.info(), x = 208 + (mid - i.t0) / (i.t1 - i.t0) * (box.width - 208) + 30, d = canvas.width / box.width;
			const px = canvas.getContext('2d').getImageData(Math.round(x * d), Math.round((lane.y + 3) * d), 1, 1).data;

			return '#' + [...px.slice(0, 3)].map(v => v.toString(16).padStart(2, '0')).join('') + ' ' + getComputedStyle(document.documentElement).getPropertyValue(name).trim();
		}, (s.ts + s.dur / 2 - 1e6) * 1e3, lane, name, s.dur * 1e3);

		same(got.split(' ')[0], got.split(' ')[1], state);
	}
	await page.screenshot({path: out + '/kernel.png'});
});

await t('search finds by words, and steps from hit to hit', async () => {
	await key(page, 'Escape');
	await key(page, '0');
	await key(page, '/');
	await page.type('#query', 'allreduce #49 RANK 3');
	await key(page, 'Enter');
	const want = records.filter(r => r.details?.seq === 49 && r.rank === 3);

	ok((await $text(page, '#hits')).endsWith(' / ' + want.length), `${await $text(page, '#hits')}, want ${want.length}`);
	await page.waitForSelector('#record');
	same((await recordShown(page)).rank, '3');
	await page.$eval('#query', e => e.blur());
	await page.$eval('#query', e => {
		e.value = 'late-rank recvwait';
		e.dispatchEvent(new Event('input'));
	});
	await page.waitForFunction(want => document.getElementById('hits').textContent === want, {}, String(LATE * 8 * 12)); // steps of 8 ranks
	await key(page, 'n');
	await key(page, 'n');
	ok((await $text(page, '#hits')).startsWith('2 / '), await $text(page, '#hits'));
	await page.$eval('#query', e => {
		e.value = 'recvgpuwait zzz';
		e.dispatchEvent(new Event('input'));
	});
	await page.waitForFunction(() => document.getElementById('hits').textContent === 'none');
	await page.$eval('#query', e => {
		e.value = '';
		e.dispatchEvent(new Event('input'));
	});
});

await t('filters leave what they say', async () => {
	const shown = async () => Number(/^([\d,]+) of/.exec(await $text(page, '#filters .told'))[1].replaceAll(',', ''));
	const choose = async (name, value) => {
		await page.select('#filter-' + name, value);
		await settle(page);
	};

	const map = () => page.$eval('#heat', c => c.toDataURL()), whole = await map();

	await choose('rank', '3');
	same(await shown(), records.filter(r => r.type && r.rank === 3).length, 'rank');
	same((await lanes(page)).filter(l => l.kind === 'proc').length, 1);
	ok(await map() === whole, 'the map is not of all any more');
	await choose('type', 'ProxyStep');
	same(await shown(), records.filter(r => r.type === 'ncclProfileProxyStep' && r.rank === 3).length, 'type');
	await choose('type', '');
	await choose('rank', '');
	await choose('verdict', 'late-rank');
	const slow = JSON.parse(execFileSync(scope, ['report', '--json', tmp + '/small'], {encoding: 'utf8'})).slow.filter(s => s.code === 'late-rank');

	same(await shown(), slow.length * 8 * 29, 'verdict'); // an operation is 4 proxy operations of 6 steps, and itself, on 8 ranks
	await page.screenshot({path: out + '/filter.png'});
	await page.click('#clear');
	await settle(page);
	same(await $text(page, '#filters .told'), '');
	ok(await map() === whole, 'another map');
});

await t('keys, colours and marks are told', async () => {
	await key(page, '?');
	ok(await page.$eval('#keys', d => d.open && d.textContent.includes('ruler')), 'no dialog');
	await page.screenshot({path: out + '/keys.png'});
	/* every colour of the style sheet but the page's own */
	same(await page.evaluate(() => {
		const style = getComputedStyle(document.documentElement), probe = document.createElement('i'), told = new Set([...document.querySelectorAll('#legend i, #keys i')].map(i => getComputedStyle(i).backgroundColor));
		const names = [...document.styleSheets[0].cssRules[0].style].filter(n => n.startsWith('--') && !['--bg', '--lane', '--line', '--text', '--head', '--shade', '--button'].includes(n));

		document.body.append(probe);
		const untold = names.filter(n => {
			probe.style.backgroundColor = style.getPropertyValue(n);
			return !told.has(getComputedStyle(probe).backgroundColor);
		});

		probe.remove();
		return [names.length > 25, untold];
	}), [true, []], 'colours without a word');
	await key(page, 'Escape');
	ok(!await page.$eval('#keys', d => d.open), 'still there');
});

await t('ranks by time: a rank that is waited for is light, its peers dark', async () => {
	await key(page, 'Escape');
	await key(page, '0');
	const ink = await page.evaluate(ops => {
		const c = document.getElementById('heat'), d = c.width / c.getBoundingClientRect().width, ctx = c.getContext('2d');
		const x = 208 + (9 * 20000 + 4000 + 10000) / (ops * 20000) * (c.width / d - 208), rows = [];

		for (let r = 0; r < 8; r++) {
			const h = (c.height / d - 18) / 8, px = ctx.getImageData(Math.round(x * d) - 3, Math.round((16 + (r + .5) * h) * d), 7, 1).data;

			rows.push(Math.min(...Array.from({length: 7}, (_, n) => px[4 * n] + px[4 * n + 1] + px[4 * n + 2])));
		}
		return rows;
	}, OPS);

	ok(ink.every((v, r) => r === 3 || v < ink[3] - 30), ink.join(' '));
});

/* A rank whose one operation has a receive that is in RecvWait to its end; net: of that, more: of its events. Whether the row is dark, and not light. */
async function waitIsDark(name, net, more)
{
	const line = o => JSON.stringify(o) + '\n', at = {pid: 1, tid: 1}, event = (type, eventAddr, start, rest) => line({recordType: 'event', type, commHash: '0xabc', rank: 0, start: {ts: 1e6 + start, ...at}, eventAddr, ...more, ...rest});
	const file = oneRank(tmp + '/' + name + '.jsonl', [[0, 100]]), recv = {channel: 0, peer: 1, isSend: false};

	appendFileSync(file, event('ncclProfileColl', '0x100', 200, {details: {func: 'AllReduce', seq: 1, count: 4, dtype: 'ncclFloat32'}}) +
		event('ncclProfileProxyOp', '0x200', 300, {parentObj: '0x100', details: recv, net}) +
		event('ncclProfileProxyStep', '0x300', 400, {parentObj: '0x200', details: {...recv, step: 0}, lastState: 'ProxyStepRecvWait'}) +
		line({recordType: 'state', eventAddr: '0x300', ts: 1e6 + 400, name: 'ProxyStepRecvWait', id: 10, ...at}) +
		line({recordType: 'footer', end: 'signal 9', ts: 1e6 + 1e6, pid: 1}) + event('ProfilerLifecycle', '0x400', 1e6, {func: 'ProfilerFinalize', stop: {ts: 2e6, ...at}, unfinished: undefined}));
	const p = await open(browser, view(name, file));
	const [got, all, none] = await p.evaluate(() => {
		const c = document.getElementById('heat'), d = c.width / c.getBoundingClientRect().width, style = getComputedStyle(document.documentElement);
		const px = c.getContext('2d').getImageData(Math.round((208 + .6 * (c.width / d - 208)) * d), Math.round(20 * d), 1, 1).data;

		return ['#' + [...px.slice(0, 3)].map(v => v.toString(16).padStart(2, '0')).join(''), ...['--heat3', '--heat0'].map(n => style.getPropertyValue(n).trim())];
	});

	await p.close();
	return [got === all, all === none];
}

await t('ranks by time: a wait that never ended is seen, though no data came that would count as waited for', async () =>
	same(await waitIsDark('hung', {flow: 'a>b', rxBytes: 9, noData: 50}, {unfinished: true}), [true, false]));

await t('ranks by time: a wait is seen where the kernel did not tell how long there was no data', async () =>
	same(await waitIsDark('old-kernel', {flow: 'a>b', rxBytes: 9}, {stop: {ts: 2e6, pid: 1, tid: 1}, duration: 999700}), [true, false]));

await t('a dropped file takes the place of what was shown, plain and compressed', async () => {
	const raw = readFileSync(seed), want = countsByJq([seed]);
	const ranks = () => page.$eval('#filter-rank', s => [s.value, ...[...s.options].map(o => o.value)]);

	await page.select('#filter-rank', '3');
	await settle(page);
	for (const [name, body] of [['a.jsonl', raw], ['a.jsonl.gz', gzipSync(raw)]]) {
		await drop(page, [[name, body]]);
		same(await countsOf(page), want, name);
		same((await ranks()).sort(), ['', '', ...new Set(read([seed]).filter(r => r.type && r.rank !== undefined).map(r => String(r.rank)))].sort(), 'ranks to choose from');
		same(await $text(page, '#filters .told'), '', 'still filtered');
		await page.click('#tab-slow');
		await page.click('#slow button');
		await settle(page);
		await page.click('#tab-selected');
		await page.waitForSelector('#record');
		same((await recordShown(page)).type, 'ncclProfileColl', name);
	}
	await page.screenshot({path: out + '/dropped.png'});
	await drop(page, unit.map(f => [f.split('/').at(-1), readFileSync(f)]));
	same(await countsOf(page), countsByJq(unit), 'several');
	same(page.told.filter(m => !/willReadFrequently|Content.Security.Policy|violates|example.invalid|Trusted|requires 'Trusted/i.test(m)), []);
});

await t('what ncclscope itself records, with flows and drops', async () => {
	const p = await open(browser, view('unit', ...unit));

	same(await countsOf(p), countsByJq(unit));
	same(p.told, []);
	await p.screenshot({path: out + '/unit.png'});
	await p.close();
});

await t('when segments were sent again is marked in their flow, needless ones grey', async () => {
	const file = top + '/tests/unit/traces/net.jsonl', p = await open(browser, view('net', file)), closed = (await lanes(p)).find(l => l.kind === 'flows');

	await clickAt(p, 32, closed.y + 8);
	const lane = (await lanes(p)).findIndex(l => l.kind === 'flow');
	const flows = new Set(read([file]).filter(r => r.recordType === 'flow').map(r => r.flow + ' ' + r.netns));

	same(closed.label.split(',')[0], flows.size + ' flows', 'a drop makes no flow of its own');
	const first = Math.min(...read([file]).map(r => r.start?.ts ?? r.ts).filter(Number.isFinite));

	for (const [ts, name] of [[9012.5, '--retrans'], [9018, '--dim']]) {
		const got = await p.evaluate(async (at, lane, name) => {
			const canvas = document.getElementById('lanes'), box = canvas.getBoundingClientRect(), d = canvas.width / box.width;
			const i = window.ncclscope.info(), x = 208 + (i.from + at - i.t0) / (i.t1 - i.t0) * (box.width - 208), row = window.ncclscope.lanes()[lane];
			const px = canvas.getContext('2d').getImageData(Math.round(x * d), Math.round((row.y + 10) * d), 1, 1).data;

			return '#' + [...px.slice(0, 3)].map(v => v.toString(16).padStart(2, '0')).join('') + ' ' + getComputedStyle(document.documentElement).getPropertyValue(name).trim();
		}, (ts - first) * 1e3, lane, name);

		same(got.split(' ')[0], got.split(' ')[1], name);
	}
	await p.screenshot({path: out + '/net.png'});
	await p.close();
});

await t('ports of RDMA are lanes of their node: what its processes tell of the same time counts once', async () => {
	const line = o => JSON.stringify(o) + '\n', node = (ts, counters) => line({recordType: 'node', ts, interval: 1e6, rdma: [{device: 'ib0', port: 1, counters}]});
	const one = oneRank(tmp + '/ports1.jsonl', [[0, 3e6]]), two = tmp + '/ports2.jsonl';

	appendFileSync(one, node(2e6, {port_xmit_data: 250000, port_rcv_data: 1, packet_seq_err: 2}) + node(3e6, {port_xmit_data: 500000}) + node(4e6, {port_xmit_data: 250000}));
	writeFileSync(two, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: 2, hostPid: 2, comm: 'job'}) + node(2.5e6, {port_xmit_data: 99, packet_seq_err: 2}) + node(3.5e6, {req_cqe_flush_error: 5}));
	const p = await open(browser, view('ports', two, one)), all = await lanes(p), at = all.findIndex(l => l.label === 'ib0:1');

	same(all.filter(l => l.kind === 'flows').map(l => l.label), ['1 RDMA port']);
	for (const [us, name] of [[5e5, '--tx'], [1.5e6, '--tx']]) {
		const [got, want] = await inkAt(p, at, us * 1e3, name);

		same(got, want, us);
	}
	await clickAt(p, 400, all[at].y + 20);
	const told = await $text(p, '#pane');

	for (const s of ['RDMA port ib0:1', 'sent4', 'received4 B', 'errors2', 'rdma.0.counters.port_xmit_data'])
		ok(told.includes(s), s + ': ' + told);
	await p.screenshot({path: out + '/ports.png'});
	await p.close();
});

/* Ranks 0 to 2, of which 0 and 2 are 0 and 1 of a part that comes first in their traces; of that, number 20 is slow because 2 is late. */
function twoCommunicators(dir)
{
	mkdirSync(dir);
	return [0, 1, 2].map(rank => {
		const line = o => JSON.stringify(o) + '\n', pid = 100 + rank, comms = [...rank === 1 ? [] : [['0xdef', rank / 2, 2]], ['0xabc', rank, 3]];
		let text = line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid, hostPid: pid, comm: 'job'});

		for (const [commHash, r, nranks] of comms)
			text += line({recordType: 'event', type: 'ProfilerLifecycle', func: 'ProfilerInit', commHash, rank: r, start: {ts: 1e6, pid, tid: pid}, stop: {ts: 1e6}, details: {nranks}});
		for (let seq = 0; seq < 40; seq++)
			for (const [commHash, r] of comms) {
				const part = commHash === '0xdef', at = 1000 + 30 * seq + (seq > 20 ? 200 : 0) + (part ? 0 : 15), late = seq === 20 ? 200 : 0;
				const ts = (at + (rank === 2 || (rank === 0 && !part) ? late : 0)) * 1e3;

				text += line({recordType: 'event', type: 'ncclProfileColl', commHash, rank: r, start: {ts, pid, tid: pid}, stop: {ts: ts + 1},
					eventAddr: '0x' + (4096 * (part + 1) + seq).toString(16), details: {func: 'AllReduce', seq, count: 4, dtype: 'ncclFloat32'},
					exec: {stop: (at + 10 + late) * 1e3, source: 'proxy'}});
			}
		const file = dir + '/trace_1_pid' + pid + '.jsonl';

		writeFileSync(file, text);
		return file;
	});
}

await t('a process goes by one rank, whatever its communicators; what is slow leads to whose doing it is', async () => {
	const files = twoCommunicators(tmp + '/two'), p = await open(browser, view('two', ...files));

	same((await lanes(p)).filter(l => l.kind === 'proc').map(l => l.label.slice(0, 6)), ['rank 0', 'rank 1', 'rank 2']);
	await p.click('#slow button');
	await settle(p);
	await p.click('#tab-selected');
	await p.waitForSelector('#record');
	const shown = await recordShown(p);

	same([shown.commHash, shown.rank, shown['details.seq']], ['0xdef', '1', '20']);
	ok((await $text(p, '#pane')).includes('rank 2 job [102], 1 of its communicator'), (await $text(p, '#pane')).slice(0, 300));
	await p.screenshot({path: out + '/two.png'});
	await p.close();
});

await t('operations that were called ahead take as long as they are executed, and wait in the queue before', async () => {
	const file = tmp + '/ahead.jsonl', line = o => JSON.stringify(o) + '\n';
	let text = line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: 1, hostPid: 1, comm: 'job'});

	for (let seq = 0; seq < 8; seq++)
		text += line({recordType: 'event', type: 'ncclProfileColl', commHash: '0xabc', rank: 0, start: {ts: 1e6 + seq, pid: 1, tid: 1}, stop: {ts: 1e6 + seq + 1}, eventAddr: '0x' + (16 + seq),
			details: {func: 'AllReduce', seq, count: 4, dtype: 'ncclFloat32', parentGroup: '0x' + (99 + seq)}, exec: {stop: 1e6 + 10000 * (seq + 1), source: 'proxy'}});
	writeFileSync(file, text);
	const p = await open(browser, view('ahead', file));

	same(await p.$$eval('#slow button .long', b => b.map(e => e.textContent)), Array(8).fill('10.0 ms'));
	await p.click('#slow button');
	await settle(p);
	await p.click('#tab-selected');
	await p.waitForSelector('#record');
	ok((await $text(p, '#pane')).includes('takes10.0 ms'), (await $text(p, '#pane')).slice(0, 300));
	await p.screenshot({path: out + '/ahead.png'});
	await p.close();
});

await t('operations that end before the first record that is read last to their last child, no longer', async () => {
	const dir = tmp + '/before', line = o => JSON.stringify(o) + '\n';

	mkdirSync(dir);
	for (const [file, from] of [[1, 5e6], [2, 1e6]]) {
		const at = {pid: file, tid: file}, event = (type, addr, stop, more) => line({recordType: 'event', type, commHash: '0x' + file, rank: 0, start: {ts: from, ...at}, stop: {ts: from + stop, ...at}, eventAddr: addr, ...more});

		writeFileSync(`${dir}/trace_${file}_pid${file}.jsonl`, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: file, hostPid: file, comm: 'job'}) +
			event('ncclProfileColl', '0x10', 1, {details: {func: 'AllReduce', seq: 0, count: 4, dtype: 'ncclFloat32'}}) +
			event('ncclProfileProxyOp', '0x20', 500, {parentObj: '0x10', details: {channel: 0, peer: 1, isSend: true}}));
	}
	const p = await open(browser, view('before', dir));

	same(await p.$$eval('#slow button .long', b => b.map(e => e.textContent)), Array(2).fill('500 \u00b5s'));
	await p.close();
});

await t('of a job that hung before: what its ranks are in', async () => {
	const dir = tmp + '/still', line = o => JSON.stringify(o) + '\n';

	mkdirSync(dir);
	for (const pid of [1, 2, 3]) {
		const asleep = pid === 2 ? {why: 'read', file: '<b>a</b>/0012.tar', fs: 'nfs4', stack: ['nfs_wait', 'vfs_read']} : {why: 'futex'};

		writeFileSync(`${dir}/trace_1_pid${pid}.jsonl`, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid, hostPid: pid, comm: 'job'}) +
			line({recordType: 'event', type: 'ProfilerLifecycle', func: 'ProfilerInit', commHash: '0xabc', rank: pid - 1, start: {ts: 1000000, pid, tid: pid}, stop: {ts: 1000000, pid, tid: pid}, details: {nranks: 3}}) +
			line({recordType: 'thread', tid: pid, comm: 'job', role: 'other', start: 1000000, stop: 4000000, since: 1000000, onCpu: 0, runq: 0, blocked: 3000000, state: 'blocked', stateSince: 1000000, ...asleep}));
	}
	const p = await open(browser, view('still', dir));

	same(await p.$$eval('#pane td', list => list.map(e => e.textContent)),
		['! 1', 'read on <b>a</b>/0012.tar (nfs4) (nfs_wait < vfs_read)', '> 3.00 s', '0', 'futex', '> 3.00 s', '2', 'futex', '> 3.00 s']);
	ok(!await p.$$eval('#pane', list => list.some(e => e.textContent.includes('Nothing stands out'))), 'and nothing else');
	await p.close();
});

await t('of a job that hung before, beside one that goes on: what its ranks are in, behind what there is to be said of the other', async () => {
	const dir = tmp + '/beside', line = o => JSON.stringify(o) + '\n';

	mkdirSync(dir);
	oneRank(dir + '/trace_1_pid9.jsonl', Array.from({length: 10}, (_, n) => [10000 * n, 10000 * n + 100]));
	for (const pid of [11, 12]) {
		writeFileSync(`${dir}/trace_1_pid${pid}.jsonl`, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid, hostPid: pid, comm: 'job'}) +
			line({recordType: 'event', type: 'ProfilerLifecycle', func: 'ProfilerInit', commHash: '0xdef', rank: pid - 11, start: {ts: 1000000, pid, tid: pid}, stop: {ts: 1000000, pid, tid: pid}, details: {nranks: 2, commName: '<i>dp</i>'}}) +
			line({recordType: 'thread', tid: pid, comm: 'job', role: 'other', start: 1000000, stop: 4000000, since: 1000000, onCpu: 0, runq: 0, blocked: 3000000, state: 'blocked', stateSince: 1000000, why: 'futex'}));
	}
	const p = await open(browser, view('beside', dir));

	same(await p.$$eval('#pane td', list => list.map(e => e.textContent)), ['0', '<i>dp</i>', 'futex', '> 3.00 s', '1', '<i>dp</i>', 'futex', '> 3.00 s']);
	ok(await p.$eval('#pane', e => /Nothing stands out[^]*in other jobs[^]*longest/.test(e.textContent)), 'between');
	ok(await p.$$eval('#slow button', list => list.length) === 10, 'and its operations');
	await p.close();
});

await t('of a job that hung before: a rank that has ended, one that runs, and one of which nothing is known', async () => {
	const dir = tmp + '/awake', line = o => JSON.stringify(o) + '\n';

	mkdirSync(dir);
	for (const [rank, sums] of [[0, {onCpu: 0}], [1, {onCpu: 1000000, blocked: 3000000}], [2, {}]]) {
		const pid = 10 + rank;

		writeFileSync(`${dir}/trace_1_pid${pid}.jsonl`, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid, hostPid: pid, comm: 'job'}) +
			line({recordType: 'event', type: 'ProfilerLifecycle', func: 'ProfilerInit', commHash: '0xabc', rank, start: {ts: 1000000, pid, tid: pid}, stop: {ts: 1000000, pid, tid: pid}, details: {nranks: 3}}) +
			line({recordType: 'thread', tid: pid, comm: 'job', role: 'other', start: 1000000, stop: 4000000, since: 1000000, ...sums}) + (rank ? '' :
			line({recordType: 'signal', ts: 4000000, signal: 'SIGKILL', nr: 9, code: 0, from: {pid: 7, tid: 7, comm: '<i>', uid: 0}}) + line({recordType: 'footer', end: 'signal 9', records: 3})));
	}
	const p = await open(browser, view('awake', dir)), rows = await p.$$eval('#pane td', list => list.map(e => e.textContent));

	same(rows.filter((_, n) => n % 3).sort(), ['', '', '', 'it ended: signal 9; SIGKILL was sent by <i>[7], user 0', 'not asleep: on a CPU for 25 % of its time', 'not known']);
	await p.close();
});

await t('slow operations that the report does not list are counted', async () => {
	const ops = Array.from({length: 40}, (_, n) => [10000 * n, 10000 * n + (n % 2 ? 2000 + n : 100)]), file = oneRank(tmp + '/twenty.jsonl', ops);
	const heads = async name => {
		const p = await open(browser, name), found = await p.$$eval('#pane h3', list => list.map(h => h.textContent));

		await p.close();
		return found;
	};

	same(await heads(view('twenty', file)), ['Slow operations, longest first (16 of 20)']);
	same(await heads(view('three', oneRank(tmp + '/three.jsonl', ops.map(([from], n) => [from, from + (n % 10 ? 100 : 2000)])))), ['Slow operations, longest first (3)']);
});

await t('what is long is seen at any zoom, however many short ones begin in its first column', async () => {
	const short = Array.from({length: 100}, (_, n) => [20 * n, 20 * n + 10]), p = await open(browser, view('behind', oneRank(tmp + '/behind.jsonl', [...short, [2000, 8e6]])));
	const box = await lanesBox(p), rows = (await lanes(p)).flatMap((l, n) => l.kind === 'proc' || l.kind === 'events' ? [n] : []);

	same(rows.length, 2);
	await p.screenshot({path: out + '/behind.png'});
	for (let n = 0; n < 30; n++) {
		const i = await info(p), begins = i.from + 2000e3;

		for (const row of rows) {
			const [got, want] = await inkAt(p, row, (begins + Math.min(i.t1, i.from + 8e9)) / 2 - i.from, '--collend');

			same(got, want, `row ${row}, ${i.t1 - i.t0} ns in sight`);
		}
		await p.keyboard.down('Control');
		await p.mouse.move(box.x + 208 + Math.max(1, (begins - i.t0) / (i.t1 - i.t0) * (box.width - 208)), box.y + 300);
		await p.mouse.wheel({deltaY: -100});
		await p.keyboard.up('Control');
		await settle(p);
	}
	await p.close();
});

await t('a kernel is where the GPU ran it, where that is known', async () => {
	const seen = {type: 'ncclProfileKernelCh', parentObj: '0x10', start: {ts: 1e6 + 60e3, pid: 1, tid: 2}, stop: {ts: 1e6 + 90e3, pid: 1, tid: 2}, exec: undefined};

	for (const [gpu, in35, in75] of [[{gpuStart: 1e6 + 20e3, gpuStop: 1e6 + 50e3, gpuError: 1}, true, false], [{}, false, true]]) {
		const p = await open(browser, view('gpu', oneRank(tmp + '/gpu.jsonl', [[0, 100e3], [0, 0, {...seen, details: {channel: 0, ...gpu}}]])));
		const row = (await lanes(p)).findIndex(l => l.label.startsWith('KernelCh'));

		for (const [ms, there] of [[35, in35], [75, in75]]) {
			const [got, kernel] = await inkAt(p, row, ms * 1e6, '--kernel');

			same(got === kernel, there, `${JSON.stringify(gpu)}: at ${ms} ms ${got}, a kernel is ${kernel}`);
		}
		await p.close();
	}
});

await t('a rank may have more operations than a call has room for arguments', async () => {
	const p = await open(browser, view('many', oneRank(tmp + '/many.jsonl', Array.from({length: 130000}, (_, n) => [20 * n, 20 * n + 10]))));

	same([(await info(p)).events, p.told], [130000, []]);
	same((await lanes(p)).filter(l => l.n).map(l => l.n), [130000, 130000]);
	await p.close();
});

await t('a trace of the original minimal_profiler, many ranks in a process; dark', async () => {
	const p = await open(browser, view('seed', seed), {dark: true});

	same(await countsOf(p), countsByJq([seed]));
	same(await p.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(20, 24, 30)');
	await p.click('#slow button');
	await settle(p);
	await p.screenshot({path: out + '/dark.png'});
	same(p.told, []);
	await p.close();
});

await t('torn lines are counted, and what cat put behind one is read', async () => {
	const lines = readFileSync(small[0], 'utf8').split('\n').slice(0, 20), torn = lines.join('\n') + '\n{"recordType":"eve' + readFileSync(small[1], 'utf8') + '{"recordType":"sli';

	writeFileSync(tmp + '/torn.jsonl', torn);
	const p = await open(browser, view('torn', tmp + '/torn.jsonl'));

	same((await info(p)).unreadable, 2);
	same((await info(p)).procs, 2);
	same((await info(p)).records, 20 + readFileSync(small[1], 'utf8').split('\n').length - 1);
	ok((await $text(p, '#summary')).includes('2 torn lines'), await $text(p, '#summary'));
	await p.close();
});

await t('a page that broke off says so, and shows the rest', async () => {
	const whole = readFileSync(`${tmp}/small.html`, 'utf8');

	for (const less of [0, 1, 2, 3]) { // base64 in all its places
		writeFileSync(`${tmp}/half.html`, whole.slice(0, whole.length * .8 - less));
		const p = await open(browser, `${tmp}/half.html`);

		ok((await info(p)).records > 0 && (await $text(p, '#summary')).includes('damaged: 1'), await $text(p, '#summary'));
		await p.close();
	}
});

/* For a page that is opened: columns of more than 8192 doubles find no memory. */
const cramped = `{
	const Real = window.Float64Array;

	window.Float64Array = class extends Real {
		constructor(...args)
		{
			if (args[0] > 8192)
				throw new RangeError('Array buffer allocation failed');
			super(...args);
		}
	};
}`;

await t('what the browser has no memory for is said, and the rest shown', async () => {
	const p = await open(browser, `${tmp}/small.html`, {first: cramped}), told = 'no memory for all of the trace';
	const dropped = () => p.evaluate(() => document.getElementById('notice').hidden);

	same([(await info(p)).states, (await info(p)).procs < 8], [8192, true], 'states, processes');
	ok((await lanes(p)).some(l => l.kind === 'events' && l.n > 100), 'lanes');
	ok((await $text(p, '#notice')).includes(told) && (await $text(p, '#summary')).includes('not all of it'), await $text(p, '#notice') + await $text(p, '#summary'));
	same(await p.$$eval('script[data-kind]', all => all.length), 0, 'what is left of the page');
	await drop(p, [['s.jsonl', readFileSync(seed)]]);
	ok(await dropped() && !(await $text(p, '#summary')).includes('not all'), 'what was said is of another trace');
	await drop(p, [['all.jsonl', Buffer.concat(small.map(f => readFileSync(f)))]]);
	ok((await $text(p, '#notice')).includes(told), await $text(p, '#notice'));
	same(p.told, []);
	await p.close();
});

await t('while the page is read, it says how far it is', async () => {
	const p = await open(browser, `${tmp}/small.html`, {first: `
		window.said = [];
		new MutationObserver(() => window.said.push(document.getElementById('summary')?.textContent)).observe(document, {childList: true, subtree: true});`});
	const parts = (await p.evaluate(() => window.said)).map(s => /^Reading, ([0-9.]+) %:/.exec(s || '')).filter(Boolean).map(m => Number(m[1]));

	ok(parts.length > 1 && parts.every((n, k) => n >= (parts[k - 1] ?? 0) && n <= 100), parts.join(' '));
	same(await p.$eval('#progress', b => b.hidden), true);
	await p.close();
});

await t('hostile text is text', async () => {
	const name = '"><img src=x onerror=alert(9)>.jsonl';

	writeFileSync(tmp + '/' + name, hostile.text);
	const r = spawnSync(scope, ['view', '-q', '-o', tmp + '/hostile.html', tmp + '/' + name]);

	same(r.status, 0, String(r.stderr));
	const p = await open(browser, tmp + '/hostile.html');
	const elements = () => p.evaluate(() => [document.querySelectorAll('img, iframe, object, embed, base, link').length, document.querySelectorAll('script:not([data-kind])').length,
		document.querySelectorAll('style').length]);
	const calm = async () => {
		await settle(p);
		same(await elements(), [0, 1, 1]);
		same(p.told, []);
		same(await p.evaluate(() => ({}).polluted), undefined);
	};

	const want = sorted({...hostile.counts, event: hostile.counts.event + 1});

	same(await countsOf(p), want);
	same((await info(p)).unreadable, hostile.bad);
	await calm();
	for (const tab of ['slow', 'selected', 'ruler', 'trace']) {
		await p.click('#tab-' + tab);
		await calm();
	}
	const box = await lanesBox(p);

	for (let y = 30; y < box.height; y += 9) {
		for (const x of [204, 420, 700]) {
			await p.mouse.click(box.x + x, box.y + y);
			await p.mouse.move(box.x + x + 5, box.y + y);
		}
		if (y % 36 === 30)
			await calm();
	}
	await p.click('#tab-slow');
	if (await p.$('#slow button:not([disabled])'))
		await p.click('#slow button:not([disabled])');
	for (const f of ['comm', 'rank', 'type', 'func', 'verdict'])
		await p.evaluate(id => {
			const s = document.getElementById('filter-' + id);

			s.selectedIndex = s.options.length - 1;
			s.dispatchEvent(new Event('change'));
		}, f);
	await calm();
	await p.click('#clear');
	await p.type('#query', '<img constructor __proto__');
	await p.keyboard.press('Enter');
	await p.screenshot({path: out + '/hostile.png'});
	await calm();
	same(p.asked.length, 1);
	await p.close();
});

await t('no trace in it: says so, and takes one', async () => {
	const template = `${tmp}/empty.html`;

	writeFileSync(template, readFileSync(`${tmp}/small.html`, 'utf8').replace(/<script type="application\/octet-stream"[^]*/, '</body></html>'));
	const p = await open(browser, template);

	ok(await p.$eval('#drop', d => !d.hidden), 'no place to drop');
	await p.screenshot({path: out + '/empty.png'});
	await drop(p, [['s.jsonl', readFileSync(small[0])]]);
	ok(await p.$eval('#drop', d => d.hidden) && (await info(p)).records > 100, 'not read');
	await p.close();
});

await t('a record has the digits of its line, whatever a double makes of them', async () => {
	const file = oneRank(tmp + '/digits.jsonl', [[0, 1e6, {name: 'a"18446744073709551615\\', list: [1, 2]}]]);

	writeFileSync(file, readFileSync(file, 'utf8').replace('"list":[1,2]', '"commId":1287048515709837027,"list":[1287048515709837027,-0.10,1.50e3],"big":{"n":18446744073709551615}'));
	const p = await open(browser, view('digits', file));

	await clickAt(p, ...await eventPlace(p, 'Coll'));
	await p.waitForSelector('#record');
	const shown = await recordShown(p);

	same([shown.commId, shown.list, shown['big.n'], shown.name, shown.rank], ['1287048515709837027', '1287048515709837027, -0.10, 1.50e3', '18446744073709551615', 'a"18446744073709551615\\', '0']);
	await p.close();
});

await t('what is dropped and no trace leaves what is there, and is told with what to do', async () => {
	const p = await open(browser, `${tmp}/small.html`), want = countsByJq(small), zst = Buffer.from('28b52ffd0458010000', 'hex');
	const refused = async (files, ...words) => {
		await drop(p, files, false);
		await p.waitForSelector('#notice:not([hidden])', {timeout: 5000});
		for (const w of words)
			ok((await $text(p, '#notice')).includes(w), `${w}: ${await $text(p, '#notice')}`);
	};

	for (const [name, raw, ...words] of [['job.jsonl.zst', zst, 'zstd -d', 'ncclscope view'], ['notes.txt', 'a\n{"b":1}\n', 'no trace'], ['job.gz', gzipSync('a\nb\n'), 'no trace'],
		['bad.gz', '\u001f\u008b\u0008\u0000', 'no trace'], ['empty.jsonl', '', 'no trace'], ['a.bin', Buffer.alloc(3 << 20, 1), 'no trace']]) {
		await refused([[name, raw]], name, ...words);
		same(await countsOf(p), want, name);
		ok(!(await $text(p, '#summary')).includes('No trace'), name);
		await p.click('#notice button');
		ok(await p.$eval('#notice', e => e.hidden), 'still there');
	}
	await refused([['job.jsonl.zst', zst]], 'zstd -d');
	await p.screenshot({path: out + '/refused.png'});
	await drop(p, [['notes.txt', 'a\n'], ['seed.jsonl', readFileSync(seed)]]);
	same(await countsOf(p), countsByJq([seed]), 'one of two');
	ok((await $text(p, '#notice')).includes('notes.txt') && await p.$eval('#notice', e => !e.hidden), 'and tells of the other');
	await drop(p, [['cut.jsonl', 'ts":1}\n' + readFileSync(seed)], ['seed.jsonl.gz', gzipSync(readFileSync(seed)).subarray(0, -9)]]);
	ok(await p.$eval('#notice', e => e.hidden) && (await info(p)).records > 100, 'torn at an end, they are traces');
	await p.close();
});

/* A page with a report of our own. */
function withReport(name, file, report)
{
	const page = readFileSync(file, 'utf8').replace(/data-kind="report">[^<]*/, 'data-kind="report">' + gzipSync(JSON.stringify({schema: 1, ...report})).toString('base64'));

	writeFileSync(`${tmp}/${name}.html`, page);
	return `${tmp}/${name}.html`;
}

await t('a verdict leads to the worst of its operations, if that is in the trace', async () => {
	const ops = Array.from({length: 20}, (_, n) => [10000 * n, 10000 * n + (n === 7 ? 9000 : n === 12 ? 5000 : 100)]), slow = (seq, more) => ({commHash: '0xabc', func: 'AllReduce', seq, duration: ops[seq][1] - ops[seq][0], expected: 100, ...more});
	const p = await open(browser, withReport('led', view('ops', oneRank(tmp + '/ops.jsonl', ops)), {
		verdicts: [{code: 'late-rank', rank: 0, ops: 2, slow: 2, cost: 1}, {code: 'proxy-preempted', rank: 0, culprit: 'a [1]', ops: 1, slow: 1, cost: 1}, {code: 'gpu', rank: 0, ops: 1, slow: 0, cost: 1}, {code: 'late-rank', rank: 1, ops: 1, slow: 1, cost: 1}],
		slow: [slow(12, {code: 'late-rank', rank: 0}), slow(7, {code: 'late-rank', rank: 0}), slow(3, {code: 'proxy-preempted', rank: 0, culprit: 'b [2]'}), slow(4, {code: 'proxy-preempted', rank: 0, culprit: 'a [1]'}),
			{commHash: '0xabc', func: 'SendRecv', seq: 7, duration: 99999, expected: 1, code: 'late-rank', rank: 1, hung: true}],
	}));
	const about = async seq => {
		const {t0, t1, from} = await info(p);

		ok(t0 - from < ops[seq][0] * 1e3 && t1 - from > ops[seq][1] * 1e3 && t1 - t0 < 2e3 * (ops[seq][1] - ops[seq][0]), `in sight ${t0 - from}..${t1 - from}`);
	};
	const cards = () => p.$$('#pane .verdict');
	const focused = () => p.evaluate(() => {
		const e = document.activeElement, cls = e.classList[0];

		return cls ? cls + ' ' + [...document.querySelectorAll('#pane .' + cls)].indexOf(e) : e.id || e.tagName;
	});

	same(await p.$$eval('#pane .verdict', list => list.map(c => [c.tabIndex, getComputedStyle(c).cursor])), [[0, 'pointer'], [0, 'pointer'], [-1, 'auto'], [-1, 'auto']]);
	await (await cards())[0].click();
	await settle(p);
	await about(7);
	same(await focused(), 'verdict 0', 'clicked at');
	await p.screenshot({path: out + '/led.png'});
	await key(p, '0');
	await key(p, 'Tab');
	await key(p, 'Enter');
	await about(4);
	same(await focused(), 'verdict 1', 'entered');
	await key(p, 'Tab');
	await key(p, ' ');
	await about(7);
	same(await focused(), 'op 1', 'of the list');
	await key(p, '0');
	for (const n of [2, 3]) {
		await (await cards())[n].click();
		await settle(p);
		ok((await info(p)).t1 - (await info(p)).t0 > 190e6, 'went somewhere');
	}
	for (let n = 0; n < 6; n++)
		await key(p, 'j');
	same(p.told, []);
	await p.close();
});

await t('a verdict names rank, process and host, then who or what held it up', async () => {
	const verdict = more => ({ops: 1, slow: 1, cost: 1, ...more}), rank = {rank: 0, host: 'n', pid: 1};
	const p = await open(browser, withReport('whose', view('whose', oneRank(tmp + '/whose.jsonl', [[0, 100], [200, 300]])), {
		verdicts: [{code: 'stopped', ...rank}, {code: 'proxy-preempted', culprit: 'qemu[7]', ...rank}, {code: 'proxy-blocked', culprit: 'futex', ...rank}, {code: 'receiver-limited', culprit: '1.2.3.4:5>1.2.3.4:6', ...rank},
			{code: 'late-rank', ...rank, pid: 9}, {code: 'proxy-preempted', ranks: 3, culprit: 'cc1'}, {code: 'rdma-congestion', culprit: 'mlx5_0/1'}, {code: 'unknown'}].map(verdict),
		slow: [{commHash: '0xabc', func: 'AllReduce', seq: 1, duration: 100, expected: 1, code: 'proxy-preempted', rank: 0, culprit: 'qemu[7]', confidence: .5}],
	}));

	same(await p.$$eval('#pane .verdict', list => list.map(c => [...c.querySelectorAll('div')].map(d => d.textContent))), [
		['rank 0, job[1] on n'], ['rank 0, job[1] on n', 'behind qemu[7]'], ['rank 0, job[1] on n', 'in futex'], ['rank 0, job[1] on n', 'by 1.2.3.4:5>1.2.3.4:6'],
		['rank 0, process 9 on n'], ['3 ranks in turn', 'behind cc1'], ['port mlx5_0/1'], []]);
	same(await p.$eval('#pane .op .why', e => e.textContent), 'proxy-preempted rank 0, behind qemu[7], 50 % sure \u00b7 median 1.00 \u00b5s');
	await p.screenshot({path: out + '/whose.png'});
	await p.close();
});

await t('wherever one zooms and moves, the trace is in sight, and zooming out shows all of it', async () => {
	const p = await open(browser, `${tmp}/small.html`), box = await lanesBox(p);
	const wheel = async (x, deltaY) => {
		await p.keyboard.down('Control');
		await p.mouse.move(box.x + x, box.y + 200);
		await p.mouse.wheel({deltaY});
		await p.keyboard.up('Control');
		await settle(p);
	};
	const seen = async what => {
		const {t0, t1, from, to} = await info(p);

		ok(Math.min(t1, to) - Math.max(t0, from) > .3 * Math.min(t1 - t0, to - from), `${what}: ${t0}..${t1} of ${from}..${to}`);
	};

	for (const [near, far] of [[300, box.width - 5], [box.width - 5, 212], [212, box.width - 5]]) {
		await key(p, '0');
		for (let n = 0; n < 4; n++)
			await wheel(near, -300);
		for (let n = 0; n < 10; n++) {
			await wheel(far, 300);
			await seen('zoom');
		}
		const {t0, t1, from, to} = await info(p);

		ok(t0 <= from && t1 >= to, `${t0}..${t1} of ${from}..${to}`);
	}
	for (const k of ['d', 'a'])
		for (let n = 0; n < 3; n++) {
			await wheel(600, -100);
			for (let m = 0; m < 12; m++)
				await key(p, k);
			await seen(k);
		}
	await p.close();
});

await t('the axis says nothing before there is something', async () => {
	const listen = () => {
		const draw = CanvasRenderingContext2D.prototype.fillText;

		window.said = [];
		CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
			if (this.canvas.id === 'lanes' && y === 12)
				window.said.push(words);
			return draw.call(this, words, x, y);
		};
	};
	const none = `${tmp}/none.html`;

	writeFileSync(none, readFileSync(`${tmp}/small.html`, 'utf8').replace(/<script type="application\/octet-stream"[^]*/, '</body></html>'));
	for (const [file, want] of [[none, 0], [`${tmp}/small.html`, 1]]) {
		const p = await open(browser, file, {first: listen});

		for (let n = 0; n < 3; n++)
			await key(p, 's');
		const words = await p.evaluate(() => window.said.filter(w => w.endsWith('in sight')));

		ok(want ? words.length > 0 && words.every(w => /^4\.\d+ s in/.test(w)) : !words.length, file + ': ' + words.slice(0, 4));
		same(p.told, []);
		await p.close();
	}
});

await t('while what was dropped is read, nothing is drawn of what was there', async () => {
	const p = await open(browser, `${tmp}/small.html`);

	await p.click('#slow button');
	await drop(p, [['s.jsonl', readFileSync(small[0])]], false);
	same(await p.evaluate(async () => {
		const wrong = new Set();

		while (document.documentElement.dataset.state !== 'ready') {
			await new Promise(r => setTimeout(r));
			if (document.documentElement.dataset.state === 'loading' && !window.ncclscope.info().events && window.ncclscope.lanes().length)
				wrong.add('lanes');
			try {
				window.ncclscope.draw();
			} catch (err) {
				wrong.add(String(err));
			}
		}
		return [...wrong];
	}), []);
	same(p.told, []);
	await p.close();
});

/* For a page that is opened, before its own script: when it unpacks its nth block, these files are dropped, one after the other. */
const dropWithin = (nth, ...drops) => `{
	const unpack = window.atob;
	let n = 0;

	delete Uint8Array.fromBase64;
	window.atob = s => {
		if (++n === ${nth})
			for (const [name, b64] of ${JSON.stringify(drops.map(([name, raw]) => [name, Buffer.from(raw).toString('base64')]))}) {
				const data = new DataTransfer();

				data.items.add(new File([Uint8Array.from(unpack(b64), c => c.charCodeAt(0))], name));
				document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
			}
		return unpack(s);
	};
}`;

await t('what is dropped while the page reads takes its place, the last of it', async () => {
	const all = Buffer.concat(small.map(f => readFileSync(f))), notes = ['notes.txt', 'a\n'], one = ['one.jsonl', readFileSync(small[0])], other = ['seed.jsonl', readFileSync(seed)], many = ['all.jsonl', all];

	for (const [drops, want, name, ends] of [[[one], [small[0]], 'one.jsonl', 1], [[many, other], [seed], 'seed.jsonl', 1], [[notes], small, 'small: 8 traces', 1], [[one, notes], [small[0]], 'one.jsonl', 1]]) {
		const p = await open(browser, `${tmp}/small.html`, {first: dropWithin(4, ...drops)}), what = drops.map(d => d[0]).join(', ');

		await p.waitForFunction(() => performance.now() - performance.getEntriesByName('ncclscope-ready').at(-1).startTime > 500);
		same(await countsOf(p), countsByJq(want), what);
		same([await p.title(), await p.$('#notice p') !== null], [name + ' \u2013 ncclscope', drops.includes(notes)], what);
		same(await p.evaluate(() => performance.getEntriesByName('ncclscope-ready').length), ends, what + ': read to the end');
		same(p.told, []);
		await p.close();
	}
});

await t('of what is dropped one after the other the last is read, without the end of the others', async () => {
	const p = await open(browser, `${tmp}/small.html`), all = Buffer.concat(small.map(f => readFileSync(f)));

	await drop(p, [['all.jsonl', all]], false);
	await drop(p, [['all.jsonl.gz', gzipSync(all)]], false);
	await drop(p, [['seed.jsonl', readFileSync(seed)]]);
	same([await countsOf(p), await p.title()], [countsByJq([seed]), 'seed.jsonl \u2013 ncclscope']);
	ok(await p.evaluate(() => performance.getEntriesByName('ncclscope-ready').length) < 4, 'all were read');
	same(p.told, []);
	await p.close();
});

await t('the title is the name of the one trace, else of the page and how many there are', async () => {
	for (const [name, files, want] of [['title one', [small[0]], small[0].split('/').at(-1)], ['100% of job', [tmp + '/small'], '100% of job: 8 traces']]) {
		const p = await open(browser, view(name, ...files));

		same(await p.title(), want + ' \u2013 ncclscope');
		await drop(p, [['a.jsonl', readFileSync(small[0])], ['b.jsonl', readFileSync(small[1])]]);
		same(await p.title(), '2 traces \u2013 ncclscope');
		await drop(p, [['a.jsonl', readFileSync(small[0])]]);
		same(await p.title(), 'a.jsonl \u2013 ncclscope');
		await p.close();
	}
});

/* Two ranks; rank 1's operation 9 is open, as @more says, from 1 s on, and the last record is of 8 s. */
function openEnded(dir, more, ...records)
{
	const line = o => JSON.stringify(o) + '\n';

	mkdirSync(dir);
	for (const rank of [0, 1]) {
		const pid = 10 + rank, event = (type, addr, ts, end, rest) => ({recordType: 'event', type, commHash: '0xabc', rank, start: {ts: 1e6 + ts, pid, tid: pid}, stop: {ts: 1e6 + ts + 1}, eventAddr: addr, exec: {stop: 1e6 + end, source: 'proxy'}, ...rest});
		const coll = (seq, ts, end, rest) => event('ncclProfileColl', '0x' + (16 + seq).toString(16), ts, end, {details: {func: 'AllReduce', seq, count: 4, dtype: 'ncclFloat32'}, ...rest});
		let text = line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid, hostPid: pid, comm: 'job'});

		for (let seq = 0; seq < 9; seq++)
			text += line(coll(seq, 1e5 * seq, 1e5 * seq + 500));
		if (rank)
			text += records.map(line).join('');
		text += more ? line(coll(9, 1e6, 1e6 + 500, rank ? more : {})) : '';
		if (rank)
			text += line({recordType: 'thread', tid: pid, comm: 'job', role: 'app', start: 1e6, stop: 1e6 + 8e6});
		writeFileSync(`${dir}/trace_1_pid${pid}.jsonl`, text);
	}
	return dir;
}

await t('what never ended lasts until its process\u2019 last record, everywhere', async () => {
	const at = {pid: 11, tid: 11}, proxy = {recordType: 'event', type: 'ncclProfileProxyOp', commHash: '0xabc', rank: 1, myPid: 11, start: {ts: 2e6 + 10, ...at}, stop: null, unfinished: true, lastState: '', parentObj: '0x19', eventAddr: '0x99', details: {channel: 0, peer: 0, isSend: true}};
	const told = {recordType: 'open', eventType: 'ncclProfileColl', commHash: '0xabc', rank: 1, start: {ts: 2e6, ...at}, stop: {ts: 2e6 + 1, ...at}, myPid: 11, eventAddr: '0x19', ts: 9e6, age: 7e6, quiet: 7e6, details: {func: 'AllReduce', seq: 9, count: 4, dtype: 'ncclFloat32'}};

	for (const [name, dir] of [['its line says so', openEnded(tmp + '/open1', {unfinished: true})], ['and has no stop', openEnded(tmp + '/open2', {unfinished: true, stop: null, exec: undefined})],
		['what is below it never ended', openEnded(tmp + '/open3', {}, proxy)], ['its line never came', openEnded(tmp + '/open4', null, told)]]) {
		const p = await open(browser, view('open', dir)), longest = await $text(p, '#slow button');

		ok(longest.includes('AllReduce #9') && /AllReduce #9[67]\.\d+ s/.test(longest), `${name}: ${longest}`);
		await p.click('#slow button');
		await settle(p);
		const {t0, t1, from} = await info(p);

		ok(t0 - from < 1e9 && t1 - from > 8e9, `${name}: in sight ${t0 - from}..${t1 - from}`);
		const rows = (await lanes(p)).flatMap((l, n) => l.kind === 'proc' ? [n] : []);

		for (const row of rows) {
			const [got, open, head, line] = await inkAt(p, row, 5e9, name === 'and has no stop' ? '--coll' : '--collend', '--head', '--line');

			ok(row === rows[1] ? got === open : got === head || got === line, `${name}: row ${row} has ${got}`);
		}
		await p.click('#tab-selected');
		const pane = await $text(p, '#pane');

		ok(/had not ended after 7\.00 s/.test(pane), `${name}: ${pane.slice(0, 300)}`);
		if (name !== 'its line never came')
			ok(/The operation, by rank.*rank 1\+[^r]*7\.00 s, open/.test(pane), `${name}: ${pane}`);
		if (name !== 'and has no stop')
			ok(pane.includes('enqueued in1.00 \u00b5s'), `${name}: ${pane.slice(0, 300)}`);
		await p.screenshot({path: out + '/open.png'});
		await p.close();
	}
});

await t('windows of one process are of one process', async () => {
	const dir = tmp + '/windows', line = o => JSON.stringify(o) + '\n';

	mkdirSync(dir);
	for (const [pid, rank] of [[10, 0], [11, 1]])
		for (const from of [1e6, 5e6, 9e6]) {
			const at = {pid, tid: pid};
			let text = line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid, hostPid: pid, comm: 'job', cmdline: ['job', '-x']});

			for (let seq = 0; seq < 5; seq++)
				text += line({recordType: 'event', type: 'ncclProfileColl', commHash: '0xabc', rank, start: {ts: from + seq * 1e4, ...at}, stop: {ts: from + seq * 1e4 + 1, ...at},
					eventAddr: '0x' + (from + seq).toString(16), exec: {stop: from + seq * 1e4 + 500, source: 'proxy'}, details: {func: 'AllReduce', seq: from / 1e4 + seq, count: 4, dtype: 'ncclFloat32'}});
			text += line({recordType: 'thread', tid: pid, comm: 'job', role: 'app', start: from, stop: from + 1e5, onCpu: 1000, runq: 0, blocked: 99000});
			writeFileSync(`${dir}/trace_${from}_pid${pid}.jsonl`, text);
		}
	const p = await open(browser, view('windows', dir)), rows = await lanes(p);

	same(rows.filter(l => l.kind === 'proc').length, 2, 'processes');
	ok(/\b2 processes\b/.test(await $text(p, '#summary')), await $text(p, '#summary'));
	await p.close();
});

await t('a pid that is used again is of two processes', async () => {
	const dir = tmp + '/reused', line = o => JSON.stringify(o) + '\n';

	mkdirSync(dir);
	for (const [from, startTime] of [[1e6, 5e5], [5e6, 4e6], [9e6, 4e6], [12e6, undefined], [15e6, undefined]]) {
		const at = {pid: 10, tid: 10};

		writeFileSync(`${dir}/trace_${from}_pid10.jsonl`, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: 10, hostPid: 10, comm: 'job', startTime, cmdline: ['job']}) +
			line({recordType: 'event', type: 'ncclProfileColl', commHash: '0xabc', rank: 0, start: {ts: from, ...at}, stop: {ts: from + 1, ...at},
				eventAddr: '0x' + from.toString(16), exec: {stop: from + 500, source: 'proxy'}, details: {func: 'AllReduce', seq: from / 1e4, count: 4, dtype: 'ncclFloat32'}}));
	}
	const p = await open(browser, view('reused', dir));

	same((await lanes(p)).filter(l => l.kind === 'proc').length, 3, 'processes');
	await p.close();
});

/* A trace of what ranks did: its file. @ops: [start, end, details, more], ms from 1 s on; more: keys of their records. @ncclVersion: if it is known. */
function ofRank(dir, rank, pid, ops, ncclVersion)
{
	const line = o => JSON.stringify(o) + '\n', us = ms => Math.round(1e6 + ms * 1e3), file = `${dir}/trace_${us(ops[0][0])}_pid${pid}.jsonl`;

	mkdirSync(dir, {recursive: true});
	writeFileSync(file, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid, hostPid: pid, comm: 'job', ncclVersion}) + ops.map(([start, end, details, more], n) =>
		line({recordType: 'event', type: details.peer === undefined ? 'ncclProfileColl' : 'ncclProfileP2p', commHash: '0xabc', rank, start: {ts: us(start), pid, tid: pid}, stop: {ts: us(start) + 1, pid, tid: pid},
			eventAddr: '0x' + (us(start) * 256 + n % 256).toString(16), details: {count: 4, dtype: 'ncclFloat32', ...details}, exec: {stop: us(end), source: 'proxy'}, ...more})).join(''));
	return file;
}

/* How long the operations of a page take, the longest first, and of how many one rank is all that there is. */
async function operationsOf(p)
{
	const long = await p.$$eval('#slow button .long', b => b.map(e => e.textContent));
	let alone = 0;

	for (let n = 0; n < long.length; n++) {
		await p.click('#tab-slow');
		await p.evaluate(n => document.querySelectorAll('#slow button')[n].click(), n);
		await p.click('#tab-selected');
		alone += !(await $text(p, '#pane')).includes('The operation, by rank');
	}
	return [long.length, [...new Set(long)], alone];
}

const numbered = {func: 'AllReduce', seq: 7}; // once: all replays of a CUDA graph have one

await t('replays of one number are one operation each, also where one recording begins later', async () => {
	for (const [name, period, took] of [['replays', 10, 1], ['backtoback', 1, 1]]) {
		const replays = (from, begin, end) => Array.from({length: 9 - from}, (_, n) => [period * (from + n) + begin, period * (from + n) + end, numbered]);
		const p = await open(browser, view(name, ofRank(`${tmp}/${name}`, 0, 10, replays(0, 0, took)), ofRank(`${tmp}/${name}`, 1, 11, replays(4, .002, took - .004))));

		same(await operationsOf(p), [9, ['1.00 ms'], 4], name);
		same(p.told, []);
		await p.close();
	}
});

await t('a job that was started again has operations of its own; one that is late or hangs is the same', async () => {
	const dir = tmp + '/restarted', life = from => Array.from({length: 3}, (_, n) => [from + 10 * n, from + 10 * n + 1, {func: 'AllReduce', seq: n}]);
	const p = await open(browser, view('restarted', ...[[0, 10, 0], [1, 11, 0], [0, 20, 60e3], [1, 21, 60e3]].map(([rank, pid, from]) => ofRank(dir, rank, pid, life(from)))));

	same(await operationsOf(p), [6, ['1.00 ms'], 0]);
	await p.close();
	const never = {unfinished: true, exec: undefined}, replays = (...last) => [[0, 1, numbered], [10, 11, numbered], [20, ...last]];
	const q = await open(browser, view('hangs', ofRank(dir + 2, 0, 10, [...replays(20, numbered, never), [5000, 5001, {func: 'Reduce', seq: 1}]]), ofRank(dir + 2, 1, 11, [...replays(20, numbered, never), [300, 301, {func: 'Reduce', seq: 2}]])));

	same(await operationsOf(q), [5, ['4.98 s', '1.00 ms'], 2]);
	await q.close();
});

await t('numbers that are not those of other ranks (NCCL up to 2.25) join nothing', async () => {
	const p = await open(browser, view('own', ...[0, 1].map(rank => ofRank(tmp + '/own', rank, 10 + rank,
		[0, 1, 2].map(n => [10 * n, 10 * n + 1, {func: 'AllReduce', seq: n, seqCommon: false}])))));

	same(await operationsOf(p), [6, ['1.00 ms'], 6]);
	await p.close();
});

await t('nor do those of old traces, which do not say so, of such an NCCL', async () => {
	for (const [version, seqCommon, want] of [['2.25.1', undefined, [6, 6]], ['2.25.1', true, [3, 0]], ['2.26.2', undefined, [3, 0]]]) {
		const name = `old${version}${seqCommon}`;
		const p = await open(browser, view(name, ...[0, 1].map(rank => ofRank(`${tmp}/${name}`, rank, 10 + rank,
			[0, 1, 2].map(n => [10 * n, 10 * n + 1, {func: 'AllReduce', seq: n, seqCommon}]), version))));
		const [n, , alone] = await operationsOf(p);

		same([n, alone], want, name);
		await p.close();
	}
});

await t('one whose number is not that of other ranks does not part those whose is', async () => {
	const p = await open(browser, view('among', ...[[0, 1], [1, 1.2], [2, 1.1, false]].map(([rank, end, seqCommon]) => ofRank(tmp + '/among', rank, 10 + rank,
		[[0, end, {func: 'AllReduce', seq: 5, seqCommon}]]))));

	same(await operationsOf(p), [2, ['1.20 ms', '1.10 ms'], 1]);
	await p.close();
});

await t('what report says of a replay leads to that, by how long it took', async () => {
	const replays = Array.from({length: 9}, (_, n) => [100 * n, 100 * n + (n === 5 ? 50 : 1), numbered]), dir = tmp + '/told';
	const p = await open(browser, withReport('told', view('told0', ofRank(dir, 0, 10, replays), ofRank(dir, 1, 11, replays)), {slow: [{commHash: '0xabc', func: 'AllReduce', seq: 7, duration: 50e3, expected: 1e3, code: 'late-rank', rank: 1}]}));

	await p.click('#slow button');
	await settle(p);
	const {t0, t1, from} = await info(p);

	ok(t0 - from > 450e6 && t0 - from < 500e6 && t1 - from > 550e6 && t1 - from < 600e6, `in sight ${t0 - from}..${t1 - from}`);
	await p.close();
});

/* n messages from rank 0 to rank 1, one each 10 ms, of which either has so many: [of rank 0, of rank 1]. */
const messages = (...nrs) => nrs.map((list, rank) => list.map(n => [10 * n, 10 * n + 1, {func: rank ? 'Recv' : 'Send', peer: 1 - rank}, n === 8 && !list.includes(7) ? {lossNear: 1} : {}]));
const upTo = (n, from = 0) => Array.from({length: n - from}, (_, k) => from + k);

await t('a Send is received by the Recv of its time, whatever is not in the trace', async () => {
	for (const [name, ranks, want] of [['all', messages(upTo(12), upTo(12)), [12, 0]], ['began later', messages(upTo(12), upTo(12, 4)), [12, 4]], ['sender began later', messages(upTo(12, 4), upTo(12)), [12, 4]],
		['a record was lost', messages(upTo(12), [...upTo(7), ...upTo(12, 8)]), [12, 1]], ['the sender\u2019s was lost', messages([...upTo(7), ...upTo(12, 8)], upTo(12)), [12, 1]]]) {
		const p = await open(browser, view('messages', ...ranks.map((ops, rank) => ofRank(`${tmp}/messages ${name}`, rank, 10 + rank, ops))));

		same(await operationsOf(p), [want[0], ['1.00 ms'], want[1]], name);
		await p.close();
	}
});

await t('a Send that is over when its Recv begins is received by that, if it was called in time; replays of a graph have no call of their own', async () => {
	const call = (rank, func, at, graphCaptured = false) => [at, at, {func, peer: 0}, {type: 'ncclProfileP2pApi', eventAddr: '0xca' + rank, details: {func, graphCaptured}}];
	const ring = rank => {
		const start = rank === 2 ? 10 : 150; // rank 0 comes late, until when only rank 2 has all its connections

		return [call(rank, 'Recv', 1), [start, start + 2, {func: 'Send', peer: (rank + 1) % 4}], [start, 160, {func: 'Recv', peer: (rank + 3) % 4}, {parentObj: '0xca' + rank}]];
	};
	const [sends, recvs] = messages(upTo(10), upTo(12, 4)), replays = [call(1, 'Recv', 0, true), ...recvs.map(o => [...o.slice(0, 3), {parentObj: '0xca1'}])];

	for (const [name, ranks, want] of [['ring', upTo(4).map(ring), [4, 0]], ['replays', [sends, replays], [12, 6]]]) {
		const p = await open(browser, view('calls', ...ranks.map((ops, rank) => ofRank(`${tmp}/calls ${name}`, rank, 10 + rank, ops)))), [n, , alone] = await operationsOf(p);

		same([n, alone], want, name);
		await p.close();
	}
});

await t('a Send of one window is not received in another', async () => {
	const dir = tmp + '/messages in windows', windows = [[upTo(6), upTo(5)], [upTo(308, 302), upTo(308, 303)], [upTo(606, 602), upTo(606, 600)]];
	const p = await open(browser, view('messages', ...windows.flatMap(w => messages(...w).map((ops, rank) => ofRank(dir, rank, 10 + rank, ops)))));

	same(await operationsOf(p), [18, ['1.00 ms'], 4]);
	same((await lanes(p)).filter(l => l.kind === 'proc').length, 2);
	await p.close();
});

await t('what report says of a message leads to that, if it is in the trace, and to one that hangs', async () => {
	const [sends, recvs] = messages(upTo(30), upTo(30)), dir = tmp + '/told messages', slow = more => ({commHash: '0xabc', func: 'SendRecv', seq: 7, expected: 1e3, code: 'late-rank', rank: 0, ...more});

	sends[17][1] += 4; // ms
	recvs[17][1] += 4;
	sends[29][0] -= .5;
	sends[29].splice(3, 1, {stop: null, exec: undefined, unfinished: true});
	const p = await open(browser, withReport('told messages', view('messages', ofRank(dir, 0, 10, sends), ofRank(dir, 1, 11, recvs)), {slow: [slow({duration: 5e3}), slow({duration: 3e3}), slow({duration: 1, hung: true, rank: 1})]}));
	const titles = await p.$$eval('#slow .what', list => list.map(e => [e.textContent, e.closest('button').disabled]));

	same(titles, [['rank 0: Send \u2192 1', false], ['rank 0: Send \u2192 1', false], ['SendRecv #7', true]]);
	for (const [n, at] of [[0, 290], [1, 170]]) {
		await p.evaluate(k => document.querySelectorAll('#slow button')[k].click(), n);
		await settle(p);
		const {t0, t1, from} = await info(p);

		ok(t0 - from < at * 1e6 && t1 - from > at * 1e6 && t1 - t0 < 10e6, `${at} ms: in sight ${t0 - from}..${t1 - from}`);
	}
	await p.close();
});

await t('signals are marks on their process, and in the list; lines of the kernel\u2019s log once, whoever tells of them', async () => {
	const line = o => JSON.stringify(o) + '\n', one = oneRank(tmp + '/signals1.jsonl', [[0, 3e6]]), two = tmp + '/signals2.jsonl';
	const log = line({recordType: 'kmsg', ts: 2e6, level: 3, sign: 'gpu', text: 'NVRM: Xid 79'});

	appendFileSync(one, line({recordType: 'kmsg', ts: 5e5, before: true, level: 3, sign: 'link', text: 'eth0: Link down'}) + log +
		line({recordType: 'signal', ts: 2.5e6, signal: 'SIGTERM', nr: 15, code: 0, from: {pid: 77, tid: 77, comm: 'slurmstepd', uid: 0}}) +
		line({recordType: 'signal', ts: 3.5e6, signal: 'SIGKILL', nr: 9, code: 128}));
	writeFileSync(two, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: 2, hostPid: 2, comm: 'job'}) + log);
	const p = await open(browser, view('signals', one, two)), all = await lanes(p), at = all.findIndex(l => l.kind === 'proc');

	for (const us of [1.5e6, 2.5e6]) {
		const [got, want] = await inkAt(p, at, us * 1e3, '--retrans');

		same(got, want, us);
	}
	await p.click('#tab-trace');
	const told = await $text(p, '#pane');

	for (const s of ['SIGTERMslurmstepd[77]', 'SIGKILLthe kernel', 'Link down', 'Xid 79'])
		ok(told.replaceAll(/\s/g, '').includes(s.replaceAll(' ', '')), s + ' in ' + told);
	same(told.split('Xid 79').length, 2);
	const i = await info(p), x = 208 + (i.from + 1.5e9 - i.t0) / (i.t1 - i.t0) * ((await p.$eval('#lanes', c => c.getBoundingClientRect().width)) - 208);
	const top = await p.$eval('#lanes', c => c.getBoundingClientRect().top);

	await p.mouse.move(x, top + all[at].y + 8);
	await settle(p);
	ok((await $text(p, '#tip')).startsWith('SIGTERM from slurmstepd[77], '), await $text(p, '#tip'));
	await p.screenshot({path: out + '/signals.png'});
	await p.close();
});

await t('a GPU that is held down: along the lower edge of its process, seconds of the same as one, and in the list; what the power limit does in the list only', async () => {
	const line = o => JSON.stringify(o) + '\n', one = oneRank(tmp + '/gpu.jsonl', [[0, 12e6]]);
	const gpu = (s, more) => line({recordType: 'gpu', ts: s * 1e6, interval: 1e6, gpuUuid: 'u', index: 5, name: 'NVIDIA H200', smClock: 1230, util: 97, temperature: 71, power: 310000, ...more});
	const brake = {held: {swPowerCap: 9e5, hwPowerBrakeSlowdown: 8e5}};

	appendFileSync(one, line({recordType: 'gpu', ts: 2e6, gpuUuid: 'u', index: 5, smClock: 1770, util: 97}) + gpu(3, {held: {swPowerCap: 1e6}, errors: {pcieReplay: 7, eccCorrected: 1}}) +
		gpu(4, brake) + gpu(5, brake) + gpu(6, {held: {}}) + gpu(7, brake) + gpu(8, {held: {hwThermalSlowdown: 5e4}}) + gpu(9, {lost: true, smClock: undefined}));
	const p = await open(browser, view('gpu', one)), all = await lanes(p), at = all.findIndex(l => l.kind === 'proc');
	const ink = async s => (([got, want]) => got === want)(await inkAt(p, at, (s - 1) * 1e9, '--retrans'));

	for (const [s, held] of [[2.5, false], [3.2, true], [4.8, true], [5.5, false], [6.5, true], [7.5, false], [8.5, true]])
		same(await ink(s), held, s + ' s');
	await p.click('#tab-trace');
	const told = (await $text(p, '#pane')).replaceAll(/\s/g, '');

	ok(told.includes('GPUsranknodeGPUMHz\u00b0CWmaxhelddown,errorsrank0n51307'), told);
	ok(told.includes('130771310lost,swPowerCap53%,hwPowerBrakeSlowdown34%,7errors'), told);
	const i = await info(p), box = await p.$eval('#lanes', c => (({top, width}) => ({top, width}))(c.getBoundingClientRect())), x = s => 208 + (i.from + (s - 1) * 1e9 - i.t0) / (i.t1 - i.t0) * (box.width - 208);

	await p.mouse.move(x(4), box.top + all[at].y + all[at].h - 2);
	await settle(p);
	ok((await $text(p, '#tip')).startsWith('GPU 5 held down by hwPowerBrakeSlowdown for 80 % of the time, 2.00 s from '), await $text(p, '#tip'));
	await p.screenshot({path: out + '/gpu.png'});
	await p.close();
});

await t('events that were still open, of each process, whatever stalls others had and came out of', async () => {
	const line = o => JSON.stringify(o) + '\n', dir = tmp + '/open', still = (ms, addr, func) => line({recordType: 'open', eventType: 'ncclProfileColl', ts: 1e6 + ms * 1e3, commHash: '0xabc', rank: 0,
		start: {ts: 1e6 + ms * 1e3 - 1000, pid: 1, tid: 1}, eventAddr: addr, details: {func, seq: 9, count: 4, dtype: 'ncclFloat32'}});
	const stalls = Array.from({length: 10001}, (_, n) => [n, n + .5, {func: 'Broadcast', seq: n}]), one = ofRank(dir, 0, 1, stalls), two = ofRank(dir, 1, 2, [[0, 1, {func: 'Reduce', seq: 0}]]);
	const events = readFileSync(one, 'utf8').split('\n').filter(Boolean);

	writeFileSync(one, events[0] + '\n' + events.slice(1).map((text, n) => still(n, JSON.parse(text).eventAddr, 'Broadcast') + text + '\n').join('') + still(20000, '0x777', 'AllGather'));
	appendFileSync(two, still(20000, '0x778', 'AllGather').replaceAll('"rank":0', '"rank":1'));
	const p = await open(browser, view('open', one, two));

	same((await info(p)).events, 10004);
	await p.close();
});

await t('what was unfinished when a window ended is drawn to that window\u2019s end', async () => {
	const dir = tmp + '/unfinished', never = {stop: null, exec: undefined, unfinished: true}, window = s => [[s * 1e3, s * 1e3 + 1, numbered], [s * 1e3 + 10, 0, {func: 'Reduce', seq: s}, never], [s * 1e3 + 20, s * 1e3 + 40, {func: 'Broadcast', seq: s}]];
	const p = await open(browser, view('unfinished', ofRank(dir, 0, 10, window(0)), ofRank(dir, 0, 10, window(600)), ofRank(dir, 0, 10, window(1200))));

	same((await lanes(p)).filter(l => l.kind === 'proc').length, 1);
	same(await p.$$eval('#slow button .long', b => b.map(e => e.textContent)), [...Array(3).fill('30.0 ms'), ...Array(3).fill('20.0 ms'), ...Array(3).fill('1.00 ms')]);
	await p.close();
});

await t('a node has one monotonic clock, also where its real one was set', async () => {
	const dir = tmp + '/clocks', of = (host, rank, offset) => {
		const file = ofRank(dir, rank, 10 + rank, [[0, 1, numbered]]), text = readFileSync(file, 'utf8');

		writeFileSync(file, text.replace('"host":"n","bootId":"b"', `"host":"${host}","bootId":"${host}","clock":{"realtimeOffset":${offset}}`));
		return file;
	};
	const p = await open(browser, view('clocks', of('a', 0, '1700000000000000.000'), of('b', 1, '1700000000000000.000'), of('b', 2, '1700000000300000.000')));

	same(await p.$$eval('#slow button .long', b => b.map(e => e.textContent)), ['1.00 ms']);
	await p.close();
});

/* Events of a thread of the progress: [type, keys of its record]; of what goes on later a record tells at 2 s. */
function ofThread(file, events)
{
	const line = o => JSON.stringify(o) + '\n', at = {pid: 1, tid: 1};

	writeFileSync(file, line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: 1, hostPid: 1, comm: 'job'}) + events.map(([type, more], n) =>
		line({recordType: 'event', type: 'ncclProfile' + type, commHash: '0xabc', rank: 0, start: {ts: 1e6, ...at}, stop: null, unfinished: true, myPid: 1, eventAddr: '0x' + (16 + n), details: {channel: 0, peer: 1, isSend: true}, ...more})).join('') +
		line({recordType: 'thread', tid: 1, comm: 'job', role: 'proxy', start: 1e6, stop: 2e6}));
	return file;
}

/* The ruler over all that is in sight. */
async function ruleAll(p)
{
	const box = await lanesBox(p);

	await p.keyboard.down('Shift');
	await p.mouse.move(box.x + 209, box.y + 300);
	await p.mouse.down();
	await p.mouse.move(box.x + box.width - 2, box.y + 300, {steps: 3});
	await p.mouse.up();
	await p.keyboard.up('Shift');
	await settle(p);
}

await t('what the kernel did is drawn as far as it is told, and no further, of what hangs', async () => {
	const sched = {onCpu: 0, runq: 4e5, blocked: 0}, hung = ofThread(tmp + '/edge1.jsonl', [['Coll', {stop: {ts: 1e6 + 1}, unfinished: undefined, exec: {stop: 1.4e6, source: 'proxy', openChildren: 1}, sched, details: {func: 'AllReduce', seq: 1}}],
		['ProxyOp', {parentObj: '0x16'}]]), open_ = ofThread(tmp + '/edge2.jsonl', [['ProxyOp', {recordType: 'open', type: undefined, eventType: 'ncclProfileProxyOp', ts: 1.4e6, sched}]]);

	for (const [name, file, label] of [['hung', hung, 'Coll'], ['open', open_, 'ch0 \u2192 rank 1']]) {
		const p = await open(browser, view('edge', file)), at = (await lanes(p)).findIndex(l => l.kind === 'events' && l.label === label), box = await lanesBox(p);

		for (const [ns, there] of [[2e8, true], [6e8, false], [9e8, false]]) {
			const [got, runq] = await inkAt(p, at, ns, '--runq');

			same(got === runq, there, `${name}, ${ns} ns: ${got}`);
		}
		const [x, y] = await eventPlace(p, label);

		await p.mouse.move(box.x + x, box.y + y);
		await settle(p);
		ok((await $text(p, '#tip')).includes('of the first 400 ms: running 0 ns, runnable 400 ms'), await $text(p, '#tip'));
		await clickAt(p, x, y);
		ok((await $text(p, '#pane')).includes(', in the first 400 ms'), (await $text(p, '#pane')).slice(0, 400));
		await ruleAll(p);
		same((await $text(p, '#pane')).includes('runnable400 ms'), name === 'open', 'the ruler: ' + await $text(p, '#pane'));
		await p.close();
	}
});

await t('in the ruler all that covers a time counts alike: many short steps for no more than their time, a long call for no less than its own', async () => {
	const over = (from, ms, sched) => ({start: {ts: from, pid: 1, tid: 1}, stop: {ts: from + ms * 1e3, pid: 1, tid: 1}, unfinished: undefined, sched: {onCpu: 0, runq: 0, blocked: 0, ...sched}});
	const steps = Array.from({length: 10}, () => ['ProxyStep', over(1.9e6, 100, {runq: 1e5})]), half = ['ProxyStep', over(1.9e6, 50, {onCpu: 5e4})];

	for (const [name, events, want] of [['apart', steps, 'running0 nsrunnable100 msblocked900 ms'], ['at once', [...steps.slice(9), half], 'running25.0 msrunnable75.0 msblocked900 ms']]) {
		const p = await open(browser, view('covered', ofThread(tmp + '/covered.jsonl', [['ProxyCtrl', over(1e6, 900, {blocked: 9e5})], ...events])));

		await ruleAll(p);
		ok((await $text(p, '#pane')).includes(want), name + ': ' + await $text(p, '#pane'));
		await p.close();
	}
});

await t('what is not known of a thread is told as that: at the lower edge, in the ruler, of an event', async () => {
	const sched = {onCpu: 5e4, runq: 5e4, blocked: 0, unknown: 9e5}, p = await open(browser, view('unknown', ofThread(tmp + '/unknown.jsonl', [['ProxyOp', {stop: {ts: 2e6, pid: 1, tid: 1}, unfinished: undefined, sched}]])));
	const at = (await lanes(p)).findIndex(l => l.label === 'ch0 \u2192 rank 1'), box = await lanesBox(p), [x, y] = await eventPlace(p, 'ch0 \u2192 rank 1');

	for (const [ns, name] of [[2e7, '--run'], [7e7, '--runq'], [5e8, '--unknown'], [9e8, '--unknown']]) {
		const [got, want] = await inkAt(p, at, ns, name);

		same(got, want, name);
	}
	await p.mouse.move(box.x + x, box.y + y);
	await settle(p);
	ok((await $text(p, '#tip')).endsWith('blocked 0 ns, not known 900 ms'), await $text(p, '#tip'));
	await clickAt(p, x, y);
	ok((await $text(p, '#pane')).includes('running50.0 msrunnable50.0 ms') && (await $text(p, '#pane')).includes('not known900 ms'), (await $text(p, '#pane')).slice(0, 400));
	await ruleAll(p);
	ok((await $text(p, '#pane')).includes('running50.0 msrunnable50.0 ms') && (await $text(p, '#pane')).includes('not known900 ms'), (await $text(p, '#pane')).slice(0, 400));
	await p.screenshot({path: out + '/unknown.png'});
	await p.close();
});

await t('of a connection nothing is told between two windows', async () => {
	const line = o => JSON.stringify(o) + '\n', head = line({recordType: 'header', schema: 1, host: 'n', bootId: 'b', pid: 1, hostPid: 1, comm: 'job'}), file = tmp + '/gap.jsonl', resent = {txBytes: 1e9, rxBytes: 0, retrans: 1};
	const flow = (s, delta) => line({recordType: 'flow', ts: (1 + s) * 1e6, tid: 1, flow: 'a>b', netns: 1, why: delta ? 'sample' : 'found', delta, tcp: {rtt: 93.3}}), moved = {txBytes: 1e9, rxBytes: 0};

	writeFileSync(file, head + flow(0) + flow(1, moved) + head + flow(9) + flow(10, resent));
	const p = await open(browser, view('gap', file)), closed = (await lanes(p)).find(l => l.kind === 'flows');

	await clickAt(p, 32, closed.y + 8);
	const lane = (await lanes(p)).find(l => l.kind === 'flow'), i = await info(p), box = await lanesBox(p);
	const told = async s => {
		await p.mouse.move(box.x + 208 + (i.from + s * 1e9 - i.t0) / (i.t1 - i.t0) * (box.width - 208), box.y + lane.y + lane.h - 3);
		await settle(p);
		return p.$eval('#tip', e => e.hidden ? '' : e.textContent);
	};

	for (const s of [.5, 9.5])
		ok((await told(s)).includes('1.00 GB/s, round trip 93.3'), `${s} s: ${await told(s)}`);
	ok((await told(9.5)).endsWith('1 segment sent again, 0 needlessly'), await told(9.5));
	await key(p, 'w');
	ok(await p.$eval('#tip', e => e.hidden), 'a tip of what is not below the mouse any more');
	await key(p, '0');
	same(await told(5), '');
	const [ink, rtt] = await inkAt(p, (await lanes(p)).findIndex(l => l.kind === 'flow'), 5e9, '--rtt');

	ok(ink !== rtt, ink);
	await p.screenshot({path: out + '/gap.png'});
	await p.close();
});

await t('a hang goes on as long as there is any record of its process', async () => {
	for (const more of [{recordType: 'node', interval: 1e6, cpus: []}, {recordType: 'clock', realtimeOffset: 0, error: 1}]) {
		const file = ofThread(tmp + '/after.jsonl', [['ProxyOp', {recordType: 'open', type: undefined, eventType: 'ncclProfileProxyOp', ts: 1.4e6}]]);

		appendFileSync(file, JSON.stringify({...more, ts: 10e6}) + '\n');
		const p = await open(browser, view('after', file));

		await clickAt(p, ...await eventPlace(p, 'ch0 \u2192 rank 1'));
		ok((await $text(p, '#pane')).includes('had not ended after 9.00 s'), (await $text(p, '#pane')).slice(0, 300));
		await p.close();
	}
});

await t('the map of ranks has all of them, and whoever does not wait is seen', async () => {
	const dir = tmp + '/ranks', late = 120, files = Array.from({length: 128}, (_, rank) => ofRank(dir, rank, 1000 + rank, [[rank === late ? 90 : 0, 100, numbered]]));
	const p = await open(browser, view('ranks', ...files)), light = await p.$eval('#heat', c => {
		const d = c.width / c.getBoundingClientRect().width, x = Math.round(c.width * .97), px = c.getContext('2d').getImageData(x, 0, 1, c.height).data;
		const at = y => px[4 * y] + px[4 * y + 1] + px[4 * y + 2], rows = Array.from({length: Math.round(160 * d)}, (_, k) => at(Math.round(16 * d) + k)), usual = rows[40];

		return [rows.findIndex(v => v > usual + 100) / d, rows.length / d];
	});

	ok(light[0] > 145 && light[0] < 156, light);
	await p.screenshot({path: out + '/ranks.png'});
	await p.close();
});

/* Two jobs, of `ranks` ranks each: on the map, in the list of communicators, and what a verdict leads to. */
const twoJobs = (dir, ranks) => [['0xabc', 100], ['0xdef', 200]].flatMap(([commHash, pid]) =>
	Array.from({length: ranks}, (_, rank) => ofRank(tmp + '/' + dir, rank, pid + rank, [[pid, pid + 50, numbered, {commHash}]])));
const named = (file, pid, commHash, commName) => {
	appendFileSync(file, JSON.stringify({recordType: 'event', type: 'ProfilerLifecycle', func: 'ProfilerInit', commHash, rank: 0, start: {ts: 1e6, pid, tid: pid}, stop: {ts: 1e6}, details: {commName, nranks: 2}}) + '\n');
};
const mapSays = {first: () => {
	const fill = CanvasRenderingContext2D.prototype.fillText;

	window.said = {};
	CanvasRenderingContext2D.prototype.fillText = function (words, ...at) {
		(window.said[this.canvas.id] ??= new Map()).set(at.join(), words);
		fill.call(this, words, ...at);
	};
}};
const mapNames = p => p.evaluate(() => [...window.said.heat.values()].slice(1));

await t('ranks of two jobs are told apart on the map, and those of each lie behind each other', async () => {
	const files = twoJobs('jobs', 2), p = await open(browser, view('jobs', ...files), mapSays), own = {pid: 200, host: 'n', rank: 0, code: 'late-rank'};

	same(await mapNames(p), ['rank 0 of 0xabc', 'rank 1 of 0xabc', 'rank 0 of 0xdef', 'rank 1 of 0xdef']);
	same((await lanes(p)).filter(l => l.kind === 'proc').map(l => l.label.replace(/.*\[/, '[')), ['[100]', '[101]', '[200]', '[201]']);
	await p.screenshot({path: out + '/jobs.png'});
	await p.close();
	named(files[0], 100, '0xabc', 'default_pg');
	const q = await open(browser, view('jobs', ...files), mapSays);

	same((await mapNames(q)).slice(0, 2), ['rank 0 of default_pg', 'rank 1 of default_pg']);
	same(await q.$$eval('#slow .what', list => list.map(e => e.textContent)), ['AllReduce #7 of default_pg', 'AllReduce #7 of 0xdef']);
	await q.close();
	named(files[2], 200, '0xdef', 'default_pg'); // which tells nothing any more
	const slow = [['0xabc', 100], ['0xdef', 200]].map(([commHash, pid]) => ({commHash, host: 'n', func: 'AllReduce', seq: 7, duration: 50e3, expected: 1, code: 'late-rank', rank: 0, pid}));
	const r = await open(browser, withReport('jobs2', view('jobs', ...files), {verdicts: [own, {...own, commHash: '0xdef'}, {...own, commHash: '0xabc'}].map(v => ({ops: 1, slow: 1, cost: 1, ...v})), slow}), mapSays);

	same(await mapNames(r), ['rank 0 of 0xabc', 'rank 1 of 0xabc', 'rank 0 of 0xdef', 'rank 1 of 0xdef']);
	same(await r.$$eval('#filter-comm option', list => list.map(o => o.label)), ['all', '0xabc', '0xdef']);
	same(await r.$$eval('#pane .verdict div', list => list.map(e => e.textContent)), ['rank 0, job[200] on n', 'rank 0, job[200] on n', 'rank 0 of 0xabc, job[200] on n']);
	for (const n of [0, 1]) {
		await key(r, '0');
		await (await r.$$('#pane .verdict'))[n].click();
		await settle(r);
		ok((await info(r)).t0 - (await info(r)).from > 50e6, 'the operation of the other job');
	}
	await r.close();
});

await t('a verdict leads to no operation of another process that has its rank elsewhere, also where both are in one', async () => {
	const files = twoJobs('bridged', 2), both = {commHash: '0xb0b'}, own = {pid: 200, host: 'n', rank: 0, code: 'late-rank'};

	for (const [file, pid, rank] of [[files[0], 100, 0], [files[2], 200, 1]])
		appendFileSync(file, readFileSync(ofRank(tmp + '/bridge', rank, pid, [[300, 380, {func: 'AllReduce', seq: 1}, both], [500, 580, {func: 'AllReduce', seq: 2}, both]]), 'utf8').replace(/.*\n/, ''));
	const slow = [[1, 90e3, 100], [2, 80e3, 200]].map(([seq, duration, pid]) => ({...own, ...both, func: 'AllReduce', seq, duration, expected: 1, pid}));
	const p = await open(browser, withReport('bridged1', view('bridged', ...files), {verdicts: [{ops: 1, slow: 1, cost: 1, ...own}], slow}));

	await (await p.$$('#pane .verdict'))[0].click();
	await settle(p);
	ok((await info(p)).t0 - (await info(p)).from > 300e6, 'its own operation');
	await p.close();
});

await t('a process that is in no communicator is no second job on the map', async () => {
	const none = ofRank(tmp + '/none', 0, 300, [[0, 1, {func: 'AllReduce', seq: 1}]]), dir = tmp + '/onejob';

	writeFileSync(none, readFileSync(none, 'utf8').replaceAll('"rank":0', '"rank":-1'));
	const p = await open(browser, view('onejob', none, ...[0, 1].map(rank => ofRank(dir, rank, 100 + rank, [[0, 50, numbered]]))), mapSays);

	same(await mapNames(p), ['rank 0', 'rank 1', '[300]']);
	await p.close();
});

await t('where the map has no room for ranks, it names jobs', async () => {
	const p = await open(browser, view('jobs3', ...twoJobs('jobs3', 30)), mapSays);

	same(await mapNames(p), ['0xabc', '0xdef']);
	await p.screenshot({path: out + '/jobs3.png'});
	await p.close();
});

await t('a search finds what is on a node that is folded', async () => {
	const dir = tmp + '/folded', files = ['a', 'b'].map((host, rank) => {
		const file = ofRank(dir, rank, 10 + rank, [[0, 1, {func: rank ? 'Reduce' : 'Broadcast', seq: 1}]]);

		writeFileSync(file, readFileSync(file, 'utf8').replace('"host":"n","bootId":"b"', `"host":"${host}","bootId":"${host}"`));
		return file;
	});
	const p = await open(browser, view('folded', ...files)), node = (await lanes(p)).filter(l => l.kind === 'node').at(-1);

	await clickAt(p, 40, node.y + node.h / 2);
	same((await lanes(p)).filter(l => l.kind === 'proc').length, 1, 'folded');
	await p.type('#query', 'reduce');
	await key(p, 'Enter');
	await settle(p);
	ok((await $text(p, '#hits')).endsWith('1'), await $text(p, '#hits'));
	same((await lanes(p)).filter(l => l.kind === 'proc').length, 2, 'opened for it');
	await p.close();
});

await t('what was lost is seen at any zoom of the browser, also where it begins before what is in sight', async () => {
	const file = oneRank(tmp + '/zoomed.jsonl', [[0, 1e6]]);

	appendFileSync(file, JSON.stringify({recordType: 'lost', from: 1e6 + 1e5, to: 1e6 + 9e5, n: 10, cause: 'ring-full'}) + '\n');
	const p = await open(browser, view('zoomed', file)), at = (await lanes(p)).findIndex(l => l.kind === 'proc'), box = await lanesBox(p);
	const hatched = () => p.evaluate(n => {
		const c = document.getElementById('lanes'), d = c.width / c.getBoundingClientRect().width, row = window.ncclscope.lanes()[n];
		const want = getComputedStyle(document.documentElement).getPropertyValue('--retrans').trim(), px = c.getContext('2d').getImageData(0, Math.round((row.y + 4) * d), c.width, 1).data;
		const hex = i => '#' + [...px.slice(4 * i, 4 * i + 3)].map(v => v.toString(16).padStart(2, '0')).join('');

		return Array.from({length: c.width}, (_, i) => hex(i)).filter(h => h === want).length;
	}, at);

	await p.setViewport({width: 1280, height: 800, deviceScaleFactor: 1.1});
	await settle(p);
	ok(await hatched() > 50, 'all of it');
	for (let n = 0; n < 8; n++) {
		await p.keyboard.down('Control');
		await p.mouse.move(box.x + box.width / 2, box.y + 100);
		await p.mouse.wheel({deltaY: -100});
		await p.keyboard.up('Control');
		await settle(p);
	}
	ok((await info(p)).t0 - (await info(p)).from > 1e8, 'it begins before');
	ok(await hatched() > 50, 'the middle of it');
	await p.close();
});

await t('threads of a process that has several ranks are nobody\u2019s', async () => {
	const file = ofRank(tmp + '/several', 0, 10, [[0, 1, numbered]]), other = readFileSync(file, 'utf8').split('\n')[1].replace('"rank":0', '"rank":5').replace('"tid":10', '"tid":11').replace('"eventAddr":"0x', '"eventAddr":"0x1');

	appendFileSync(file, other + '\n' + [10, 11].map(tid => JSON.stringify({recordType: 'slice', tid, ts: 1e6, dur: 1000, state: 'run', cpu: 0})).join('\n') + '\n');
	const p = await open(browser, view('several', file)), box = await lanesBox(p);

	await p.keyboard.down('Shift');
	await p.mouse.move(box.x + 300, box.y + 60);
	await p.mouse.down();
	await p.mouse.move(box.x + 700, box.y + 60);
	await p.mouse.up();
	await p.keyboard.up('Shift');
	await settle(p);
	const told = await $text(p, '#pane');

	ok(told.includes('process job [10]') && !told.includes('rank 0'), told.slice(0, 400));
	await p.close();
});

await t('in a narrow window nothing of what is above the lanes is cut off', async () => {
	const p = await open(browser, view('narrow2', oneRank(tmp + '/narrow2.jsonl', [[0, 100]])));

	for (const width of [1280, 800, 640]) {
		await p.setViewport({width, height: 700});
		await settle(p);
		same(await p.$$eval('#bar button, #filters select', list => list.filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.id)), [], `${width} pixels`);
	}
	await p.close();
});

await t('in a narrow window nothing is cut off that says what was lost, nor what the keys are', async () => {
	const file = oneRank(tmp + '/narrow.jsonl', [[0, 100]]);

	appendFileSync(file, JSON.stringify({recordType: 'lost', from: 1e6, to: 1e6 + 50, n: 1234567, cause: 'ring-full'}) + '\n');
	const p = await open(browser, view('narrow', file));

	await p.setViewport({width: 900, height: 500});
	await settle(p);
	const [right, cut] = await p.$eval('#summary', s => [s.querySelector('.bad').getBoundingClientRect().right, s.scrollWidth > s.clientWidth]);

	same([right < 900, cut], [true, false], await $text(p, '#summary'));
	await p.keyboard.press('?');
	await settle(p);
	same(await p.$eval('#keys', k => [k.scrollTop, k.scrollHeight > k.clientHeight]), [0, true]);
	await p.keyboard.press('Escape');
	await p.screenshot({path: out + '/narrow.png'});
	await p.close();
});

await browser.close();
end();
