import { suspectSlackRequest } from '../../db/slack/requests.ts'
import { addressOf } from '../address.ts'
import { failedAuthentications, networkOf } from '../attempts.ts'
import type { ApiDeps } from '../deps.ts'
import type { Context } from '../hono.ts'

/** Writes down what came to Slack's door and looks like an attack. */
export async function suspect(
  { db }: ApiDeps,
  c: Context,
  approvalId: string | null,
  event: { code: string; subject: string; detail: string },
): Promise<void> {
  const address = addressOf(c)
  await suspectSlackRequest(db, approvalId, { ...event, address, network: networkOf(address) }, failedAuthentications)
}
