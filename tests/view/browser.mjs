// SPDX-License-Identifier: BSD-2-Clause
// A headless browser for the tests of the page, cases in the runner's protocol.
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';

let failed = 0;

export async function t(name, fn)
{
	const begun = performance.now();

	try {
		await fn();
		console.log('ok view page: ' + name);
		if (process.env.TIMES)
			console.log(`# ${(performance.now() - begun).toFixed(0)} ms`);
	} catch (err) {
		failed++;
		console.log('not ok view page: ' + name);
		console.log(String(err.stack || err).split('\n').slice(0, 8).map(l => '# ' + l).join('\n'));
	}
}

export function same(got, want, what = '')
{
	const a = JSON.stringify(got), b = JSON.stringify(want);

	if (a !== b)
		throw new Error(`${what} got ${a?.slice(0, 600)}, want ${b?.slice(0, 600)}`);
}

export function ok(value, what)
{
	if (!value)
		throw new Error(what);
}

process.on('uncaughtException', err => {
	console.log('not ok view page: ends early\n# ' + String(err.message).slice(0, 600));
	process.exit(1);
});

export const end = () => process.exit(failed ? 1 : 0);

/* Puppeteer lies where `npm ci` has put it. */
export async function launch(out, executablePath)
{
	const {default: puppeteer} = await import(pathToFileURL(createRequire(join(out, 'x.js')).resolve('puppeteer-core')));

	return puppeteer.launch({executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'], protocolTimeout: 180000});
}

/* A page that has read its trace. What it logs, and asks for, is kept. @options: dark; first: what runs in it before its own script. */
export async function open(browser, file, options = {})
{
	const page = await browser.newPage();

	page.told = [];
	page.asked = [];
	page.refused = [];
	await page.setViewport({width: 1280, height: 800});
	await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: options.dark ? 'dark' : 'light'}]);
	page.on('console', m => page.told.push(m.text()));
	page.on('pageerror', e => page.told.push(String(e)));
	page.on('request', r => page.asked.push(r.url()));
	page.on('requestfailed', r => page.refused.push(r.url() + ' ' + (r.failure()?.errorText || 'csp')));
	page.on('dialog', d => {
		page.told.push('dialog ' + d.message());
		d.dismiss();
	});
	if (options.first)
		await page.evaluateOnNewDocument(options.first);
	await page.goto(pathToFileURL(file).href);
	await ready(page);
	return page;
}

export async function ready(page)
{
	await page.waitForFunction(() => document.documentElement.dataset.state === 'ready', {timeout: 100000}).catch(err => {
		throw new Error(`${err.message}; the page says: ${page.told.slice(0, 3).join('; ')}`);
	});
	await settle(page);
}

/* Until what was asked for is drawn. */
export const settle = page => page.evaluate(() => new Promise(r => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(r)), 15)));
export const info = page => page.evaluate(() => window.ncclscope.info());
