import { z } from 'zod'
import { parseResourceKey } from '../domain/registry.ts'
import { parseDuration } from '../domain/source.ts'
import { defineTool } from './define.ts'

const isWindow = (text: string): boolean => {
  const seconds = parseDuration(text)
  return seconds !== null && seconds >= 60 && seconds <= 30 * 86_400
}

/** What was deployed or configured near a resource. Its answer is the word of strangers: it makes nothing known. */
export const recentChanges = defineTool({
  name: 'recent_changes',
  description:
    'What was deployed or configured lately on a resource and on what it runs on or depends on, newest first, with how long before this incident.',
  input: z.strictObject({
    resource: z
      .string()
      .max(160)
      .refine((text) => parseResourceKey(text) !== null, 'is not kind:id of the inventory, as node:web-1')
      .describe('kind:id, as node:web-1'),
    window: z
      .string()
      .max(20)
      .refine(isWindow, 'is not a duration from 1m to 30d, as 6h')
      .default('6h')
      .describe('how far back from the beginning of the incident'),
  }),
  output: z.looseObject({ resource: z.string(), found: z.number(), changes: z.array(z.unknown()) }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: {},
  needs: 'changes',
  discovers: () => [],
  run({ resource, window }, { core, incidentId, signal }) {
    const at = resource.indexOf(':')
    const path = `${resource.slice(0, at)}/${encodeURIComponent(resource.slice(at + 1))}`
    const query = new URLSearchParams({ window, incident: incidentId })
    return core.get(`/api/v1/inventory/resources/${path}/changes/summary?${query}`, { signal })
  },
})
