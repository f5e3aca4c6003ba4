import { z } from 'zod'
import { formatCount } from '../domain/format.ts'
import { type VmAction, vmBefore, vmTools } from '../domain/platform.ts'
import { parseResourceKey, resourceRef } from '../domain/registry.ts'
import { describeItems, inBrackets, toList, toText } from '../domain/say.ts'
import { parseDuration } from '../domain/source.ts'
import type { CorePort, DiscoveredThing, Observation, Preparation, ToolContext } from '../domain/tool.ts'
import { type ToolUndo, vmLeft } from '../domain/undo.ts'
import { defineTool, discoveredThing, observedThing, reason, resourceId, sayWrite, state } from './define.ts'
import { ProposalError } from './placement.ts'

/**
 * Defines the reads of VM hosts that an engineer makes before a move, and the repairs of one VM on
 * its current host. Writes always need approval. Only a plan moves a VM to another host.
 */

const host = z.looseObject({
  id: z.string(),
  state: z.string(),
  status: z.string(),
  /** Null while the platform cannot be reached. */
  use: z.looseObject({ vms: z.number() }).nullable(),
})
type Host = z.infer<typeof host>

/** Returns the state of a host in words for people. Stored and sent data has the word `dead`. */
const wordOf = (state: unknown): string => (state === 'dead' ? 'down' : toText(state))

/**
 * Builds the observation of a host. A draining host counts as degraded while it has VMs, and as
 * nominal once it is empty, because an empty host is the goal.
 */
function seenHost({ id, state, status, use }: Host): DiscoveredThing {
  return observedThing(discoveredThing('host', id), state === 'draining' && use?.vms === 0 ? 'nominal' : status)
}

export const getHost = defineTool({
  name: 'get_host',
  firstFor: ['host', 'vm', 'region'],
  description: 'Get a host: live, draining or dead, rack, capacity, what is free, its VMs with priority and state.',
  input: z.strictObject({ id: resourceId }),
  output: host.extend({ vms: z.array(z.looseObject({ id: z.string(), running: z.boolean().nullable() })) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { id: 'host' },
  say({ id, state, status, vms }) {
    const running = vms.filter((vm) => vm.running).length
    return `${id} is ${wordOf(state)}${status === state ? '' : ` (${status})`}: ${running} of ${formatCount(vms.length, 'VM')} ${running === 1 ? 'runs' : 'run'}`
  },
  discovers: ({ vms, ...output }) => [
    seenHost(output),
    ...vms.map(({ id, running }) =>
      running === null
        ? discoveredThing('vm', id)
        : observedThing(discoveredThing('vm', id), running ? 'nominal' : 'down'),
    ),
  ],
  run: ({ id }, { core, signal }) => core.get(`/api/v1/hosts/${id}`, { signal }),
})

export const listHosts = defineTool({
  name: 'list_hosts',
  // Offers the tool first only for a region. For a host or a VM, a plan reads all hosts by itself.
  firstFor: ['region'],
  description: 'List hosts, all or of a rack or region: state, rack, capacity, what is free, how many VMs.',
  input: z.strictObject({
    rack: resourceId.optional().describe('its id'),
    region: resourceId.optional().describe('its id'),
  }),
  output: z.looseObject({ items: z.array(host) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: {},
  say({ items }, { rack, region }) {
    const where = [rack && `rack ${rack}`, region && `region ${region}`].filter(Boolean).join(', ')
    const other = items.filter(({ state }) => state !== 'live').map(({ id, state }) => `${id} is ${wordOf(state)}`)
    return `${where && `${where}: `}${items.length - other.length} of ${formatCount(items.length, 'host')} live${other.length > 0 ? `; ${describeItems(other, 'other')}` : ''}`
  },
  discovers: ({ items }) => items.map(seenHost),
  run: ({ rack, region }, { core, signal }) => {
    const asked = Object.entries({ rack, region }).filter(([, name]) => name !== undefined) as [string, string][]
    return core.get(`/api/v1/hosts?${new URLSearchParams([...asked, ['brief', 'true']])}`, { signal })
  },
})

const isWindow = (text: string): boolean => {
  const seconds = parseDuration(text)
  return seconds !== null && seconds >= 60 && seconds <= 30 * 86_400
}

/**
 * Reads deployments and changes near a resource. Their texts are untrusted, so a name in such a
 * text does not count as looked up.
 */
export const recentChanges = defineTool({
  name: 'recent_changes',
  // Does not offer the tool first, because the context already lists the changes around the
  // beginning of the incident, on the resource and its dependencies.
  firstFor: [],
  description:
    'What was deployed or configured on a resource and on what it needs, newest first, with how long before this incident.',
  input: z.strictObject({
    resource: z
      .string()
      .max(160)
      .refine((text) => parseResourceKey(text) !== null, 'is not kind:id of the inventory, as node:web-1')
      .meta({ description: 'as node:web-1', examples: ['node:web-1'] }),
    window: z
      .string()
      .max(20)
      .refine(isWindow, 'is not a duration from 1m to 30d, as 6h')
      .default('6h')
      .describe('before the incident, as 30m, 6h'),
  }),
  output: z.looseObject({ resource: z.string(), found: z.number(), changes: z.array(z.unknown()) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: {},
  needs: 'changes',
  say: ({ resource, found, changes }, { window }) =>
    `${resource}, ${window} before: ${describeItems(
      toList(changes).map(({ when, title }) => `${toText(title)}${inBrackets(when)}`),
      'change',
      found,
    )}`,
  discovers: () => [],
  run({ resource, window }, { core, incidentId, signal }) {
    const at = resource.indexOf(':')
    const path = `${resource.slice(0, at)}/${encodeURIComponent(resource.slice(at + 1))}`
    const query = new URLSearchParams({ window, incident: incidentId })
    return core.get(`/api/v1/inventory/resources/${path}/changes/summary?${query}`, { signal })
  },
})

/** The repair is impossible. The model gets the reason. */
class RepairError extends ProposalError {}

const preparation = z.object({
  targets: z.array(resourceRef),
  identity: z.record(z.string(), z.unknown()),
  stateFingerprint: z.string(),
  dryRun: z.object({ possible: z.boolean(), summary: z.string(), details: z.record(z.string(), z.unknown()) }),
})

async function prepare(action: VmAction, id: string, { core, signal }: ToolContext): Promise<Preparation> {
  const answer = await core.get(`/api/v1/vms/${id}/${action}?dry_run=true`, { signal })
  if (!answer.ok) throw new RepairError(answer.problem.detail || answer.problem.title)
  return preparation.parse(answer.data)
}

const vmNow = z.looseObject({
  host: z.string().nullable(),
  running: z.boolean(),
  startedAt: z.string().nullable().optional(),
  busy: z.string().nullable().optional(),
})
const effectNow = z.looseObject({
  status: z.string(),
  detail: z.string(),
  /** `newStart`: whether our client of the platform saw a new start after the write. */
  result: z.looseObject({ before: vmBefore.optional(), newStart: z.boolean().optional() }),
})
type Seen = { id: string; vm: z.infer<typeof vmNow>; effect: z.infer<typeof effectNow> }

/**
 * Reads the current VM from the platform, and the stored state of the write. Null if one of them
 * cannot be read.
 */
async function look(core: CorePort, id: string, stepKey: string): Promise<Seen | null> {
  const [vm, effect] = await Promise.all([
    core.get(`/api/v1/vms/${id}`),
    core.get(`/api/v1/effects/${encodeURIComponent(stepKey)}`),
  ])
  return vm.ok && effect.ok ? { id, vm: vmNow.parse(vm.data), effect: effectNow.parse(effect.data) } : null
}

const where = ({ id, vm }: Seen) => `${id} ${vm.running ? 'runs' : 'is stopped'} on ${vm.host ?? 'no host'}`

function isStopped(seen: Seen): Observation {
  return { holds: !seen.vm.running, observed: where(seen) }
}

function isStarted(seen: Seen): Observation {
  const { vm, effect } = seen
  const host = effect.result.before?.host ?? vm.host
  return { holds: vm.running && vm.host === host, observed: where(seen) }
}

/**
 * Proves a restart by a start time later than before. The platform's acceptance of the request is
 * no proof.
 */
function isRestarted(seen: Seen): Observation | null {
  const { vm, effect } = seen
  const there = isStarted(seen)
  if (!there.holds) return there
  const before = effect.result.before?.startedAt
  if (before && vm.startedAt) {
    const isNew = Date.parse(vm.startedAt) > Date.parse(before)
    return {
      holds: isNew,
      observed: `${there.observed}, since ${vm.startedAt}${isNew ? '' : ': it is the same run as before'}`,
    }
  }
  if (effect.result.newStart) return { holds: true, observed: `${there.observed}, in a run that began after the order` }
  if (effect.status === 'running') return null
  return { holds: null, observed: `${there.observed}; the platform reports no starts, so it may be the same run` }
}

const looks: Record<VmAction, (seen: Seen) => Observation | null> = {
  start: isStarted,
  stop: isStopped,
  restart: isRestarted,
}

const input = z.strictObject({ id: resourceId, reason })

const runsOrNot = ({ running }: { running: boolean }) => (running ? 'runs' : 'is stopped')

const vmBoth = z.looseObject({ before: vmNow, after: vmNow })

/**
 * The tool that undoes each action on the same host. A restart cannot be undone, because the
 * process before it is gone.
 */
const inverses: Record<VmAction, { tool: string; running: boolean } | null> = {
  start: { tool: vmTools.stop, running: true },
  stop: { tool: vmTools.start, running: false },
  restart: null,
}

function undoOf(action: VmAction): ToolUndo<z.infer<typeof input>> | null {
  const inverse = inverses[action]
  return (
    inverse && {
      does: ({ id }) => `${inverse.tool} of ${id}, if the VM is still where this call leaves it`,
      of({ id }, output) {
        const told = vmBoth.safeParse(output)
        if (!told.success) return { none: 'the state of the VM before and after was not read' }
        const { before, after } = told.data
        if (after.running !== inverse.running) return { none: `the action did not happen: ${id} ${runsOrNot(after)}` }
        if (before.running === after.running)
          return { none: `the action changed nothing: ${id} ${runsOrNot(after)} as before` }
        if (before.host !== after.host)
          return { none: `the VM is on ${after.host ?? 'no host'} now, and was on ${before.host ?? 'none'}` }
        return { tool: inverse.tool, arguments: { id }, left: vmLeft(id, after) }
      },
    }
  )
}

function repair(
  action: VmAction,
  facts: Pick<Parameters<typeof defineTool>[0], 'description' | 'risk' | 'reversible' | 'proof'>,
) {
  const undo = undoOf(action)
  return defineTool({
    name: vmTools[action],
    needs: 'hosts',
    // Leaves `stop` out of the first turn of a VM, because stopping a VM rarely repairs the VM. A
    // plan repairs a problem of the host.
    firstFor: action === 'stop' ? [] : ['vm'],
    ...facts,
    input,
    output: z.looseObject({}),
    effect: 'write',
    names: { id: 'vm' },
    say: (output, { id }) => sayWrite(output, `${id}: ${action}`),
    discovers: () => [],
    prepare: ({ id }, context) => prepare(action, id, context),
    postcondition: {
      withinSeconds: 60,
      async check({ id }, _output, { core, stepKey }) {
        const seen = await look(core, id, stepKey)
        return seen && looks[action](seen)
      },
    },
    ...(undo && { undo }),
    run: ({ id, reason: why }, { core, stepKey, ifMatch, signal }) =>
      core.post(
        `/api/v1/vms/${id}/${action}`,
        { reason: why },
        { idempotencyKey: stepKey, ...(ifMatch ? { ifMatch } : {}), ...(signal && { signal }) },
      ),
  })
}

export const vmStart = repair('start', {
  description: 'Start a stopped VM on its host. If its host is down, plan instead.',
  risk: 'medium',
  reversible: true,
  proof: state('the VM runs on its host'),
})

export const vmStop = repair('stop', {
  description: 'Stop a VM and leave it stopped.',
  risk: 'high',
  reversible: true,
  proof: state('the VM does not run'),
})

export const vmRestart = repair('restart', {
  description: 'Restart a VM that runs but does not answer, on its host.',
  risk: 'medium',
  reversible: false,
  proof: state('the VM runs on its host again, with a new start'),
})
