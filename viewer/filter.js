// SPDX-License-Identifier: BSD-2-Clause
/* Filters: which events have a place in the lanes at all. An operation brings with it what is below it. */

const FILTERS = [
	{key: 'comm', label: 'Communicator'}, {key: 'rank', label: 'Rank'}, {key: 'type', label: 'Type'},
	{key: 'func', label: 'Function'}, {key: 'verdict', label: 'Verdict'},
];
const chosen = {comm: '', rank: '', type: '', func: '', verdict: '', changes: 0};
const selects = {};

/* An event is its operation's where it has one. */
function matches(i)
{
	const e = trace.events, op = e.op[i];

	if (chosen.type && TYPES[e.type[i]].short !== chosen.type)
		return false;
	if (chosen.comm && String(e.comm[i]) !== chosen.comm)
		return false;
	if (chosen.rank && String(rankOf(op >= 0 ? op : i)) !== chosen.rank)
		return false;
	if (chosen.func && texts[op >= 0 ? e.func[op] : e.func[i]] !== chosen.func)
		return false;
	return !chosen.verdict || verdictOf(i)?.code === chosen.verdict;
}

const matchesProc = p => !chosen.rank || (p.many || p.rank < 0 ? p.ranks.has(Number(chosen.rank)) : String(p.rank) === chosen.rank);

/* Report's, of the operation that an event belongs to. */
function verdictOf(i)
{
	const op = trace.opOf.get(trace.events.op[i]);

	return op ? op.verdict : null;
}

function choices()
{
	const e = trace.events, ranks = new Set(), types = new Set(), funcs = new Set();

	for (let i = 0; i < e.n; i++) {
		ranks.add(rankOf(i));
		types.add(e.type[i]);
		if (e.func[i] && e.type[i] !== T_LIFE)
			funcs.add(e.func[i]);
	}
	return {
		comm: [...trace.comms.values()].filter(c => c.hash !== '0x0').map(c => [String(c.index), c.label]),
		rank: [...ranks].filter(r => r >= 0).sort((a, b) => a - b).map(r => [String(r), String(r)]),
		type: [...types].filter(t => t !== T_LIFE && t !== TYPE_OTHER).sort((a, b) => a - b).map(t => [TYPES[t].short, TYPES[t].short]),
		func: [...funcs].map(f => [texts[f], clean(texts[f], 40)]).sort((a, b) => a[1] < b[1] ? -1 : 1),
		verdict: [...new Set(trace.slow.map(s => String(s.verdict.code)))].sort().map(c => [c, clean(c, 40)]),
	};
}

const CHOICES_MAX = 1000;

function fillFilters()
{
	const all = choices();

	for (const f of FILTERS) {
		const s = selects[f.key], list = all[f.key].slice(0, CHOICES_MAX);
		const same = s.childElementCount === list.length + 1 && list.every(([value, label], n) => s.options[n + 1].value === value && s.options[n + 1].label === label);

		if (same && s.value === chosen[f.key])
			continue;
		s.replaceChildren(new Option('all', ''), ...list.map(([value, label]) => new Option(label, value)));
		s.value = list.some(([value]) => value === chosen[f.key]) ? chosen[f.key] : '';
		chosen[f.key] = s.value;
		s.disabled = !list.length;
		s.classList.toggle('on', s.value !== '');
	}
}

function makeFilters()
{
	for (const f of FILTERS) {
		const label = el('label', '', f.label), s = selects[f.key] = el('select');

		s.id = 'filter-' + f.key;
		s.append(new Option('all', ''));
		s.addEventListener('change', () => {
			chosen[f.key] = s.value;
			s.classList.toggle('on', s.value !== '');
			filtered();
		});
		$('filters').append(add(label, s));
	}
	const clear = el('button', '', 'Clear');

	clear.id = 'clear';
	clear.addEventListener('click', clearFilters);
	add($('filters'), clear, el('span', 'told'));
}

function forgetFilters()
{
	for (const f of FILTERS) {
		chosen[f.key] = selects[f.key].value = '';
		selects[f.key].classList.remove('on');
	}
}

function clearFilters()
{
	forgetFilters();
	filtered();
}

function filtered()
{
	chosen.changes++;
	atOnce(arrange());
	buildLayout();
	runSearch(false);
	tellShown();
	renderPane();
	redraw();
}

function tellShown()
{
	const told = $('filters').querySelector('.told'), on = FILTERS.some(f => chosen[f.key]);

	$('clear').hidden = !on;
	told.textContent = on ? count(shownEvents()) + ' of ' + count(trace.events.n) + ' events' : '';
}

function shownEvents()
{
	let n = 0;

	for (let i = 0; i < trace.events.n; i++)
		n += matches(i) && trace.events.type[i] !== T_LIFE;
	return n;
}
