import type { Command } from 'commander'
import { z } from 'zod'
import { type ConnectionOptions, connect } from './connection.ts'
import type { ApiClient } from './core.ts'
import { CommandFailed } from './exit-code.ts'
import { inert } from './inert.ts'

/** By how an argument is described (`as inc_…`), where the ids of its kind are listed. */
const listPaths: Record<string, string> = { inc: '/api/v1/incidents', apr: '/api/v1/approvals' }

/** How many candidates are named. */
const maxNamed = 5

const completeId = /^[a-z]+_[0-9a-z]{26}$/

/** Before a command runs: the beginning of an id is as good as the id, as long as only one begins so. */
export async function completeIds(action: Command): Promise<void> {
  for (const [index, argument] of action.registeredArguments.entries()) {
    const [, kind = ''] = /^as ([a-z]+)_/.exec(argument.description) ?? []
    const given: unknown = action.processedArgs[index]
    if (!listPaths[kind] || typeof given !== 'string' || completeId.test(given)) continue
    const { api } = connect(action.opts<ConnectionOptions>())
    action.processedArgs[index] = await findFullId(api, kind, given)
  }
}

/** The one id that begins so, with or without its kind in front. What begins no id is left to the API to refuse. */
async function findFullId(api: ApiClient, kind: string, given: string): Promise<string> {
  const prefix = given.startsWith(`${kind}_`) ? given : `${kind}_${given}`
  if (!/^[a-z]+_[0-9a-z]+$/.test(prefix)) return given
  const query = new URLSearchParams({ idPrefix: prefix, limit: String(maxNamed + 1) })
  const { items } = z
    .looseObject({ items: z.array(z.looseObject({ id: z.string() })) })
    .parse(await api.get(`${listPaths[kind]}?${query}`))
  // An older API knows no such filter and answers what is newest.
  const ids = items.map(({ id }) => id).filter((id) => id.startsWith(prefix))
  const [only, ...others] = ids
  if (others.length > 0) {
    const more = ids.length > maxNamed ? ', and more' : ''
    throw new CommandFailed(
      'usage',
      `"${given}" begins several ids: ${ids
        .slice(0, maxNamed)
        .map((id) => inert(id))
        .join(', ')}${more}. Give more of it.`,
    )
  }
  return only ?? given
}
