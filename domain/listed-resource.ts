import { z } from 'zod'
import { relationKinds } from './kinds.ts'
import { attributes, inventoryKind, near, resourceState } from './registry.ts'

/** A resource as the API lists it. */
export const listedResource = z.object({
  kind: inventoryKind,
  id: z.string(),
  name: z.string(),
  aliases: z.array(z.string()),
  /** The key that all names of one thing share. */
  canonical: z.string(),
  sources: z.array(z.string()),
  seenAt: z.string(),
  /** No source has listed it for a day. */
  isStale: z.boolean(),
})

export type ListedResource = z.infer<typeof listedResource>

const listedRelation = z.object({
  from: z.string(),
  kind: z.enum(relationKinds),
  to: z.string(),
  source: z.string(),
  /** Its source may widen what runs unasked. */
  hasAuthority: z.boolean(),
})

export type ListedRelation = z.infer<typeof listedRelation>

/**
 * Values on which sources disagree, of what there is one of: a VM's host, a node's group. Nothing
 * is near along it.
 */
const disagreement = z.object({
  relation: z.enum(relationKinds),
  values: z.array(z.object({ to: z.string(), source: z.string(), seenAt: z.string() })),
})

export type Disagreement = z.infer<typeof disagreement>

/** What a resource runs on, belongs to or depends on, and what does so with it. */
const surroundingsOfResource = z.object({ needs: near, neededBy: near })

export type ResourceSurroundings = z.infer<typeof surroundingsOfResource>

/** A resource in the API: its sources, relations, firing alerts and incidents. */
export const shownResource = listedResource.extend({
  firstSeenAt: z.string(),
  said: z.array(z.object({ source: z.string(), seenAt: z.string(), name: z.string(), attributes })),
  /** How it is now, where its kind has a state that code can read; else `unknown`. */
  state: resourceState,
  /** Other names of the same thing. */
  sameAs: z.array(z.string()),
  relations: z.array(listedRelation),
  disagreements: z.array(disagreement).default([]),
  /** How many things are near: in an incident about it a reversible write there runs unasked. */
  neighbours: z.number().int().optional(),
  /** For a picture; left out with `brief`. */
  around: surroundingsOfResource.optional(),
  alerts: z.array(
    z.object({ name: z.string(), status: z.string(), startsAt: z.string(), incidentId: z.string().nullable() }),
  ),
  incidents: z.array(z.object({ id: z.string(), title: z.string(), status: z.string(), createdAt: z.string() })),
  /** What people did to it directly, newest first. */
  acts: z
    .array(z.object({ at: z.string(), who: z.string(), did: z.string(), incidentId: z.string().nullable() }))
    .default([]),
  /** What an operator declared to bring it back to its wanted state. */
  jobs: z.array(z.object({ name: z.string(), about: z.string() })).optional(),
})

export type ShownResource = z.infer<typeof shownResource>
