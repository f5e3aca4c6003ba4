import { z } from 'zod'
import type { ChatTool } from '../domain/chat.ts'
import type { EventMetadata, IncidentEvent } from '../domain/event.ts'

/** Which tools an attempt has added to what its first turn offered, out of its rows. */

/**
 * Names of tools that add others: by name, by a find, by a read of one thing, and the reader of the
 * whole behind a summary.
 */
type OfferingTools = { more: string; find: string; get: string; whole: string }

/** `kinds`: those of things that were read, for an incident that named no resource. */
type Added = { names: ReadonlySet<string>; kinds: readonly string[] }

/** What the calls of this attempt have added. Pure and total. */
export function addedBy(events: readonly IncidentEvent[], attempt: number, offering: OfferingTools): Added {
  const finished = events.flatMap((event) =>
    event.kind === 'tool_finished' && event.attempt === attempt ? [event.metadata] : [],
  )
  return {
    names: new Set(finished.flatMap((each) => namesAddedBy(each, offering))),
    kinds: finished.flatMap((each) => kindsReadBy(each, offering)),
  }
}

/** Added tools among `kept`, in that order. Without a resource the run's finds are the subject. */
export function chooseAdded(
  kept: readonly ChatTool[],
  { names, kinds }: Added,
  isAboutNothing: boolean,
  isFirstFor: (name: string, kind: string) => boolean,
): ChatTool[] {
  const found = isAboutNothing ? kinds : []
  return kept.filter(({ function: { name } }) => names.has(name) || found.some((kind) => isFirstFor(name, kind)))
}

/** Asked tools; a summary with the whole's digest makes that readable, and a find its finds. */
function namesAddedBy({ tool, result }: EventMetadata['tool_finished'], offering: OfferingTools): string[] {
  if (tool === offering.more) return addedNames.safeParse(result.data).data?.added ?? []
  if (tool === offering.find) return [offering.get]
  return wholeBehind.safeParse(result.data).success ? [offering.whole] : []
}

function kindsReadBy({ tool, result }: EventMetadata['tool_finished'], { get }: OfferingTools): string[] {
  const read = tool === get ? readThing.safeParse(result.data).data : undefined
  return read ? [read.kind] : []
}

/** Does this context say that its incident names no resource? Throws where it is no context. */
export function isWithoutResource(context: unknown): boolean {
  return withIncident.parse(context).incident.resource === null
}

const readThing = z.looseObject({ kind: z.string() })
const withIncident = z.looseObject({ incident: z.looseObject({ resource: z.unknown() }) })
const addedNames = z.looseObject({ added: z.array(z.string()) })
const wholeBehind = z.looseObject({ source: z.string(), digest: z.string() })
