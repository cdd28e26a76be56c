// SPDX-License-Identifier: BSD-2-Clause
// perf_test.mjs OUT BROWSER PAGE SLICES: from perf.sh.
import {readFileSync, readdirSync, statSync} from 'node:fs';
import {launch, open, info, t, ok, same, end} from './browser.mjs';

const FAR = 5, PAINT_MS = 2000, FRAME_MS = 100, BUSY_MS = 100, SEARCH_MS = 100;
const [out, executable, file, slices] = process.argv.slice(2);
const browser = await launch(out, executable);
/* Tasks of 50 ms and more: for as long as one runs nothing is drawn, and no key is heard. */
const listen = () => {
	window.tasks = [];
	new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(t => t.duration))).observe({type: 'longtask'});
};
const page = await open(browser, file, {first: listen});
const mark = name => page.evaluate(n => performance.getEntriesByName(n)[0].startTime, name);

/* 60 frames of a hand on the wheel: from one to the next, drawing on the screen included. */
const frames = how => page.evaluate(async how => {
	const lanes = document.getElementById('lanes'), box = lanes.getBoundingClientRect(), gaps = [];
	const frame = () => new Promise(r => requestAnimationFrame(r));

	await frame();
	for (let n = 0, last = await frame(); n < 60; n++) {
		const zoom = how === 'zoom', by = {deltaY: zoom ? (n < 30 ? -60 : 60) : 12, deltaX: zoom ? 0 : (n < 30 ? 40 : -40), ctrlKey: zoom};

		lanes.dispatchEvent(new WheelEvent('wheel', {...by, clientX: box.left + 500, clientY: box.top + 300, cancelable: true, bubbles: true}));
		const now = await frame();

		gaps.push(now - last);
		last = now;
	}
	gaps.sort((a, b) => a - b);
	return {median: gaps[30], worst: gaps[59]};
}, how);

await t('all slices are there', async () => same((await info(page)).slices, Number(slices)));
await t('first paint', async () => {
	const first = await mark('ncclscope-first-paint'), all = await mark('ncclscope-ready');

	console.log(`# first paint ${first.toFixed(0)} ms (meant: ${PAINT_MS}), all read ${all.toFixed(0)} ms`);
	ok(first < FAR * PAINT_MS, 'far too late');
});
await t('reading gives way to drawing and to keys', async () => {
	const tasks = (await page.evaluate(() => window.tasks)).sort((a, b) => b - a);

	console.log(`# busy for ${(tasks[0] || 0).toFixed(0)} ms at worst (meant: ${BUSY_MS}), ${tasks.length} times for 50 ms or more`);
	ok(!(tasks[0] >= FAR * BUSY_MS), 'far too long');
});
/* Of the largest of the browser's processes, which is the page's; MB. */
function memory()
{
	const status = pid => {
		try {
			return readFileSync(`/proc/${pid}/status`, 'utf8');
		} catch (err) { // it has ended
			return '';
		}
	};
	const all = readdirSync('/proc').filter(pid => /^\d+$/.test(pid)).map(pid => [Number(pid), status(pid)]), ours = new Set([browser.process().pid]);

	for (let n = 0; n < 4; n++)
		for (const [pid, text] of all)
			if (ours.has(Number(/PPid:\s+(\d+)/.exec(text)?.[1])))
				ours.add(pid);
	return Math.max(...all.filter(([pid, text]) => ours.has(pid) && text).map(([, text]) => Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] || 0))) / 1024;
}

await t('memory', async () => {
	const mb = memory(), page = statSync(file).size / 2 ** 20;

	console.log(`# ${mb.toFixed(0)} MB, of a page of ${page.toFixed(0)} MB (meant: 100 MB, and 9 times the page)`);
	ok(mb < 100 + 12 * page, 'far too much');
});
for (const how of ['zoom', 'pan'])
	await t(`60 frames of ${how}`, async () => {
		const f = await frames(how);

		console.log(`# ${how}: median ${f.median.toFixed(1)} ms (meant: ${FRAME_MS}), worst ${f.worst.toFixed(1)} ms`);
		ok(f.median < FAR * FRAME_MS, 'far too slow');
	});
await t('searches', async () => {
	const asked = ['allreduce #15', 'nothing that is there', 'late-rank recvgpuwait', 'ch1 \u2192'], times = await page.evaluate(words => words.map(w => {
		const query = document.getElementById('query'), begun = performance.now();

		query.value = w;
		query.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}));
		return performance.now() - begun;
	}), asked);

	console.log(`# ${asked.map((w, n) => `'${w}' ${times[n].toFixed(0)} ms`).join(', ')} (meant: ${SEARCH_MS})`);
	ok(Math.max(...times) < FAR * SEARCH_MS, 'far too slow');
});
await page.screenshot({path: out + '/big.png'});
same(page.told, []);
await browser.close();
end();
