import { z } from 'zod'
import { executable } from '../domain/device.ts'
import { formatCount } from '../domain/format.ts'
import { inventoryKind } from '../domain/registry.ts'
import { describePrinted } from '../domain/say.ts'
import { type Source, sourceReading } from '../domain/source.ts'
import type { Preparation, Tool, ToolContext } from '../domain/tool.ts'
import { toDeviceCall } from '../mesh/registry.ts'
import { sourceTools as served, sourceKinds } from '../sources/kinds.ts'
import { defineTool, discoveredThing, incidentId, observedThing } from './define.ts'
import { prepareOnDevice } from './device.ts'

const reading = sourceReading.extend({
  about: z
    .array(z.object({ kind: inventoryKind, id: z.string(), name: z.string(), isSource: z.boolean().optional() }))
    .default([]),
  /** The resource that the call reached, if it ran on a device. */
  on: executable.optional(),
})

/**
 * Defines the tools that read a source through the core API. A known resource in the query counts
 * as looked up if the response is not empty. Names in the response are untrusted text and do not
 * count as looked up. If the tool can query a device instead (`on`), the call is that of the device
 * tool.
 */
export const sourceTools: Tool[] = [...served.values()].map(
  ({ name, description, isRare, needs, firstFor, isSituational, input, judge, alsoOfDevices, say }) =>
    defineTool({
      name,
      description,
      input: input as z.ZodType<Record<string, unknown>>,
      output: reading,
      effect: 'read',
      risk: 'none',
      reversible: true,
      names: alsoOfDevices ? { on: ['node', 'host', 'vm'] } : {},
      fromSource: true,
      ...(isRare ? { firstFor: [] } : firstFor && { firstFor }),
      ...(isSituational && { isSituational }),
      ...(needs && { needs }),
      judgeQuery: judge,
      say({ source, summary, isPartial, on }, given) {
        const said = say((summary ?? {}) as Record<string, unknown>, given)
        return `${on?.id ?? source}: ${said}${isPartial ? ' (partial)' : ''}`
      },
      discovers: ({ about, isEmpty, on }) => {
        if (on) return [discoveredThing(on.kind, on.id)]
        return about
          .filter(({ isSource }) => isSource || !isEmpty)
          .map(({ kind, id, name: called }) => observedThing(discoveredThing(kind, id, called), null))
      },
      ...(alsoOfDevices && {
        prepare: async (given: Record<string, unknown>, context: ToolContext) => {
          return typeof given.on === 'string' ? await prepareOnDevice(given.on, given, context) : asItIs(given)
        },
      }),
      run: (args, { core, stepKey, ifMatch, signal }) => {
        const call = alsoOfDevices ? toDeviceCall(name, args) : null
        if (!call)
          return core.post('/api/v1/sources/read', { tool: name, arguments: args }, { idempotencyKey: stepKey, signal })
        const body = { capability: call.spec.capability, args: call.args, tool: name }
        const options = { idempotencyKey: stepKey, ...(ifMatch ? { ifMatch } : {}), ...(signal && { signal }) }
        return core.post(`/api/v1/devices/${args.on}/calls`, body, options)
      },
    }),
)

/**
 * Lists which parts of a source may be read, for sources whose options restrict the reads. A model
 * learns this from the context instead of from a refusal.
 */
export function listAllowed(sources: readonly Pick<Source, 'name' | 'kind' | 'options'>[]): Record<string, unknown>[] {
  return sources.slice(0, maxSources).flatMap(({ name, kind, options }) => {
    const allowed = sourceKinds.get(kind)?.allows?.(options)
    return allowed ? [{ source: name, ...allowed }] : []
  })
}
const maxSources = 20

/** Returns an empty preparation, because only the arguments determine what a source returns. */
const asItIs = (identity: Record<string, unknown>): Preparation => ({
  targets: [],
  identity,
  stateFingerprint: '',
  dryRun: { possible: false, summary: 'It only reads.', details: {} },
})

/** Reads more of a response if its summary was not enough. */
export const readResult = defineTool({
  name: 'read_result',
  firstFor: [],
  description: 'Show lines of the whole answer behind a summary, by its digest.',
  input: z.strictObject({
    incident_id: incidentId,
    digest: z
      .string()
      .regex(/^[0-9a-f]{12,64}$/, 'is not a digest')
      .meta({ description: 'as the summary gave it', examples: ['0'.repeat(12)] }),
    from: z.number().int().min(1).max(1_000_000).default(1).describe('first line'),
    limit: z.number().int().min(1).max(50).default(20).describe('lines'),
    match: z.string().min(1).max(100).optional().describe('only lines that hold this text'),
  }),
  output: z.looseObject({ lines: z.array(z.string()) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { incident_id: 'incident' },
  fromSource: true,
  say: ({ lines }, { digest, match }) =>
    `${formatCount(lines.length, 'line')} of the answer ${digest.slice(0, 12)}${match ? ` with "${match}"` : ''}: ${describePrinted(lines.join('\n'))}`,
  discovers: () => [],
  run: ({ incident_id, digest, from, limit, match }, { core, signal }) => {
    const query = new URLSearchParams({ from: String(from), limit: String(limit), ...(match && { match }) })
    return core.get(`/api/v1/incidents/${incident_id}/bodies/${digest}/lines?${query}`, { signal })
  },
})
