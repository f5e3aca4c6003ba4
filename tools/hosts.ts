import { z } from 'zod'
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

const aboutHosts = { firstFor: ['host', 'vm', 'region'] as const }

export const getHost = defineTool({
  name: 'get_host',
  ...aboutHosts,
  description: 'Get a host: live, draining or dead, rack, capacity, what is free, its VMs with priority and state.',
  input: z.strictObject({ id: resourceId }),
  output: host.extend({ vms: z.array(z.looseObject({ id: z.string(), running: z.boolean().nullable() })) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { id: 'host' },
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
  ...aboutHosts,
  description: 'List hosts, all or of a rack or region: state, rack, capacity, what is free, how many VMs.',
  input: z.strictObject({ rack: resourceId.optional(), region: resourceId.optional() }),
  output: z.looseObject({ items: z.array(host) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: {},
  discovers: ({ items }) => items.map(seenHost),
  run: ({ rack, region }, { core, signal }) => {
    const asked = Object.entries({ rack, region }).filter(([, name]) => name !== undefined) as [string, string][]
    return core.get(`/api/v1/hosts?${new URLSearchParams([...asked, ['brief', 'true']])}`, { signal })
  },
})
