import { z } from 'zod'
import { inventoryKind } from '../domain/resource.ts'
import { sourceReading } from '../domain/source.ts'
import type { Tool } from '../domain/tool.ts'
import { sourceTools as served } from '../sources/kinds.ts'
import { defineTool, discovered, seen } from './define.ts'

const reading = sourceReading.extend({
  about: z.array(z.object({ kind: inventoryKind, id: z.string(), name: z.string() })),
})

/**
 * A tool that reads a source behind the core API. What the query named and the registry knows was looked at, where the answer holds
 * something; what the answer mentions is a text of a stranger and makes nothing known.
 */
export const sourceTools: Tool[] = [...served.values()].map(({ name, description, isRare, input, judge }) =>
  defineTool({
    name,
    description,
    input: input as z.ZodType<Record<string, unknown>>,
    output: reading,
    effect: 'read',
    risk: 'none',
    reversible: true,
    names: {},
    fromSource: true,
    ...(isRare && { firstFor: [] }),
    judgeQuery: judge,
    discovers: ({ about, isEmpty }) =>
      isEmpty ? [] : about.map(({ kind, id, name: called }) => seen(discovered(kind, id, called), null)),
    run: (args, { core, stepKey, signal }) =>
      core.post('/api/v1/sources/read', { tool: name, arguments: args }, { idempotencyKey: stepKey, signal }),
  }),
)

/** More of an answer whose summary was not enough. */
export const readResult = defineTool({
  name: 'read_result',
  firstFor: [],
  description: 'Show lines of the whole answer behind a summary, by its digest.',
  input: z.strictObject({
    incident_id: z.string().regex(/^inc_[0-9a-z]{26}$/, 'is not an incident id'),
    digest: z
      .string()
      .regex(/^[0-9a-f]{64}$/, 'is not a digest')
      .describe('as the summary gave it'),
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
  discovers: () => [],
  run: ({ incident_id, digest, from, limit, match }, { core, signal }) => {
    const query = new URLSearchParams({ from: String(from), limit: String(limit), ...(match && { match }) })
    return core.get(`/api/v1/incidents/${incident_id}/bodies/${digest}/lines?${query}`, { signal })
  },
})
