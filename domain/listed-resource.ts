import { z } from 'zod'
import { relationKinds } from './kinds.ts'
import { attributes, inventoryKind, near, resourceState } from './registry.ts'

/** A resource as the API lists it. */
export const listedResource = z.object({
  kind: inventoryKind,
  id: z.string(),
  name: z.string(),
  aliases: z.array(z.string()),
  /** The key that is equal for all names of the resource. */
  canonical: z.string(),
  sources: z.array(z.string()),
  seenAt: z.string(),
  /** Whether no source has listed the resource for a day. */
  isStale: z.boolean(),
})

export type ListedResource = z.infer<typeof listedResource>

const listedRelation = z.object({
  from: z.string(),
  kind: z.enum(relationKinds),
  to: z.string(),
  source: z.string(),
  /** Whether the relation's source has authority, so that the relation may extend a vicinity. */
  hasAuthority: z.boolean(),
})

export type ListedRelation = z.infer<typeof listedRelation>

/**
 * Values on which sources disagree although only one value can be true, such as the host of a VM or
 * the group of a node. A relation with such a value extends no vicinity.
 */
const disagreement = z.object({
  relation: z.enum(relationKinds),
  values: z.array(z.object({ to: z.string(), source: z.string(), seenAt: z.string() })),
})

export type Disagreement = z.infer<typeof disagreement>

/**
 * `needs`: resources that this resource runs on, belongs to or depends on. `neededBy`: resources
 * that need this resource in these ways.
 */
const surroundingsOfResource = z.object({ needs: near, neededBy: near })

export type ResourceSurroundings = z.infer<typeof surroundingsOfResource>

/** A resource as the API shows it, with its sources, relations, firing alerts and incidents. */
export const shownResource = listedResource.extend({
  firstSeenAt: z.string(),
  said: z.array(z.object({ source: z.string(), seenAt: z.string(), name: z.string(), attributes })),
  /** The current state of the resource if code can read it; otherwise `unknown`. */
  state: resourceState,
  /** Keys of the resource's other names. */
  sameAs: z.array(z.string()),
  relations: z.array(listedRelation),
  disagreements: z.array(disagreement).default([]),
  /**
   * How many resources are in the vicinity. In incidents of this resource, a reversible write on
   * them runs automatically.
   */
  neighbours: z.number().int().optional(),
  /** Data for the diagram around the resource. Left out if the request has `brief`. */
  around: surroundingsOfResource.optional(),
  alerts: z.array(
    z.object({ name: z.string(), status: z.string(), startsAt: z.string(), incidentId: z.string().nullable() }),
  ),
  incidents: z.array(z.object({ id: z.string(), title: z.string(), status: z.string(), createdAt: z.string() })),
  /** Direct actions of people on the resource, newest first. */
  acts: z
    .array(z.object({ at: z.string(), who: z.string(), did: z.string(), incidentId: z.string().nullable() }))
    .default([]),
  /** Declared jobs that return the resource to its wanted state. */
  jobs: z.array(z.object({ name: z.string(), about: z.string() })).optional(),
})

export type ShownResource = z.infer<typeof shownResource>
