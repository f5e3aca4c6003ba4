import { z } from 'zod'

/**
 * The inventory of a site without a platform, as a person writes it: hosts, and nodes in groups. A group is what the tools call a
 * shard. Where a platform is configured it says all of this, and nothing can be imported.
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

export const site = z
  .strictObject({
    groups: z.array(group).max(1_000).default([]),
    nodes: z.array(siteNode).max(10_000).default([]),
    hosts: z.array(siteHost).max(10_000).default([]),
  })
  .superRefine(({ groups, nodes, hosts }, context) => {
    const lists = { groups, nodes, hosts }
    for (const [list, items] of Object.entries(lists)) {
      const seen = new Set<string>()
      for (const [at, { id }] of items.entries()) {
        if (seen.has(id)) context.addIssue({ code: 'custom', path: [list, at, 'id'], message: `${id} is there twice` })
        seen.add(id)
      }
    }
    const isHost = new Set(hosts.map(({ id }) => id))
    for (const [at, { id }] of nodes.entries())
      if (isHost.has(id))
        context.addIssue({ code: 'custom', path: ['nodes', at, 'id'], message: `${id} is a host, too` })
  })
export type Site = z.infer<typeof site>

/** What an import does or would do, by id; `kept` is not in the file and stays. */
export const siteChange = z.object({
  added: z.array(z.string()),
  changed: z.array(z.string()),
  removed: z.array(z.string()),
  kept: z.array(z.string()),
})
export type SiteChange = z.infer<typeof siteChange>
