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
const address = z.string().min(1).max(253)

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
  name: z.string().min(1).max(200).optional(),
  /** Other names, host names and addresses that alerts may use. */
  aliases: z.array(z.string().min(1).max(253)).max(20).optional(),
  attributes: attributes.optional(),
})
const resourceName = z.string().refine((text) => parseResourceKey(text) !== null, {
  error: `is no resource: write kind:id, with one of ${inventoryKind.options.join(', ')}`,
})
const siteRelation = z.strictObject({ from: resourceName, kind: z.enum(relationKinds), to: resourceName })

const siteLists = {
  groups: z.array(group).max(1_000).default([]),
  nodes: z.array(siteNode).max(10_000).default([]),
  hosts: z.array(siteHost).max(10_000).default([]),
}
type Lists = { [name in keyof typeof siteLists]: { id: string }[] }

/** Each id once in its list, and no node that is a host as well. */
function checkIds({ groups, nodes, hosts }: Lists, context: z.RefinementCtx): void {
  for (const [list, items] of Object.entries({ groups, nodes, hosts })) {
    const seen = new Set<string>()
    for (const [at, { id }] of items.entries()) {
      if (seen.has(id)) context.addIssue({ code: 'custom', path: [list, at, 'id'], message: `${id} is there twice` })
      seen.add(id)
    }
  }
  const isHost = new Set(hosts.map(({ id }) => id))
  for (const [at, { id }] of nodes.entries())
    if (isHost.has(id)) context.addIssue({ code: 'custom', path: ['nodes', at, 'id'], message: `${id} is a host, too` })
}

/** Hosts, and nodes in groups: what the platform's tables hold. */
export const site = z.strictObject(siteLists).superRefine(checkIds)
export type Site = z.infer<typeof site>

/** A file of the inventory. What is wrong with it is all said at once. */
export const siteFile = z
  .strictObject({
    ...siteLists,
    resources: z.array(siteResource).max(100_000).default([]),
    relations: z.array(siteRelation).max(400_000).default([]),
  })
  .superRefine(checkIds)
  .superRefine(({ resources }, context) => {
    const seen = new Set<string>()
    for (const [at, { kind, id }] of resources.entries()) {
      const key = `${kind}:${id}`
      if (seen.has(key)) context.addIssue({ code: 'custom', path: ['resources', at], message: `${key} is there twice` })
      seen.add(key)
    }
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
