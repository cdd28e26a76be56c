// SPDX-License-Identifier: BSD-2-Clause
/* What all parts use: elements made without markup, figures in words, columns that grow, searching in them. */

const $ = id => document.getElementById(id);

/* All text of a trace gets into the page here and in text(), as text. */
function el(tag, cls, words)
{
	const e = document.createElement(tag);

	if (cls)
		e.className = cls;
	if (words !== undefined)
		e.textContent = words;
	return e;
}

function add(parent, ...children)
{
	for (const c of children)
		parent.append(c);
	return parent;
}

const shorten = (s, max) => s.length > max ? s.slice(0, max - 1) + '\u2026' : s;
const TEXT_MAX = 300;

/* Names of a trace may have 10 kB and control characters. */
function clean(s, max = TEXT_MAX)
{
	s = String(s);
	if (s.length > max)
		s = s.slice(0, max) + '\u2026';
	// eslint-disable-next-line no-control-regex
	return s.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

function digits(v)
{
	return v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2);
}

/* Spans, ns. */
function span(ns)
{
	const a = Math.abs(ns), sign = ns < 0 ? '-' : '';

	if (!Number.isFinite(ns))
		return '?';
	if (a < 1e3)
		return sign + a.toFixed(0) + ' ns';
	if (a < 1e6)
		return sign + digits(a / 1e3) + ' \u00b5s';
	if (a < 1e9)
		return sign + digits(a / 1e6) + ' ms';
	return sign + digits(a / 1e9) + ' s';
}

function bytes(n)
{
	for (const unit of ['B', 'kB', 'MB', 'GB', 'TB']) {
		if (n < 1000 || unit === 'TB')
			return (unit === 'B' ? n.toFixed(0) : digits(n)) + ' ' + unit;
		n /= 1000;
	}
	return '';
}

const count = n => n.toLocaleString('en-US');
const countOf = (n, what) => count(n) + ' ' + what + (n === 1 ? '' : 's');
const percent = x => (100 * x).toFixed(x < .1 ? 1 : 0) + ' %';

/* The first of a[0..n) that is not below x. */
function lowerBound(a, n, x, from = 0)
{
	let lo = from, hi = n;

	while (lo < hi) {
		const mid = (lo + hi) >>> 1;

		if (a[mid] < x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The same, where it is likely to be near: looks in steps that double. */
function gallop(a, n, x, from)
{
	let step = 1, lo = from;

	while (lo + step < n && a[lo + step] < x) {
		lo += step;
		step *= 2;
	}
	return lowerBound(a, Math.min(n, lo + step + 1), x, lo);
}

/* Columns of numbers that grow together: {name: its typed array's class}. */
class Table {
	constructor(spec, cap = 256)
	{
		this.spec = Object.entries(spec);
		this.n = 0;
		this.cap = cap;
		for (const [name, type] of this.spec)
			this[name] = new type(cap);
	}

	/* A row more, all zero. A RangeError: there is no memory for it, and nothing has changed. */
	add()
	{
		if (this.n === this.cap)
			this.grow(2 * this.cap);
		return this.n++;
	}

	grow(cap)
	{
		for (const [name, type] of this.spec) {
			const old = this[name];

			this[name] = new type(cap);
			this[name].set(old);
		}
		this.cap = cap;
	}
}

/* Colours as the style sheet has them, for canvases and, as one word of memory, for the raster. */
const colour = {};
const word = {};

function readColours()
{
	const style = getComputedStyle(document.documentElement);
	const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});

	for (const name of ['bg', 'lane', 'line', 'text', 'dim', 'accent', 'head', 'mark', 'shade', 'run', 'runq', 'blocked', 'irq',
		'unknown', 'coll', 'collend', 'p2p', 'p2pend', 'api', 'group', 'kernel', 'opsend', 'oprecv', 'step', 'ctrl', 'other', 'gpu', 'peer',
		'wire', 'flush', 'tx', 'rx', 'rtt', 'retrans', 'heat0', 'heat1', 'heat2', 'heat3']) {
		colour[name] = style.getPropertyValue('--' + name).trim();
		probe.clearRect(0, 0, 1, 1);
		probe.fillStyle = colour[name];
		probe.fillRect(0, 0, 1, 1);
		word[name] = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0];
	}
}

/* Lets the page draw and take input; without the 4 ms that timers take. */
const yielded = [];
const channel = new MessageChannel();

channel.port1.onmessage = () => yielded.shift()();

function breathe()
{
	return new Promise(resolve => {
		yielded.push(resolve);
		channel.port2.postMessage(0);
	});
}

/* Work that can be paused, without a pause. */
function atOnce(work)
{
	while (!work.next().done)
		;
}
