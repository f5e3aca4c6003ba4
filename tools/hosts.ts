import { z } from 'zod'
import { formatCount } from '../domain/format.ts'
import { parseResourceKey } from '../domain/registry.ts'
import { describeItems, inBrackets, toList, toText } from '../domain/say.ts'
import { parseDuration } from '../domain/source.ts'
import type { Discovered } from '../domain/tool.ts'
import { defineTool, discovered, resourceId, seen } from './define.ts'

/** The hosts that VMs run on, as an engineer looks at them before anything is moved. */

const host = z.looseObject({
  id: z.string(),
  state: z.string(),
  status: z.string(),
  /** Null while the platform cannot be reached. */
  use: z.looseObject({ vms: z.number() }).nullable(),
})
type Host = z.infer<typeof host>

/** Draining is degraded while something is left to move; a host that is empty is as its operator wants it. */
function seenHost({ id, state, status, use }: Host): Discovered {
  return seen(discovered('host', id), state === 'draining' && use?.vms === 0 ? 'nominal' : status)
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
    return `${id} is ${state}${status === state ? '' : ` (${status})`}: ${running} of ${formatCount(vms.length, 'VM')} ${running === 1 ? 'runs' : 'run'}`
  },
  discovers: ({ vms, ...output }) => [
    seenHost(output),
    ...vms.map(({ id, running }) =>
      running === null ? discovered('vm', id) : seen(discovered('vm', id), running ? 'nominal' : 'down'),
    ),
  ],
  run: ({ id }, { core, signal }) => core.get(`/api/v1/hosts/${id}`, { signal }),
})

export const listHosts = defineTool({
  name: 'list_hosts',
  // A plan looks at all of them by itself.
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
    const other = items.filter(({ state }) => state !== 'live').map(({ id, state }) => `${id} is ${state}`)
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

/** What was deployed or configured near a resource. Its answer is the word of strangers: it makes nothing known. */
export const recentChanges = defineTool({
  name: 'recent_changes',
  // The context has those around the beginning, on the resource and on what it needs.
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
