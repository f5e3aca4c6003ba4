import { z } from 'zod'
import { idPattern, relationKinds } from './kinds.ts'
import { attributes, parseResourceKey } from './registry.ts'
import { inventoryKind } from './resource.ts'

/**
 * The inventory as a person writes it: hosts, nodes in groups, and whatever else alerts may be about, with how it hangs together. A
 * group is what the tools call a shard. Where a platform is configured it says which hosts, nodes and groups there are; resources and
 * relations can be imported beside it.
 */
const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/, 'takes letters, digits, dots, dashes and underscores, 63 at most')
/** A name is one line, and what it looks like. */
const plainText = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .regex(
      /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u,
      'holds a line break, a control character or one that is not seen: leave it out',
    )
const address = plainText(253)

const group = z.strictObject({
  id: name,
  region: name.default('site'),
  role: z.enum(['database', 'web']).default('web'),
})
const siteNode = z.strictObject({
  id: name,
  group: name.default('hosts'),
  /** What alerts call it: their labels `instance`, `hostname` and the like are held against id, name and address. */
  hostname: address.optional(),
  ip: z.string().max(253).default(''),
})
const siteHost = z.strictObject({
  id: name,
  region: name.default('site'),
  rack: name.default('rack'),
  ramMib: z.number().int().min(1).max(1_000_000_000),
  cpuMc: z.number().int().min(1).max(1_000_000_000),
})

/** Anything else that alerts may be about: a service on a node, a database, a workload of a cluster. */
const siteResource = z.strictObject({
  kind: inventoryKind,
  id: z.string().regex(idPattern, 'takes letters, digits and . _ : @ -, 128 at most'),
  name: plainText(200).optional(),
  /** Other names, host names and addresses that alerts may use. */
  aliases: z.array(plainText(253)).max(20).optional(),
  attributes: attributes.optional(),
})
const resourceName = z.string().refine((text) => parseResourceKey(text) !== null, {
  error: `is no resource: write kind:id, with one of ${inventoryKind.options.join(', ')}`,
})
const siteRelation = z.strictObject({ from: resourceName, kind: z.enum(relationKinds), to: resourceName })

/** What a list of the file holds. */
export const items = {
  groups: group,
  nodes: siteNode,
  hosts: siteHost,
  resources: siteResource,
  relations: siteRelation,
}
export const most = { groups: 1_000, nodes: 10_000, hosts: 10_000, resources: 100_000, relations: 400_000 } as const
export type ListName = keyof typeof items

const siteLists = {
  groups: z.array(group).max(most.groups).default([]),
  nodes: z.array(siteNode).max(most.nodes).default([]),
  hosts: z.array(siteHost).max(most.hosts).default([]),
}

/** Hosts, and nodes in groups: what the platform's tables hold. */
export const site = z.strictObject(siteLists)
export type Site = z.infer<typeof site>

/** A file of the inventory. What holds between its entries `findSiteFaults` says. */
export const siteFile = z.strictObject({
  ...siteLists,
  resources: z.array(siteResource).max(most.resources).default([]),
  relations: z.array(siteRelation).max(most.relations).default([]),
})
export type SiteFile = z.infer<typeof siteFile>

/** What an import does or would do, by id; `kept` is not in the file and stays. */
export const siteChange = z.object({
  added: z.array(z.string()),
  changed: z.array(z.string()),
  removed: z.array(z.string()),
  kept: z.array(z.string()),
})
export type SiteChange = z.infer<typeof siteChange>
