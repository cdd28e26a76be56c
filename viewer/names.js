// SPDX-License-Identifier: BSD-2-Clause
/* NCCL's names: types of events, their order in a thread, states and what kind of waiting they are. */

/* In the order of lanes. `mine`: a lane for each channel, direction and peer. */
const TYPES = [
	{name: 'ncclProfileGroupApi', short: 'GroupApi', ink: 'group'},
	{name: 'ncclProfileCollApi', short: 'CollApi', ink: 'api'},
	{name: 'ncclProfileP2pApi', short: 'P2pApi', ink: 'api'},
	{name: 'ncclProfileKernelLaunch', short: 'KernelLaunch', ink: 'kernel'},
	{name: 'ncclProfileGroup', short: 'Group', ink: 'group'},
	{name: 'ncclProfileColl', short: 'Coll', ink: 'coll', end: 'collend', op: true},
	{name: 'ncclProfileP2p', short: 'P2p', ink: 'p2p', end: 'p2pend', op: true},
	{name: 'ncclProfileCeColl', short: 'CeColl', ink: 'coll'},
	{name: 'ncclProfileCeSync', short: 'CeSync', ink: 'peer'},
	{name: 'ncclProfileCeBatch', short: 'CeBatch', ink: 'kernel'},
	{name: 'ncclProfileKernelCh', short: 'KernelCh', ink: 'kernel', low: true},
	{name: 'ncclProfileKernelPhase', short: 'KernelPhase', ink: 'kernel', low: true},
	{name: 'ncclProfileProxyOp', short: 'ProxyOp', ink: 'opsend', mine: true},
	{name: 'ncclProfileProxyStep', short: 'ProxyStep', ink: 'step', mine: true, low: true},
	{name: 'ncclProfileNetPlugin', short: 'NetPlugin', ink: 'wire', mine: true, low: true},
	{name: 'ncclProfileProxyCtrl', short: 'ProxyCtrl', ink: 'ctrl', low: true},
	{name: 'ProfilerLifecycle', short: 'Lifecycle', ink: 'other'},
	{name: '', short: 'other', ink: 'other'},
];
const TYPE_OTHER = TYPES.length - 1;
const typeIds = new Map(TYPES.map((t, i) => [t.name, i]));
const T_COLL = typeIds.get('ncclProfileColl'), T_P2P = typeIds.get('ncclProfileP2p'), T_P2P_API = typeIds.get('ncclProfileP2pApi');
const T_OP = typeIds.get('ncclProfileProxyOp'), T_STEP = typeIds.get('ncclProfileProxyStep');
const T_KERNEL = typeIds.get('ncclProfileKernelCh');
const T_CTRL = typeIds.get('ncclProfileProxyCtrl'), T_LIFE = typeIds.get('ProfilerLifecycle');

/* Who is waited for; RecvWait lasts until data is there, so it is the peer's. */
const STATE_INK = new Map([
	['ProxyStepSendGPUWait', 'gpu'], ['ProxyStepSendPeerWait', 'peer'], ['ProxyStepSendWait', 'wire'],
	['ProxyStepRecvWait', 'peer'], ['ProxyStepRecvFlushWait', 'flush'], ['ProxyStepRecvGPUWait', 'gpu'],
	['ProxyOpSendPosted', 'step'], ['ProxyOpSendRemFifoWait', 'peer'], ['ProxyOpSendTransmitted', 'wire'], ['ProxyOpSendDone', 'step'],
	['ProxyOpRecvPosted', 'peer'], ['ProxyOpRecvReceived', 'wire'], ['ProxyOpRecvTransmitted', 'gpu'], ['ProxyOpRecvDone', 'step'],
	['ProxyCtrlActive', 'opsend'], ['ProxyCtrlAppend', 'api'], ['ProxyCtrlWakeup', 'api'],
]);

/* Text of the trace, each once; 0 is "". */
const textIds = new Map([['', 0]]);
const texts = [''];

function textId(s)
{
	let id = textIds.get(s);

	if (id === undefined) {
		s = s.split('').join(''); // a piece of a block would keep all of it
		id = texts.length;
		texts.push(s);
		textIds.set(s, id);
	}
	return id;
}

const SLICE_STATES = ['run', 'runq', 'blocked'];
const SLICE_WORDS = ['running', 'runnable', 'blocked'];
