import type { Command } from 'commander'
import { z } from 'zod'
import type { ApiClient } from './api.ts'
import { type ConnectionOptions, connect } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { inert } from './ui/terminal.ts'

/**
 * API paths that list ids, by the prefix of the id. An argument whose description has `as inc_…`
 * takes an id with the prefix `inc`.
 */
const listPaths: Record<string, string> = { inc: '/api/v1/incidents', apr: '/api/v1/approvals' }

/** The most matching ids that an error lists. */
const maxNamed = 5

const completeId = /^[a-z]+_[0-9a-z]{26}$/

/** Completes shortened ids before a command runs. Throws CommandFailed if several ids match. */
export async function completeIds(action: Command): Promise<void> {
  for (const [index, argument] of action.registeredArguments.entries()) {
    const [, kind = ''] = /\bas ([a-z]+)_…/.exec(argument.description) ?? []
    const given: unknown = action.processedArgs[index]
    if (!listPaths[kind] || typeof given !== 'string' || completeId.test(given)) continue
    const { api } = connect(action.opts<ConnectionOptions>())
    action.processedArgs[index] = await findFullId(api, kind, given)
  }
}

/**
 * Returns the only id that begins with `given`, which may lack the prefix. If no id matches,
 * returns `given` unchanged, and the API decides.
 */
async function findFullId(api: ApiClient, kind: string, given: string): Promise<string> {
  const prefix = given.startsWith(`${kind}_`) ? given : `${kind}_${given}`
  if (!/^[a-z]+_[0-9a-z]+$/.test(prefix)) return given
  const query = new URLSearchParams({ idPrefix: prefix, limit: String(maxNamed + 1) })
  const { items } = z
    .looseObject({ items: z.array(z.looseObject({ id: z.string() })) })
    .parse(await api.get(`${listPaths[kind]}?${query}`))
  // Filters again, because an older API ignores `idPrefix` and returns the newest ids.
  const ids = items.map(({ id }) => id).filter((id) => id.startsWith(prefix))
  const [only, ...others] = ids
  if (others.length > 0) {
    const more = ids.length > maxNamed ? ', and more' : ''
    throw new CommandFailed(
      'usage',
      `"${given}" matches several ids: ${ids
        .slice(0, maxNamed)
        .map((id) => inert(id))
        .join(', ')}${more}. Give more letters.`,
    )
  }
  return only ?? given
}
