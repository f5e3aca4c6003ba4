import { z } from 'zod'
import type { PostconditionProof } from '../domain/envelope.ts'
import type { ResourceKind, ResourceRef } from '../domain/registry.ts'
import { toText } from '../domain/say.ts'
import type { DiscoveredThing, Tool } from '../domain/tool.ts'

/**
 * Declares a tool, checking its pieces against each other: the input type of `targets`, `prepare`
 * and `run` is that of the schema. The declared facts are all that shared code knows about it;
 * nothing ever asks for a tool by name.
 */
export function defineTool<Input extends Record<string, unknown>, Output>(tool: Tool<Input, Output>): Tool {
  return tool as unknown as Tool
}

/** Identifiers of the inventory: no path, no query, no control character can ride in one. */
export const resourceId = z
  .string()
  .min(1)
  .max(100)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'is not an identifier of the inventory')
  .meta({ examples: ['web-1'] })
export const incidentId = z
  .string()
  .regex(/^inc_[0-9a-z]{26}$/, 'is not an incident id')
  .meta({ examples: ['inc_0123456789abcdefghjkmnpqrs'] })
/**
 * One sentence for the person who reads the timeline; every tool that may be asked about takes one.
 */
export const reason = z.string().min(3).max(500).describe('why')

export function ref(kind: ResourceKind, id: string): ResourceRef {
  return { kind, id }
}

export function discoveredThing(kind: ResourceKind, id: string, name = id, aliases: string[] = []): DiscoveredThing {
  return { kind, id, name, aliases }
}

/**
 * A thing that the answer describes: an observation, with its health where the answer holds one.
 */
export function observedThing(thing: DiscoveredThing, health: string | null | undefined): DiscoveredThing {
  return { ...thing, seen: true, ...(health && { health }) }
}

/** A write that code looks at afterwards: this must be true then. */
export const state = (text: string): PostconditionProof => ({ by: 'state', text })
/** A write that only runs: where a person looks afterwards. */
export const nothing = (text: string): PostconditionProof => ({ by: 'nothing', text })

/** For a write: the receiver's words on what was done, named by its target. */
export function sayWrite(output: Record<string, unknown>, about: string): string {
  const detail = toText(output.detail)
  return detail === '' || about.includes(detail) ? about : `${about}: ${detail}`
}

const byGravity = ['critical', 'down', 'degraded', 'unknown']

/** The health of what consists of parts: the gravest of theirs; null without parts. */
export function worstHealth(parts: readonly string[]): string | null {
  if (parts.length === 0) return null
  return byGravity.find((word) => parts.includes(word)) ?? parts.find((word) => word !== 'nominal') ?? 'nominal'
}

/** Five read-only predicates over the live platform. */
